//===- ProcessLauncher.cpp - child processes by fork and exec -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/ProcessLauncher.h"

#include "runtime/comm/Wire.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace reckon {
namespace {

using comm::Fd;

/// The parent's environment with some variables replaced.
std::vector<std::string>
mergeEnvironment(const std::vector<std::string> &changes) {
  auto nameOf = [](const std::string &entry) {
    return entry.substr(0, entry.find('=') + 1);
  };
  std::vector<std::string> merged;
  for (char **entry = environ; *entry; ++entry) {
    std::string text(*entry);
    bool replaced = false;
    for (const std::string &change : changes)
      replaced |= nameOf(change) == nameOf(text);
    if (!replaced)
      merged.push_back(std::move(text));
  }
  merged.insert(merged.end(), changes.begin(), changes.end());
  return merged;
}

std::vector<char *> pointers(std::vector<std::string> &texts) {
  std::vector<char *> out;
  for (std::string &text : texts)
    out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

class ForkLauncher : public ProcessLauncher {
public:
  Status open() {
    sigemptyset(&taken_);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD})
      sigaddset(&taken_, signal);
    if (pthread_sigmask(SIG_BLOCK, &taken_, &before_) != 0)
      return comm::systemError("block signals", errno);
    signals_ = Fd(::signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_)
      return comm::systemError("listen for signals", errno);
    return Status();
  }

  ~ForkLauncher() override {
    signals_.reset();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  Result<int> start(const ProcessSpec &spec) override {
    std::vector<std::string> argvTexts = spec.argv;
    std::vector<std::string> envTexts = mergeEnvironment(spec.environment);
    std::vector<char *> argv = pointers(argvTexts), env = pointers(envTexts);
    // Closes on a successful exec; otherwise carries the reason.
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return comm::systemError("open a pipe", errno);
    Fd read(ends[0]), write(ends[1]);
    pid_t parent = ::getpid();
    pid_t pid = ::fork();
    if (pid < 0)
      return comm::systemError("start a rank process", errno);
    if (pid == 0)
      runChild(argv.data(), env.data(), parent, ends[1]);
    write.reset();
    int code = 0;
    ssize_t n;
    while ((n = ::read(read.get(), &code, sizeof code)) < 0 && errno == EINTR)
      ;
    if (n == sizeof code) {
      ::waitpid(pid, nullptr, 0);
      return comm::systemError("start a rank process", code);
    }
    return static_cast<int>(pid);
  }

  ProcessEvent next(int timeoutMs) override {
    ProcessEvent event;
    if (reap(event))
      return event;
    pollfd entry{signals_.get(), POLLIN, 0};
    if (::poll(&entry, 1, timeoutMs) <= 0)
      return event;
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info)
      return event;
    if (info.ssi_signo == SIGCHLD) {
      reap(event);
      return event;
    }
    event.kind = ProcessEvent::Signalled;
    event.signal = static_cast<int>(info.ssi_signo);
    return event;
  }

  void kill(int pid, int signal) override { ::kill(pid, signal); }

  int64_t nowMs() override { return comm::nowNs() / 1'000'000; }

private:
  /// Only calls that are safe between fork and exec.
  [[noreturn]] void runChild(char **argv, char **env, pid_t parent,
                             int report) {
    // A group of its own: the terminal's Ctrl-C reaches only the launcher,
    // which passes it on once.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) // it died before the line above
      ::_exit(1);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    ::execve("/proc/self/exe", argv, env);
    int code = errno;
    (void)!::write(report, &code, sizeof code);
    ::_exit(127);
  }

  bool reap(ProcessEvent &event) {
    int status = 0;
    pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0)
      return false;
    event.kind = ProcessEvent::Ended;
    event.pid = pid;
    event.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    event.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return true;
  }

  Fd signals_;
  sigset_t taken_{}, before_{};
};

} // namespace

Result<std::unique_ptr<ProcessLauncher>> makeProcessLauncher() {
  auto launcher = std::make_unique<ForkLauncher>();
  RECKON_TRY(launcher->open());
  return std::unique_ptr<ProcessLauncher>(std::move(launcher));
}

} // namespace reckon
