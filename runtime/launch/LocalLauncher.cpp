//===- LocalLauncher.cpp - N ranks on one machine -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/LocalLauncher.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <sched.h>
#include <unistd.h>

namespace reckon {
namespace {

std::string freshNonce() {
  std::random_device random;
  char text[40];
  std::snprintf(text, sizeof text, "%08x%08x%08x%08x", random(), random(),
                random(), random());
  return text;
}

int usableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  return std::max(1, CPU_COUNT(&set));
}

/// One job under watch.
class Job {
public:
  Job(const LocalLaunch &launch, ProcessLauncher &launcher, std::FILE *err)
      : launch_(launch), launcher_(launcher), err_(err) {}

  Result<int> run() {
    std::string nonce = freshNonce();
    int cores = usableCores();
    for (int rank = 0; rank < launch_.world; ++rank) {
      Result<int> pid = launcher_.start(
          {launch_.argv, rankEnvironment(launch_, rank, nonce, cores)});
      if (!pid) {
        killAll(SIGKILL);
        while (living_ > 0)
          handle(launcher_.next(1000));
        return pid.error();
      }
      ranks_.push_back({*pid});
      ++living_;
    }
    while (living_ > 0) {
      handle(launcher_.next(timeToWait()));
      escalate();
    }
    return verdict();
  }

private:
  struct Rank {
    int pid = 0;
    bool ended = false;
    int code = 0, signal = 0;
    int order = 0;       // among the endings
    bool forced = false; // ended after this launcher had told it to
  };

  void handle(const ProcessEvent &event) {
    if (event.kind == ProcessEvent::Signalled)
      return pass(event.signal);
    if (event.kind != ProcessEvent::Ended)
      return;
    for (Rank &rank : ranks_) {
      if (rank.ended || rank.pid != event.pid)
        continue;
      rank.ended = true;
      rank.code = event.code;
      rank.signal = event.signal;
      rank.order = endings_++;
      rank.forced = stage_ > 0;
      --living_;
      if ((rank.code || rank.signal) && !deadline_ && !interrupts_)
        deadline_ = launcher_.nowMs() + launch_.graceMs;
    }
  }

  void pass(int signal) {
    bool ends = signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
    if (ends && ++interrupts_ > 1)
      signal = SIGKILL;
    killAll(signal);
  }

  void killAll(int signal) {
    for (const Rank &rank : ranks_)
      if (!rank.ended)
        launcher_.kill(rank.pid, signal);
  }

  int timeToWait() {
    if (!deadline_)
      return 1000;
    int64_t left = *deadline_ - launcher_.nowMs();
    return static_cast<int>(std::clamp<int64_t>(left, 0, 1000));
  }

  void escalate() {
    if (!deadline_ || living_ == 0 || launcher_.nowMs() < *deadline_)
      return;
    killAll(++stage_ == 1 ? SIGTERM : SIGKILL);
    deadline_ = launcher_.nowMs() + launch_.graceMs;
  }

  /// The rank whose failure came first among those that name no other.
  const Rank *culprit() const {
    const Rank *found = nullptr;
    auto weight = [](const Rank &rank) {
      bool second =
          rank.signal == 0 && rank.code == static_cast<int>(ExitCode::DeadPeer);
      return (rank.forced ? 2 : 0) + (second ? 1 : 0);
    };
    for (const Rank &rank : ranks_) {
      if (!rank.code && !rank.signal)
        continue;
      if (!found || weight(rank) < weight(*found) ||
          (weight(rank) == weight(*found) && rank.order < found->order))
        found = &rank;
    }
    return found;
  }

  int verdict() {
    const Rank *first = culprit();
    if (!first)
      return 0;
    if (interrupts_) {
      // The ranks end in many ways once some of them are gone; what counts is
      // whether they saved.
      auto saved = [](const Rank &rank) {
        return rank.code == static_cast<int>(ExitCode::PreemptedSaved);
      };
      bool any = std::any_of(ranks_.begin(), ranks_.end(), saved);
      return static_cast<int>(any ? ExitCode::PreemptedSaved
                                  : ExitCode::Interrupted);
    }
    char host[256] = "localhost";
    ::gethostname(host, sizeof host - 1);
    auto number = static_cast<int>(first - ranks_.data());
    int code =
        first->signal ? static_cast<int>(ExitCode::DeadPeer) : first->code;
    if (first->signal)
      std::fprintf(err_,
                   "reckon-run: rank %d (host %s, pid %d): killed by signal %d "
                   "(%s); the job ends with exit code %d\n",
                   number, host, first->pid, first->signal,
                   strsignal(first->signal), code);
    else
      std::fprintf(err_,
                   "reckon-run: rank %d (host %s, pid %d): ended with exit "
                   "code %d, the first to fail\n",
                   number, host, first->pid, code);
    std::fflush(err_);
    return code;
  }

  const LocalLaunch &launch_;
  ProcessLauncher &launcher_;
  std::FILE *err_;
  std::vector<Rank> ranks_;
  int living_ = 0, endings_ = 0;
  int interrupts_ = 0;
  int stage_ = 0; // 1: told to end, 2: killed
  std::optional<int64_t> deadline_;
};

} // namespace

std::vector<std::string> rankEnvironment(const LocalLaunch &launch, int rank,
                                         const std::string &nonce, int cores) {
  std::string world = std::to_string(launch.world);
  std::string number = std::to_string(rank);
  std::vector<std::string> out = launch.environment;
  out.push_back("RANK=" + number);
  out.push_back("WORLD_SIZE=" + world);
  out.push_back("LOCAL_RANK=" + number);
  out.push_back("LOCAL_WORLD_SIZE=" + world);
  out.push_back("RECKON_MASTER_ADDR=unix:@reckon-" + nonce);
  out.push_back("RECKON_RUN_NONCE=" + nonce);
  auto unlessSet = [&](const std::string &name, const std::string &value) {
    for (const std::string &entry : launch.environment)
      if (entry.rfind(name + "=", 0) == 0)
        return;
    if (!std::getenv(name.c_str()))
      out.push_back(name + "=" + value);
  };
  unlessSet("OMP_NUM_THREADS",
            std::to_string(std::max(1, cores / launch.world)));
  // Threads that spin at the end of a loop would take the core from the peers
  // that this rank waits for.
  unlessSet("OMP_WAIT_POLICY", "passive");
  return out;
}

Result<int> launchLocal(const LocalLaunch &launch, ProcessLauncher &launcher,
                        std::FILE *err) {
  if (launch.world < 1 || launch.argv.empty())
    return makeError(ExitCode::BadSpec,
                     "expected at least one local rank, got " +
                         std::to_string(launch.world));
  return Job(launch, launcher, err).run();
}

Result<int> launchLocal(const LocalLaunch &launch) {
  auto launcher = makeProcessLauncher();
  RECKON_TRY(launcher.status());
  return launchLocal(launch, **launcher, stderr);
}

} // namespace reckon
