//===- Status.h - errors as values, with the contract's exit codes --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// User and environment errors are values that carry the exit code a program
// ends with and one lower-case sentence: what was expected, what was found,
// where (file:line:column when there is one), and what to do about it. Broken
// invariants of our own code abort through RECKON_CHECK instead.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_BASE_STATUS_H
#define RECKON_RUNTIME_BASE_STATUS_H

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace reckon {

/// Exit codes of every program; the numbers are part of the contract.
enum class ExitCode : int {
  Done = 0,
  Internal = 1,
  BadSpec = 2,
  Infeasible = 3,
  Incompatible = 4,
  Environment = 5,
  Corrupt = 6,
  PreemptedSaved = 20,
  Interrupted = 21,
  Hang = 40,
  Mismatch = 41,
  DeadPeer = 42,
  SpikeGuard = 43,
  SilentCorruption = 44,
  CheckpointFailure = 45,
};

/// One failure: the exit code it leads to and the sentence a person reads.
struct Error {
  ExitCode code = ExitCode::Internal;
  std::string message;
};

/// Success, or an Error. Must be looked at.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}
  static Status success() { return Status(); }

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error &error() const {
    assert(error_);
    return *error_;
  }

private:
  std::optional<Error> error_;
};

/// A value, or the Error that prevented it.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T &operator*() { return std::get<0>(state_); }
  const T &operator*() const { return std::get<0>(state_); }
  T *operator->() { return &std::get<0>(state_); }
  const T *operator->() const { return &std::get<0>(state_); }
  const Error &error() const { return std::get<1>(state_); }
  Status status() const { return ok() ? Status() : Status(error()); }

private:
  std::variant<T, Error> state_;
};

inline Error makeError(ExitCode code, std::string message) {
  return Error{code, std::move(message)};
}

[[noreturn]] inline void checkFailed(const char *file, int line,
                                     const char *what) {
  std::fprintf(stderr, "reckon: internal error at %s:%d: %s\n", file, line,
               what);
  std::abort();
}

} // namespace reckon

/// Aborts with the place of a broken invariant; active in every build.
#define RECKON_CHECK(condition)                                                \
  ((condition) ? (void)0                                                       \
               : ::reckon::checkFailed(__FILE__, __LINE__, #condition))

/// Returns the error of a Status or Result expression from this function.
#define RECKON_TRY(expression)                                                 \
  do {                                                                         \
    if (auto reckonTried = (expression); !reckonTried.ok())                    \
      return reckonTried.error();                                              \
  } while (false)

#endif // RECKON_RUNTIME_BASE_STATUS_H
