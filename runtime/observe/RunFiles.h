//===- RunFiles.h - files of a run directory that grow --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A line is one write(2) to a descriptor in append mode, so a run that is
// killed between two steps leaves no half line, and ranks may share a file.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_OBSERVE_RUNFILES_H
#define RECKON_RUNTIME_OBSERVE_RUNFILES_H

#include "runtime/base/Os.h"
#include "runtime/base/Status.h"

#include <string>
#include <string_view>

namespace reckon::observe {

/// A file that only grows, by whole lines.
class LineFile {
public:
  LineFile() = default;
  LineFile(LineFile &&other) noexcept;
  LineFile &operator=(LineFile &&other) noexcept;
  ~LineFile();

  /// Environment, with the path and the system's reason.
  static Result<LineFile> open(const std::string &path, bool truncate);

  /// `line` ends with a newline. Allocates nothing unless it fails. A file
  /// that was never opened swallows lines.
  Status write(std::string_view line);

private:
  int fd_ = -1;
  std::string path_;
};

/// rank-00003.log: what one rank did, with the time since its start.
class RankLog {
public:
  static Result<RankLog> open(const std::string &runDirectory, int rank,
                              Clock &clock);

  /// printf-style; adds the time and a newline. Lines of more than 500
  /// characters are cut.
  void line(const char *format, ...) __attribute__((format(printf, 2, 3)));

private:
  LineFile file_;
  Clock *clock_ = nullptr;
  int64_t start_ = 0;
};

/// "rank-00003.log" and the like.
std::string rankFileName(const std::string &runDirectory, const char *stem,
                         int rank, const char *extension);

} // namespace reckon::observe

#endif // RECKON_RUNTIME_OBSERVE_RUNFILES_H
