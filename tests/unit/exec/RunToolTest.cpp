//===- RunToolTest.cpp - reckon-run as a process --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Safetensors.h"
#include "tests/unit/exec/TinyPlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace reckon;
using namespace reckon::test;

namespace {

std::string readFile(const std::string &path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// A plan directory beside its text, and runs of it.
class RunTool : public ::testing::Test {
protected:
  void write(const TinyOptions &options) {
    std::ofstream(folder / "corpus.txt") << tinyText();
    auto stages = tinyPlan(options);
    std::vector<const plan::StagePlanT *> all;
    for (auto &stage : stages) {
      stage->data->base = "..";
      all.push_back(stage.get());
    }
    auto manifest = plan::writePlanDirectory(systemFiles(), folder / "plan",
                                             tinyManifest(*all[0]), all);
    ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  }

  pid_t start(std::vector<std::string> arguments,
              const std::vector<std::string> &environment = {}) {
    arguments.insert(arguments.begin(), {"reckon-run", folder / "plan",
                                         "--run-dir", folder / "run"});
    pid_t child = fork();
    if (child == 0) {
      if (chdir(folder.path.c_str()) != 0)
        _exit(98);
      int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0666);
      int err = open("err", O_WRONLY | O_CREAT | O_TRUNC, 0666);
      dup2(out, STDOUT_FILENO);
      dup2(err, STDERR_FILENO);
      setenv("OMP_NUM_THREADS", "1", 1);
      for (const std::string &variable : environment)
        putenv(strdup(variable.c_str()));
      std::vector<char *> argv;
      for (std::string &argument : arguments)
        argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(RECKON_RUN, argv.data());
      _exit(99);
    }
    return child;
  }

  static int wait(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  int run(const std::vector<std::string> &arguments,
          const std::vector<std::string> &environment = {}) {
    return wait(start(arguments, environment));
  }

  std::vector<nlohmann::json> lines(const std::string &name) {
    std::vector<nlohmann::json> all;
    std::stringstream text(readFile(folder / name));
    for (std::string line; std::getline(text, line);)
      all.push_back(nlohmann::json::parse(line));
    return all;
  }

  std::string err() { return readFile(folder / "err"); }
  std::string out() { return readFile(folder / "out"); }

  TemporaryFolder folder;
};

} // namespace

TEST_F(RunTool, TrainsOnFourProcesses) {
  write({.dp = 2, .pp = 2, .microBatches = 2, .zero1 = true});
  ASSERT_EQ(run({"--steps", "4", "--dump", "4:weights,gradients", "dump"},
                {"RECKON_TRACE=1"}),
            0)
      << err();
  RankResult want =
      referenceTiny(8, 4, initialWeights("embed"), initialWeights("head"));
  auto metrics = lines("run/metrics.jsonl");
  ASSERT_EQ(metrics.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(metrics[i]["loss"].get<double>(), want.losses[i], 1e-5);
    EXPECT_NEAR(metrics[i]["grad_norm"].get<double>(), want.norms[i], 1e-4);
  }
  for (int rank = 0; rank < 4; ++rank) {
    std::string suffix = "-0000" + std::to_string(rank);
    EXPECT_NE(readFile(folder / ("run/rank" + suffix + ".log")), "");
    EXPECT_NE(readFile(folder / ("run/trace" + suffix + ".csv")), "");
  }
  auto events = lines("run/events.jsonl");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["arena_bytes"].size(), 4u);
  EXPECT_EQ(events[1]["event"], "end");
  EXPECT_NE(readFile(folder / "dump/gradients.safetensors"), "");
  EXPECT_NE(out().find("on 4 processes (dp 2, pp 2)"), std::string::npos);
  EXPECT_NE(out().find("step 4/4"), std::string::npos);
}

TEST_F(RunTool, OneProcessNeedsNoLauncher) {
  write({});
  EXPECT_EQ(run({"--steps", "2"}), 0) << err();
  EXPECT_EQ(lines("run/metrics.jsonl").size(), 2u);
  // A new run starts its metrics anew.
  EXPECT_EQ(run({"--steps", "3", "--local", "1"}), 0) << err();
  EXPECT_EQ(lines("run/metrics.jsonl").size(), 3u);
}

