//===- PlacementTest.cpp - tasks, devices and status files ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/Placement.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/Control.h"
#include "runtime/launch/StatusFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <unistd.h>

namespace reckon {
namespace {

/// Rank 5 of 8 on two nodes.
RankEnv step(std::vector<int> tasks = {4, 4}) {
  RankEnv env;
  env.rank = 5;
  env.world = 0;
  for (int count : tasks)
    env.world += count;
  env.nodes = {"n3", "n7", "n8", "n9"};
  env.nodes.resize(tasks.size());
  env.tasksPerNode = std::move(tasks);
  env.node = "n7";
  env.job = "17.0";
  return env;
}

const PlannedTasks kPlan{"plan", 8, 2, 4, 2};

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(Placement, TakesWhatThePlanNeeds) {
  EXPECT_TRUE(checkTasks(step(), kPlan).ok());
  // Older plans, and plans of no certain cluster, say nothing about nodes.
  EXPECT_TRUE(checkTasks(step({8}), {"plan", 8, 0, 0, 2}).ok());
  // Outside Slurm nothing is known about nodes.
  RankEnv plain;
  plain.world = 8;
  EXPECT_TRUE(checkTasks(plain, kPlan).ok());
  // A plan of two ranks on a node with room for four.
  EXPECT_TRUE(checkTasks(step({2}), {"plan", 2, 1, 4, 2}).ok());
}

TEST(Placement, RefusesOtherNumbersWithBoth) {
  Status status = checkTasks(step({2, 2}), kPlan);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Incompatible);
  EXPECT_TRUE(has(status.error().message,
                  "plan needs 8 ranks, got 4 tasks from Slurm; use srun -N 2 "
                  "--ntasks-per-node=4"))
      << status.error().message;
  RankEnv plain;
  plain.world = 1;
  status = checkTasks(plain, kPlan);
  ASSERT_FALSE(status);
  EXPECT_TRUE(
      has(status.error().message, "8 ranks, got 1 task from WORLD_SIZE"));
}

TEST(Placement, RefusesOtherNodes) {
  for (std::vector<int> tasks :
       {std::vector<int>{5, 3}, {8}, {2, 2, 2, 2}, {4, 3, 1}}) {
    Status status = checkTasks(step(tasks), kPlan);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Incompatible);
    EXPECT_TRUE(has(status.error().message, "4 on each node"))
        << status.error().message;
  }
  EXPECT_TRUE(has(checkTasks(step({4, 3, 1}), kPlan).error().message,
                  "3 tasks on n7;"));
}

TEST(Placement, WarnsOfGroupsAcrossNodes) {
  EXPECT_EQ(placementWarning(step(), kPlan), "");
  EXPECT_TRUE(has(placementWarning(step(), {"plan", 8, 2, 4, 8}), "cross"));
  EXPECT_EQ(placementWarning(step({8}), {"plan", 8, 1, 8, 8}), "");
  EXPECT_EQ(placementWarning(step({3, 5}), {"plan", 8, 2, 4, 1}), "");
}

TEST(Placement, DeviceOfATask) {
  auto device = [](std::optional<std::string> visible, int localRank) {
    Surroundings from;
    from.variable = [&](const char *name) {
      EXPECT_STREQ(name, "CUDA_VISIBLE_DEVICES");
      return visible;
    };
    Result<int> got = localDevice(from, localRank);
    return got ? *got : -static_cast<int>(got.error().code);
  };
  constexpr int kNone = -static_cast<int>(ExitCode::Environment);
  EXPECT_EQ(device(std::nullopt, 3), 3);
  EXPECT_EQ(device("0,1,2,3", 3), 3);
  EXPECT_EQ(device("4,5,6,7", 1), 1); // an ordinal among the visible ones
  EXPECT_EQ(device("5", 3), 0);       // --gpus-per-task=1
  EXPECT_EQ(device("GPU-8f3a", 1), 0);
  EXPECT_EQ(device("0,1", 2), kNone);
  EXPECT_EQ(device("", 0), kNone);
  EXPECT_EQ(device("NoDevFiles", 0), kNone);
  EXPECT_EQ(device("-1", 0), kNone);
}

