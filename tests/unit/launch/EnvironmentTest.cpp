//===- EnvironmentTest.cpp - ranks and hosts from the environment ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/HostList.h"
#include "runtime/launch/RankEnv.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

namespace reckon {
namespace {

using Hosts = std::vector<std::string>;

TEST(HostList, ExpandsWhatScontrolExpands) {
  EXPECT_EQ(*expandHostList("gpu[001-003,007],h1"),
            (Hosts{"gpu001", "gpu002", "gpu003", "gpu007", "h1"}));
  EXPECT_EQ(*expandHostList("n1"), (Hosts{"n1"}));
  EXPECT_EQ(*expandHostList("n[9-11]"), (Hosts{"n9", "n10", "n11"}));
  EXPECT_EQ(*expandHostList("r[1-2]n[01-02]-ib"),
            (Hosts{"r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"}));
}

TEST(HostList, RefusesMalformedLists) {
  for (const char *bad : {"", "a,", "a[1-", "a[]", "a[3-1]", "a[x]", "a1]",
                          "a[-3]", "a[1-2000000]"}) {
    auto hosts = expandHostList(bad);
    ASSERT_FALSE(hosts) << bad;
    EXPECT_EQ(hosts.error().code, ExitCode::BadSpec);
    EXPECT_NE(hosts.error().message.find(bad), std::string::npos);
  }
}

TEST(TaskCounts, Expand) {
  EXPECT_EQ(*expandTaskCounts("2(x4)"), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(*expandTaskCounts("5,1(x3)"), (std::vector<int>{5, 1, 1, 1}));
  for (const char *bad : {"", "2(x)", "(x2)", "2(x3", "a", "2(x9999999)"})
    EXPECT_FALSE(expandTaskCounts(bad)) << bad;
}

Surroundings with(std::map<std::string, std::string> variables,
                  std::set<std::string> hosts = {}) {
  return {[variables](const char *name) -> std::optional<std::string> {
            auto found = variables.find(name);
            if (found == variables.end())
              return std::nullopt;
            return found->second;
          },
          [hosts](const std::string &host) { return hosts.count(host) > 0; }};
}

TEST(RankEnv, NothingMeansStartedAlone) {
  auto env = readRankEnv(with({}));
  ASSERT_TRUE(env);
  EXPECT_FALSE(env->has_value());
  // Within a batch script, but not within a step.
  env = readRankEnv(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));
  ASSERT_TRUE(env);
  EXPECT_FALSE(env->has_value());
}

TEST(RankEnv, PlainVariables) {
  auto env = readRankEnv(with({{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node1"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_RUN_ID", "abc"}}));
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ((*env)->rank, 5);
  EXPECT_EQ((*env)->world, 8);
  EXPECT_EQ((*env)->localRank, 1);
  EXPECT_EQ((*env)->localWorld, 4);
  EXPECT_EQ((*env)->master, "tcp:node1:29500");
  EXPECT_EQ((*env)->nonce, "abc");
}

TEST(RankEnv, OwnAddressGoesBeforeTheCommonOne) {
  std::map<std::string, std::string> variables{
      {"RANK", "0"},
      {"WORLD_SIZE", "2"},
      {"MASTER_ADDR", "old"},
      {"MASTER_PORT", "1"},
      {"RECKON_MASTER_ADDR", "fe80::1"},
      {"RECKON_MASTER_PORT", "20001"}};
  EXPECT_EQ((*readRankEnv(with(variables)))->master, "tcp:[fe80::1]:20001");
  variables["RECKON_MASTER_ADDR"] = "unix:@reckon-1";
  EXPECT_EQ((*readRankEnv(with(variables)))->master, "unix:@reckon-1");
}

TEST(RankEnv, ErrorsNameTheVariable) {
  struct {
    std::map<std::string, std::string> variables;
    const char *named;
    ExitCode code;
  } cases[] = {
      {{{"RANK", "0"}}, "WORLD_SIZE", ExitCode::BadSpec},
      {{{"WORLD_SIZE", "2"}}, "RANK", ExitCode::BadSpec},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK", ExitCode::BadSpec},
      {{{"RANK", "1x"}, {"WORLD_SIZE", "2"}}, "'1x'", ExitCode::BadSpec},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}},
       "RECKON_MASTER_ADDR",
       ExitCode::Environment},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}},
       "MASTER_PORT",
       ExitCode::BadSpec},
  };
  for (const auto &c : cases) {
    auto env = readRankEnv(with(c.variables));
    ASSERT_FALSE(env) << c.named;
    EXPECT_EQ(env.error().code, c.code);
    EXPECT_NE(env.error().message.find(c.named), std::string::npos)
        << env.error().message;
  }
}

std::map<std::string, std::string> slurmStep() {
  return {{"SLURM_PROCID", "3"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_NODEID", "1"},
          {"SLURM_NTASKS", "8"},
          {"SLURM_STEP_ID", "2"},
          {"SLURM_JOB_ID", "300"},
          {"SLURM_STEP_NODELIST", "gpu[1-2],gpu4"},
          {"SLURM_TASKS_PER_NODE", "2,4,2"},
          {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"},
          {"SLURM_SRUN_COMM_PORT", "40001"}};
}

TEST(RankEnv, Slurm) {
  auto env = readRankEnv(with(slurmStep(), {"gpu1"}));
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ((*env)->rank, 3);
  EXPECT_EQ((*env)->world, 8);
  EXPECT_EQ((*env)->localRank, 1);
  EXPECT_EQ((*env)->localWorld, 4); // node 1 of 2, 4, 2
  // 20000 + (37 * 300 + 2) mod 10000
  EXPECT_EQ((*env)->master, "tcp:gpu1:21102");
}

TEST(RankEnv, SlurmNodesThatDoNotResolve) {
  auto variables = slurmStep();
  EXPECT_EQ((*readRankEnv(with(variables)))->master, "tcp:10.0.0.9:21102");
  variables.erase("SLURM_LAUNCH_NODE_IPADDR");
  auto env = readRankEnv(with(variables));
  ASSERT_FALSE(env);
  EXPECT_EQ(env.error().code, ExitCode::Environment);
  EXPECT_NE(env.error().message.find("gpu1"), std::string::npos);
}

TEST(RankEnv, SlurmRunIdsDifferBetweenRestartsAndSruns) {
  auto variables = slurmStep();
  std::set<std::string> ids{(*readRankEnv(with(variables)))->nonce};
  variables["SLURM_RESTART_COUNT"] = "1";
  ids.insert((*readRankEnv(with(variables)))->nonce);
  variables["SLURM_SRUN_COMM_PORT"] = "40002";
  ids.insert((*readRankEnv(with(variables)))->nonce);
  EXPECT_EQ(ids.size(), 3u);
}

TEST(RankEnv, TheLaunchersVariablesWinOverSlurms) {
  auto variables = slurmStep();
  variables["RANK"] = "1";
  variables["WORLD_SIZE"] = "2";
  variables["RECKON_MASTER_ADDR"] = "unix:@x";
  auto env = readRankEnv(with(variables));
  ASSERT_TRUE(env);
  EXPECT_EQ((*env)->rank, 1);
  EXPECT_EQ((*env)->world, 2);
}

} // namespace
} // namespace reckon
