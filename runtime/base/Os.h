//===- Os.h - the operating system behind interfaces ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Time and files are reached only through these interfaces, so that tests run
// with a clock they move and a disk they fill, and no test sleeps.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_BASE_OS_H
#define RECKON_RUNTIME_BASE_OS_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Monotonic and wall time, in nanoseconds.
class Clock {
public:
  virtual ~Clock() = default;
  virtual int64_t monotonicNs() = 0;
  virtual int64_t wallNs() = 0;
  double seconds() { return 1e-9 * static_cast<double>(monotonicNs()); }
};

/// The machine's clocks.
Clock &systemClock();

/// A clock that stands still until it is moved; for tests.
class FakeClock : public Clock {
public:
  int64_t monotonicNs() override { return now; }
  int64_t wallNs() override { return now; }
  int64_t now = 0;
};

/// Whole-file operations. Errors name the path and the system's reason and
/// carry ExitCode::Environment.
class FileSystem {
public:
  virtual ~FileSystem() = default;
  virtual Result<std::string> read(const std::string &path) = 0;
  /// Writes beside the target and renames, so a reader sees old or new bytes.
  virtual Status write(const std::string &path, std::string_view bytes) = 0;
  virtual Status append(const std::string &path, std::string_view bytes) = 0;
  virtual Status createDirectories(const std::string &path) = 0;
  virtual bool exists(const std::string &path) = 0;
  virtual Result<std::vector<std::string>> list(const std::string &dir) = 0;
};

/// The machine's files.
FileSystem &systemFiles();

/// Files in memory; for tests.
class FakeFileSystem : public FileSystem {
public:
  Result<std::string> read(const std::string &path) override;
  Status write(const std::string &path, std::string_view bytes) override;
  Status append(const std::string &path, std::string_view bytes) override;
  Status createDirectories(const std::string &path) override;
  bool exists(const std::string &path) override;
  Result<std::vector<std::string>> list(const std::string &dir) override;
  std::map<std::string, std::string> files;
};

} // namespace reckon

#endif // RECKON_RUNTIME_BASE_OS_H