TEST(Placement, ThreadsOfARank) {
  EXPECT_EQ(threadsPerRank(16, 16, 4), 4); // not bound: all share
  EXPECT_EQ(threadsPerRank(4, 16, 4), 4);  // bound to cores of its own
  EXPECT_EQ(threadsPerRank(8, 16, 4), 2);  // the job has half a node
  EXPECT_EQ(threadsPerRank(2, 2, 4), 1);
  EXPECT_EQ(threadsPerRank(16, 16, 1), 16);
  EXPECT_EQ(threadsPerRank(1, 16, 0), 1);
  Surroundings from;
  from.variable = [](const char *) { return std::string("3"); };
  EXPECT_EQ(threadsOfThisRank(from, 2), 0);
}

TEST(Placement, NodesOfRanks) {
  RankEnv env = step({5, 3});
  EXPECT_EQ(env.nodeOf(0), "n3");
  EXPECT_EQ(env.nodeOf(4), "n3");
  EXPECT_EQ(env.nodeOf(5), "n7");
  EXPECT_EQ(env.nodeOf(8), "");
  EXPECT_EQ(env.describe(7), "rank 7 (n7)");
  EXPECT_EQ(RankEnv().describe(7), "rank 7");
}

TEST(BlamedRank, IsReadFromWhatACommunicatorSays) {
  EXPECT_EQ(comm::blamedRank(comm::diedError(12)), 12);
  EXPECT_EQ(comm::blamedRank(makeError(ExitCode::DeadPeer,
                                       "rank 3 stopped with exit code 5: ...")),
            3);
  EXPECT_EQ(comm::blamedRank(makeError(ExitCode::DeadPeer, "rank 3 is late")),
            std::nullopt);
  EXPECT_EQ(
      comm::blamedRank(makeError(ExitCode::Interrupted, "rank 0 stopped: ...")),
      std::nullopt);
}

TEST(StatusFile, SaysHowARankEnded) {
  using Json = nlohmann::json;
  RankEnd end{ExitCode::DeadPeer, "rank 2 died \xff", 2, 12};
  Json json = Json::parse(statusText(step(), "abc", end, 1'500'000'000));
  EXPECT_EQ(json["rank"], 5);
  EXPECT_EQ(json["world_size"], 8);
  EXPECT_EQ(json["host"], "n7");
  EXPECT_EQ(json["job"], "17.0");
  EXPECT_EQ(json["plan"], "abc");
  EXPECT_EQ(json["exit_code"], 42);
  EXPECT_EQ(json["dead_rank"], 2);
  EXPECT_EQ(json["dead_host"], "n3");
  EXPECT_EQ(json["step"], 12);
  EXPECT_EQ(json["time"], 1.5);
  json = Json::parse(statusText(RankEnv(), "abc", {}, 0));
  EXPECT_EQ(json["exit_code"], 0);
  EXPECT_TRUE(json["dead_rank"].is_null());
  EXPECT_TRUE(json["job"].is_null());
}

TEST(StatusFile, ReplacesThatOfAnEarlierRun) {
  std::string folder = (std::filesystem::temp_directory_path() /
                        ("reckon-status-" + std::to_string(::getpid())))
                           .string();
  std::string path = folder + "/status-00005.json";
  {
    auto file = StatusFile::open(step(), "abc", folder);
    ASSERT_TRUE(file) << file.error().message;
    file->write({ExitCode::Hang, "hang", std::nullopt, 3});
    EXPECT_TRUE(systemFiles().exists(path));
  }
  auto file = StatusFile::open(step(), "abc", folder);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(systemFiles().exists(path));
  file->writeInterrupted();
  auto text = systemFiles().read(path);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(nlohmann::json::parse(*text)["exit_code"], 21);
  auto left = systemFiles().list(folder);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->size(), 1u);
  std::filesystem::remove_all(folder);
}

} // namespace
} // namespace reckon
