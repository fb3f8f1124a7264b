//===- LocalLauncherTest.cpp - who decides a job's exit code --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The rules run against fake processes and a clock that the fake moves; the
// last tests start real ones, which are this program with --child.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/LocalLauncher.h"
#include "runtime/launch/RankEnv.h"

#include <csignal>
#include <deque>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

namespace reckon {
namespace {

class FakeLauncher : public ProcessLauncher {
public:
  struct Planned {
    int64_t at;
    ProcessEvent event;
  };
  std::deque<Planned> plan; // in order of time
  std::vector<ProcessSpec> started;
  std::vector<std::tuple<int64_t, int, int>> kills; // time, pid, signal
  std::map<int, int> ignores; // pid: the only signal that ends it
  int failFrom = 1 << 20;     // rank whose start fails
  int64_t now = 0;

  void ends(int64_t at, int rank, int code, int signal = 0) {
    plan.push_back({at, {ProcessEvent::Ended, 100 + rank, code, signal}});
  }
  void interrupt(int64_t at, int signal) {
    plan.push_back({at, {ProcessEvent::Signalled, 0, 0, signal}});
  }

  Result<int> start(const ProcessSpec &spec) override {
    int rank = static_cast<int>(started.size());
    if (rank >= failFrom)
      return makeError(ExitCode::Environment, "no more processes");
    started.push_back(spec);
    return 100 + rank;
  }

  ProcessEvent next(int timeoutMs) override {
    if (plan.empty() || plan.front().at > now + timeoutMs) {
      now += timeoutMs;
      return {};
    }
    now = std::max(now, plan.front().at);
    ProcessEvent event = plan.front().event;
    plan.pop_front();
    return event;
  }

  void kill(int pid, int signal) override {
    kills.emplace_back(now, pid, signal);
    auto found = ignores.find(pid);
    if (found != ignores.end() && found->second == signal) {
      plan.push_front({now, {ProcessEvent::Ended, pid, 0, signal}});
      ignores.erase(found);
    }
  }