TEST_F(RunTool, AKilledRankEndsTheJobWith42) {
  write({.dp = 2, .pp = 2, .microBatches = 2});
  EXPECT_EQ(run({"--steps", "50"}, {"RECKON_FAULT=kill@rank=3,step=3"}), 42);
  EXPECT_NE(err().find("rank 3"), std::string::npos) << err();
  // Rank 0 may learn of the death before it has written down step 2, whose
  // last collective let the other rank go on.
  size_t written = lines("run/metrics.jsonl").size();
  EXPECT_GE(written, 1u);
  EXPECT_LE(written, 2u);
}

TEST_F(RunTool, ARankThatExitsPassesItsCodeOn) {
  write({.dp = 2});
  EXPECT_EQ(run({"--steps", "50"}, {"RECKON_FAULT=exit=7@rank=1,step=2"}), 7);
}

TEST_F(RunTool, InterruptEndsAllRanksWith21) {
  for (int signal : {SIGINT, SIGTERM}) {
    write({.dp = 2, .pp = 2});
    pid_t child = start({"--steps", "100000000"});
    for (int i = 0;
         i < 200 && !std::filesystem::exists(folder / "run/metrics.jsonl"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(child, signal);
    EXPECT_EQ(wait(child), 21) << err();
    // lines() parses every line: none is torn.
    EXPECT_GT(lines("run/metrics.jsonl").size(), 1u);
    auto events = lines("run/events.jsonl");
    ASSERT_EQ(events.size(), 2u); // one end, whichever rank heard of it first
    EXPECT_EQ(events.back()["event"], "end");
    EXPECT_EQ(events.back()["exit_code"], 21);
    std::filesystem::remove_all(folder / "run");
  }
}

TEST_F(RunTool, UsageErrorsAre2) {
  write({.dp = 2});
  EXPECT_EQ(run({"--nonsense"}), 2);
  EXPECT_EQ(run({"--local", "3"}), 2);
  EXPECT_NE(err().find("needs 2 ranks, got 3: pass --local 2"),
            std::string::npos)
      << err();
  EXPECT_EQ(run({"--steps", "-1"}), 2);
  EXPECT_EQ(run({"--steps", "3", "--dump", "4:weights", "d"}), 2);
  EXPECT_EQ(run({"--dump", "x", "d"}), 2);
  EXPECT_EQ(run({"--resume", "somewhere"}), 2);
  EXPECT_EQ(run({}, {"RECKON_FAULT=boom"}), 2);
  EXPECT_EQ(run({}, {"RECKON_FAULT=kill@rank=2,step=1"}), 2);
  EXPECT_EQ(run({}, {"RECKON_QUEUE_SEED=many"}), 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_F(RunTool, WrongWorldIs4) {
  write({.dp = 2});
  EXPECT_EQ(run({}, {"RANK=0", "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1",
                     "MASTER_PORT=1"}),
            4);
  EXPECT_NE(err().find("needs 2 ranks, got 3"), std::string::npos) << err();
}

TEST_F(RunTool, EnvironmentErrorsAre5) {
  EXPECT_EQ(run({}), 5); // no plan
  EXPECT_NE(err().find("manifest.json"), std::string::npos) << err();
  write({.dp = 2});
  EXPECT_EQ(run({"--device", "cuda"}), 5);
  EXPECT_EQ(run({"--data", "missing.txt"}), 5);
  std::string text = err();
  EXPECT_NE(text.find("missing.txt"), std::string::npos) << text;
  // One rank speaks for all.
  EXPECT_EQ(text.find("missing.txt"), text.rfind("missing.txt")) << text;
  EXPECT_EQ(run({"--init-weights", "missing.safetensors"}), 5);
}

TEST_F(RunTool, DamageIs6AndOtherVersionsAre4) {
  write({.pp = 2});
  std::string stage = folder / "plan/stage-001.rkplan";
  std::string good = readFile(stage);
  std::string bad = good;
  bad[bad.size() / 2] ^= 1;
  std::ofstream(stage, std::ios::binary) << bad;
  EXPECT_EQ(run({}), 6);
  EXPECT_NE(err().find("stage-001.rkplan: expected digest"), std::string::npos)
      << err();
  std::ofstream(stage, std::ios::binary) << good;
  std::string manifest = folder / "plan/manifest.json";
  std::string text = readFile(manifest);
  std::ofstream(manifest) << text.substr(0, text.size() / 2);
  EXPECT_EQ(run({}), 6);
  auto json = nlohmann::json::parse(text);
  json["versions"]["plan_format"] = 99;
  std::ofstream(manifest) << json.dump();
  EXPECT_EQ(run({}), 4);
  std::filesystem::remove(stage);
  std::ofstream(manifest) << text;
  EXPECT_EQ(run({}), 5);
}
