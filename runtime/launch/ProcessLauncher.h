//===- ProcessLauncher.h - child processes behind an interface ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_LAUNCH_PROCESSLAUNCHER_H
#define RECKON_RUNTIME_LAUNCH_PROCESSLAUNCHER_H

#include "runtime/base/Status.h"

#include <memory>
#include <string>
#include <vector>

namespace reckon {

struct ProcessSpec {
  std::vector<std::string> argv;
  /// "NAME=value" that replace or add to the parent's environment.
  std::vector<std::string> environment;
};

/// What happened next to a launcher.
struct ProcessEvent {
  enum Kind { Nothing, Ended, Signalled } kind = Nothing;
  int pid = 0;    // Ended
  int code = 0;   // Ended: exit code, when signal is 0
  int signal = 0; // Ended: what killed it; Signalled: what this process got
};

/// Starts children that die with this process, and tells what becomes of them.
class ProcessLauncher {
public:
  virtual ~ProcessLauncher() = default;

  /// Pid of the new process. Environment error when it cannot be started.
  virtual Result<int> start(const ProcessSpec &spec) = 0;

  /// The next event, or Nothing after `timeoutMs`.
  virtual ProcessEvent next(int timeoutMs) = 0;

  virtual void kill(int pid, int signal) = 0;

  /// Monotonic, in milliseconds.
  virtual int64_t nowMs() = 0;
};

/// Copies of the running program, by fork and exec. While it lives, SIGINT,
/// SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGCHLD of this process are taken as
/// events.
Result<std::unique_ptr<ProcessLauncher>> makeProcessLauncher();

} // namespace reckon

#endif // RECKON_RUNTIME_LAUNCH_PROCESSLAUNCHER_H
