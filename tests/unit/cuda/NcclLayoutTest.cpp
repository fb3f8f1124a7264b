//===- NcclLayoutTest.cpp - rounds of splits, settings --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/NcclLayout.h"
#include "runtime/cuda/NcclEnvironment.h"

#include <algorithm>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace reckon::cuda {
namespace {

using testing::HasSubstr;
using Requests = std::vector<std::vector<NcclRequest>>; // by rank

NcclRequest group(const std::string &name, std::vector<int> ranks) {
  return {false, name, 0, std::move(ranks)};
}
NcclRequest channel(const std::string &name, uint32_t tag, int from, int to) {
  return {true, name, tag, {from, to}};
}

void add(Requests &requests, const NcclRequest &request) {
  for (int rank : request.ranks)
    requests[static_cast<size_t>(rank)].push_back(request);
}

Result<NcclLayout> layOutAll(const Requests &requests) {
  std::vector<std::string> told;
  for (size_t r = 0; r < requests.size(); ++r)
    told.push_back(encodeRequests(static_cast<int>(r), requests[r]));
  return layOut(told);
}

/// No rank is twice in a round, and ranks of one colour are one communicator's.
void expectSound(const NcclLayout &layout) {
  std::set<std::pair<int, int>> rankInRound, colorInRound;
  for (const NcclMember &member : layout.members) {
    if (member.round < 0)
      continue;
    EXPECT_LT(member.round, layout.rounds);
    EXPECT_TRUE(colorInRound.insert({member.round, member.color}).second);
    for (int rank : member.what.ranks)
      EXPECT_TRUE(rankInRound.insert({member.round, rank}).second)
          << "rank " << rank << " twice in round " << member.round;
  }
}

/// tp, dp and pp groups of a grid, the world, and channels between stages.
Requests grid(int tp, int dp, int pp) {
  int world = tp * dp * pp;
  Requests requests(static_cast<size_t>(world));
  auto rankOf = [&](int t, int d, int p) { return t + tp * (d + dp * p); };
  std::vector<int> all;
  for (int r = 0; r < world; ++r)
    all.push_back(r);
  add(requests, group("world", all));
  for (int p = 0; p < pp; ++p) {
    for (int d = 0; d < dp; ++d) {
      std::vector<int> ranks;
      for (int t = 0; t < tp; ++t)
        ranks.push_back(rankOf(t, d, p));
      if (tp > 1)
        add(requests, group("tp", ranks));
    }
    for (int t = 0; t < tp; ++t) {
      std::vector<int> ranks;
      for (int d = 0; d < dp; ++d)
        ranks.push_back(rankOf(t, d, p));
      if (dp > 1)
        add(requests, group("dp", ranks));
    }
  }
  uint32_t id = 0;
  for (int p = 0; p + 1 < pp; ++p, id += 2)
    for (int t = 0; t < tp; ++t)
      for (int d = 0; d < dp; ++d) {
        int low = rankOf(t, d, p), high = rankOf(t, d, p + 1);
        add(requests, channel("forward", id, low, high));
        add(requests, channel("backward", id + 1, high, low));
      }
  return requests;
}

TEST(NcclLayout, DisjointCommunicatorsShareARound) {
  auto layout = layOutAll(grid(2, 2, 2));
  ASSERT_TRUE(layout) << layout.error().message;
  expectSound(*layout);
  // Every rank: tp, dp, two channels; the world is the parent itself.
  EXPECT_EQ(layout->rounds, 4);
  EXPECT_EQ(layout->members.size(), 1u + 4 + 4 + 8);
  EXPECT_EQ(layout->find(group("world", {0, 1, 2, 3, 4, 5, 6, 7}))->round, -1);
}

TEST(NcclLayout, RoundsDoNotGrowWithTheWorld) {
  for (int pp : {4, 8, 16}) {
    auto layout = layOutAll(grid(4, 4, pp));
    ASSERT_TRUE(layout) << layout.error().message;
    expectSound(*layout);
    // A middle rank: tp, dp and four channels.
    EXPECT_EQ(layout->rounds, 6) << pp << " stages";
  }
}

TEST(NcclLayout, RandomGroupsAreSound) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    Requests requests(12);
    size_t most = 0;
    for (int g = 0; g < 20; ++g) {
      std::vector<int> ranks(12);
      for (int r = 0; r < 12; ++r)
        ranks[static_cast<size_t>(r)] = r;
      std::shuffle(ranks.begin(), ranks.end(), random);
      ranks.resize(2 + random() % 5);
      add(requests, group(std::to_string(g), ranks));
    }
    for (const auto &own : requests)
      most = std::max(most, own.size());
    auto layout = layOutAll(requests);
    ASSERT_TRUE(layout) << layout.error().message;
    expectSound(*layout);
    EXPECT_EQ(layout->members.size(), 20u);
    EXPECT_GE(layout->rounds, static_cast<int>(most));
    EXPECT_LT(layout->rounds, 20);
  }
}