  int64_t nowMs() override { return now; }
};

struct Outcome {
  int code;
  std::string text;
};

Outcome launch(FakeLauncher &fake, int world) {
  LocalLaunch job;
  job.argv = {"reckon-run", "plan"};
  job.world = world;
  std::FILE *err = std::tmpfile();
  auto result = launchLocal(job, fake, err);
  std::rewind(err);
  char buffer[1024];
  size_t n = std::fread(buffer, 1, sizeof buffer, err);
  std::fclose(err);
  if (!result)
    return {static_cast<int>(result.error().code), result.error().message};
  return {*result, std::string(buffer, n)};
}

TEST(Verdict, AllDone) {
  FakeLauncher fake;
  fake.ends(10, 1, 0);
  fake.ends(20, 0, 0);
  Outcome outcome = launch(fake, 2);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text, "");
  EXPECT_EQ(fake.started[1].argv,
            (std::vector<std::string>{"reckon-run", "plan"}));
}

TEST(Verdict, TheKilledRankIsNamedAlthoughPeersEndedFirst) {
  FakeLauncher fake;
  fake.ends(10, 0, 42);
  fake.ends(11, 2, 42);
  fake.ends(12, 1, 0, SIGKILL);
  Outcome outcome = launch(fake, 3);
  EXPECT_EQ(outcome.code, 42);
  EXPECT_NE(outcome.text.find("rank 1 (host "), std::string::npos);
  EXPECT_NE(outcome.text.find("pid 101): killed by signal 9"),
            std::string::npos)
      << outcome.text;
}

TEST(Verdict, TheFirstFailureDecidesOverLaterOnes) {
  FakeLauncher fake;
  fake.ends(10, 2, 5);
  fake.ends(11, 0, 42);
  fake.ends(12, 1, 0, SIGSEGV); // on its way out
  EXPECT_EQ(launch(fake, 3).code, 5);
}

TEST(Verdict, ARanksOwnCodeIsPassedOn) {
  for (int code : {2, 4, 5, 6, 41}) {
    FakeLauncher fake;
    fake.ends(10, 0, 42);
    fake.ends(11, 1, code);
    EXPECT_EQ(launch(fake, 2).code, code);
  }
}

TEST(Verdict, OthersGetTimeThenTermThenKill) {
  FakeLauncher fake;
  fake.ignores = {{100, SIGTERM}, {102, SIGKILL}};
  fake.ends(1000, 1, 6);
  Outcome outcome = launch(fake, 3);
  EXPECT_EQ(outcome.code, 6); // not the signals that the launcher sent
  ASSERT_EQ(fake.kills.size(), 3u);
  EXPECT_EQ(fake.kills[0], std::make_tuple(int64_t(6000), 100, SIGTERM));
  EXPECT_EQ(fake.kills[1], std::make_tuple(int64_t(6000), 102, SIGTERM));
  EXPECT_EQ(fake.kills[2], std::make_tuple(int64_t(11000), 102, SIGKILL));
}

TEST(Verdict, CtrlCIsPassedOnAndTheSecondKills) {
  FakeLauncher fake;
  fake.interrupt(10, SIGINT);
  fake.ends(20, 0, 21);
  fake.interrupt(30, SIGINT);
  fake.ignores = {{101, SIGKILL}};
  EXPECT_EQ(launch(fake, 2).code, 21);
  ASSERT_EQ(fake.kills.size(), 3u);
  EXPECT_EQ(fake.kills[0], std::make_tuple(int64_t(10), 100, SIGINT));
  EXPECT_EQ(fake.kills[2], std::make_tuple(int64_t(30), 101, SIGKILL));
}

TEST(Verdict, PreemptedAndSaved) {
  FakeLauncher fake;
  fake.interrupt(10, SIGTERM);
  fake.ends(20, 0, 20);
  fake.ends(21, 1, 42);
  EXPECT_EQ(launch(fake, 2).code, 20);
}

TEST(Verdict, UserSignalsArePassedOnAndEndNothing) {
  FakeLauncher fake;
  fake.interrupt(10, SIGUSR1);
  fake.ends(20, 0, 0);
  EXPECT_EQ(launch(fake, 1).code, 0);
  ASSERT_EQ(fake.kills.size(), 1u);
  EXPECT_EQ(fake.kills[0], std::make_tuple(int64_t(10), 100, SIGUSR1));
}

TEST(Verdict, AFailedStartEndsTheOthers) {
  FakeLauncher fake;
  fake.failFrom = 1;
  fake.ignores = {{100, SIGKILL}};
  Outcome outcome = launch(fake, 2);
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.text, "no more processes");
}

std::optional<std::string> valueOf(const std::vector<std::string> &entries,
                                   const std::string &name) {
  for (const std::string &entry : entries)
    if (entry.rfind(name + "=", 0) == 0)
      return entry.substr(name.size() + 1);
  return std::nullopt;
}

TEST(RankEnvironment, IsWhatReadRankEnvReads) {
  ::unsetenv("OMP_NUM_THREADS");
  LocalLaunch job;
  job.world = 4;
  auto entries = rankEnvironment(job, 3, "feed", 10);
  auto env = readRankEnv(
      {[&](const char *name) { return valueOf(entries, name); }, {}});
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ((*env)->rank, 3);
  EXPECT_EQ((*env)->world, 4);
  EXPECT_EQ((*env)->nonce, "feed");
  EXPECT_EQ((*env)->master, "unix:@reckon-feed");
  EXPECT_EQ(valueOf(entries, "OMP_NUM_THREADS"), "2"); // 10 cores / 4 ranks
  job.world = 16;
  EXPECT_EQ(valueOf(rankEnvironment(job, 0, "feed", 10), "OMP_NUM_THREADS"),
            "1");
  job.environment = {"OMP_NUM_THREADS=7"};
  EXPECT_EQ(valueOf(rankEnvironment(job, 0, "feed", 10), "OMP_NUM_THREADS"),
            "7");
}

