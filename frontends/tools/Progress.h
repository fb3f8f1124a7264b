//===- Progress.h - a line for who waits ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_PROGRESS_H
#define RECKON_FRONTENDS_TOOLS_PROGRESS_H

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace reckon {

/// While it lives, says on stderr what is being computed (Activity), once that
/// takes more than a second. On a terminal one line, written over every second;
/// elsewhere a line after 1, 2, 4, 8, ... seconds, so that logs stay short.
/// RECKON_PROGRESS gives other seconds to begin with, 0 for silence.
class Progress {
public:
  struct Options {
    std::string name; ///< of the command
    double seconds = 1;
    bool terminal = false;
    std::function<void(const std::string &)> write;
  };

  /// On stderr.
  explicit Progress(const std::string &name);
  explicit Progress(Options options);
  /// Wipes the line of a terminal.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

private:
  void watch();

  Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

} // namespace reckon

#endif // RECKON_FRONTENDS_TOOLS_PROGRESS_H