TEST(NcclLayout, OnlyOneGroupOfAllRanksIsTheParent) {
  Requests requests(2);
  add(requests, group("norm", {0, 1}));
  add(requests, group("dp", {0, 1}));
  add(requests, group("reversed", {1, 0}));
  auto layout = layOutAll(requests);
  ASSERT_TRUE(layout) << layout.error().message;
  expectSound(*layout);
  EXPECT_EQ(layout->rounds, 2);
  EXPECT_EQ(layout->members[0].round, -1);
  EXPECT_EQ(layout->find(group("reversed", {0, 1})), nullptr);
}

TEST(NcclLayout, ARankThatLacksAGroupIsNamed) {
  Requests requests = grid(2, 1, 2);
  std::erase_if(requests[3],
                [](const NcclRequest &own) { return own.name == "tp"; });
  auto layout = layOutAll(requests);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code, ExitCode::Mismatch);
  EXPECT_THAT(layout.error().message,
              HasSubstr("rank 2 takes part in group 'tp' together with rank 3, "
                        "but rank 3 has none with the same ranks"));
}

TEST(NcclLayout, RanksThatDisagreeAboutAGroupAreNamed) {
  Requests requests(3);
  requests[0].push_back(group("dp", {0, 1}));
  requests[1].push_back(group("dp", {0, 1}));
  requests[2].push_back(group("dp", {0, 1, 2}));
  auto layout = layOutAll(requests);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code, ExitCode::Mismatch);
  EXPECT_THAT(layout.error().message,
              HasSubstr("rank 2 takes part in group 'dp', but the first rank"));
}

TEST(NcclLayout, AChannelHasTwoEnds) {
  Requests requests(2);
  requests[0].push_back(channel("forward", 3, 0, 1));
  requests[1].push_back(channel("forward", 4, 0, 1));
  auto layout = layOutAll(requests);
  ASSERT_FALSE(layout);
  EXPECT_THAT(layout.error().message, HasSubstr("channel 'forward'"));
}

TEST(NcclLayout, CutListsAreRefused) {
  std::string told = encodeRequests(0, {group("dp", {0, 1})});
  for (size_t length = 1; length < told.size(); ++length) {
    auto layout = layOut({told.substr(0, length), ""});
    ASSERT_FALSE(layout);
    EXPECT_EQ(layout.error().code, ExitCode::Internal) << length << " bytes";
  }
}

TEST(NcclEnvironment, SetsWhatTheUserHasNotSet) {
  ::unsetenv("NCCL_ALGO");
  ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", 1);
  auto settings = settingsFor({true, 12});
  ASSERT_EQ(settings.size(), 4u);
  auto lines = applyEnvironment(settings);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("warning: NCCL_LAUNCH_ORDER_IMPLICIT=0 is "
                                  "kept as set by the user, the plan expects "
                                  "1: communicators share the GPU"));
  EXPECT_STREQ(std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT"), "0");
  EXPECT_THAT(lines[1], testing::StartsWith("NCCL_ALGO=Ring: sums"));
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), "Ring");
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "12");
  // A second time everything is as the plan wants it, but the user's.
  EXPECT_EQ(applyEnvironment(settings), lines);
}

TEST(NcclEnvironment, FewStreamsNeedNoQueues) {
  for (const Setting &setting : settingsFor({false, 8})) {
    EXPECT_NE(setting.name, "CUDA_DEVICE_MAX_CONNECTIONS");
    EXPECT_NE(setting.name, "NCCL_ALGO");
  }
  EXPECT_EQ(settingsFor({false, 100}).back().value, "32");
}

} // namespace
} // namespace reckon::cuda