// --- Real processes ---------------------------------------------------------

/// What a rank of the tests below does.
int runChild(const std::string &what) {
  auto env = readRankEnv();
  if (!env || !env->has_value())
    return 1;
  int rank = (*env)->rank;
  auto options = worldOptions(**env);
  auto world = comm::joinWorld(*options);
  if (!world)
    return static_cast<int>(world.error().code);
  comm::Communicator &comm = **world;
  if (Status status = comm.start(); !status)
    return static_cast<int>(status.error().code);
  if (what == "agree") {
    Status status = comm.agree("greeting", rank == 2 ? "servus" : "hello");
    return status ? 0 : static_cast<int>(status.error().code);
  }
  if (what == "kill" && rank == 1)
    ::raise(SIGKILL);
  if (what == "refuse" && rank == 1)
    return 6;
  // The rest wait for a rank that never comes.
  Status status = comm.finish();
  return status ? 0 : static_cast<int>(status.error().code);
}

int launchReal(const char *what, int world) {
  LocalLaunch job;
  job.argv = {"launch-test", "--child", what};
  job.world = world;
  auto result = launchLocal(job);
  return result ? *result : static_cast<int>(result.error().code);
}

TEST(RealProcesses, RunToTheirEnd) { EXPECT_EQ(launchReal("end", 3), 0); }

TEST(RealProcesses, ADisagreementIsAMismatch) {
  EXPECT_EQ(launchReal("agree", 3), 41);
}

TEST(RealProcesses, AKilledRankEndsTheJob) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(launchReal("kill", 4), 42);
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("rank 1 (host "), std::string::npos) << text;
  EXPECT_NE(text.find("killed by signal 9"), std::string::npos) << text;
}

TEST(RealProcesses, ARanksExitCodeIsTheJobs) {
  EXPECT_EQ(launchReal("refuse", 3), 6);
}

/// A launcher in a process of its own, whose two ranks sleep and hold the
/// writing end of `pipe`: reading it ends when the last of them has died.
struct SleepingJob {
  pid_t launcher = 0;
  int pipe = -1;

  SleepingJob() {
    int ends[2];
    if (::pipe(ends) != 0)
      std::abort();
    launcher = ::fork();
    if (launcher == 0) {
      ::close(ends[0]);
      LocalLaunch job;
      job.argv = {"launch-test", "--child-sleep", std::to_string(ends[1])};
      job.world = 2;
      auto code = launchLocal(job);
      ::_exit(code ? *code : 1);
    }
    ::close(ends[1]);
    pipe = ends[0];
  }
  ~SleepingJob() { ::close(pipe); }
  bool bothRun() {
    char ready[2];
    return ::read(pipe, ready, 1) == 1 && ::read(pipe, ready + 1, 1) == 1;
  }
  bool allGone() {
    char byte;
    return ::read(pipe, &byte, 1) == 0;
  }
  int end(int signal) {
    ::kill(launcher, signal);
    int status = 0;
    ::waitpid(launcher, &status, 0);
    return status;
  }
};

TEST(RealProcesses, ChildrenDieWithTheLauncher) {
  SleepingJob job;
  ASSERT_TRUE(job.bothRun());
  job.end(SIGKILL);
  EXPECT_TRUE(job.allGone());
}

TEST(RealProcesses, CtrlCEndsAllRanksWithCode21) {
  SleepingJob job;
  ASSERT_TRUE(job.bothRun());
  int status = job.end(SIGINT);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 21);
  EXPECT_TRUE(job.allGone());
}

} // namespace
} // namespace reckon

int main(int argc, char **argv) {
  std::string first = argc > 2 ? argv[1] : "";
  if (first == "--child")
    return reckon::runChild(argv[2]);
  if (first == "--child-sleep") {
    (void)!::write(std::atoi(argv[2]), "r", 1);
    for (;;)
      ::pause();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
