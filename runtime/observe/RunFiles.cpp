//===- RunFiles.cpp - files of a run directory that grow ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/observe/RunFiles.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace reckon::observe {

LineFile::LineFile(LineFile &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

LineFile &LineFile::operator=(LineFile &&other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

LineFile::~LineFile() {
  if (fd_ >= 0)
    close(fd_);
}

static Error cannotWrite(const std::string &path, int reason) {
  return makeError(ExitCode::Environment, path + ": cannot write (" +
                                              std::strerror(reason) +
                                              "): choose another --run-dir");
}

Result<LineFile> LineFile::open(const std::string &path, bool truncate) {
  LineFile file;
  int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  file.fd_ = ::open(path.c_str(), flags | (truncate ? O_TRUNC : 0), 0666);
  if (file.fd_ < 0)
    return cannotWrite(path, errno);
  file.path_ = path;
  return file;
}

Status LineFile::write(std::string_view line) {
  while (fd_ >= 0 && !line.empty()) {
    ssize_t written = ::write(fd_, line.data(), line.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return cannotWrite(path_, errno);
    line.remove_prefix(static_cast<size_t>(written));
  }
  return Status::success();
}

std::string rankFileName(const std::string &runDirectory, const char *stem,
                         int rank, const char *extension) {
  char name[64];
  std::snprintf(name, sizeof(name), "/%s-%05d.%s", stem, rank, extension);
  return runDirectory + name;
}

Result<RankLog> RankLog::open(const std::string &runDirectory, int rank,
                              Clock &clock) {
  RankLog log;
  Result<LineFile> file = LineFile::open(
      rankFileName(runDirectory, "rank", rank, "log"), /*truncate=*/true);
  if (!file)
    return file.error();
  log.file_ = std::move(*file);
  log.clock_ = &clock;
  log.start_ = clock.monotonicNs();
  return log;
}

void RankLog::line(const char *format, ...) {
  if (!clock_)
    return;
  char text[512];
  double elapsed = 1e-9 * static_cast<double>(clock_->monotonicNs() - start_);
  int used = std::snprintf(text, sizeof(text), "%10.3f ", elapsed);
  va_list args;
  va_start(args, format);
  int more = std::vsnprintf(text + used, sizeof(text) - 1 - used, format, args);
  va_end(args);
  size_t length = std::min<size_t>(used + std::max(more, 0), sizeof(text) - 2);
  text[length] = '\n';
  // A log that cannot be written must not end the run it describes.
  (void)file_.write({text, length + 1}).ok();
}

} // namespace reckon::observe
