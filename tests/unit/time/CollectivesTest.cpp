//===- CollectivesTest.cpp - which link a group crosses, and how long -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Collectives.h"
#include "tests/unit/time/Jobs.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::model::test;

namespace {

struct Cluster : testing::Test {
  Job job = llama70b(1024, 512);
  Efficiency e = efficiencyFor(job, efficiencyTable());
  Links links{job, e};
};

TEST_F(Cluster, GroupsOfANodeUseItsLink) {
  EXPECT_TRUE(links.within({8, 1}));
  EXPECT_TRUE(links.within({2, 4}));
  EXPECT_FALSE(links.within({16, 1}));
  EXPECT_FALSE(links.within({2, 8}));
  EXPECT_DOUBLE_EQ(links.bandwidth({8, 1}), 450e9 * e.intra);
  // Stride 8: one member a node, one rail of 50 GB/s.
  EXPECT_DOUBLE_EQ(links.bandwidth({128, 8}), 50e9 * e.inter);
  // Stride 2: four members a node share four rails.
  EXPECT_DOUBLE_EQ(links.bandwidth({512, 2}), 4 * 50e9 * e.inter);
  EXPECT_EQ(links.perDomain({512, 2}), 4);
}

// 7/8 of 1 GB at the link's bandwidth, 7 hops of latency.
TEST_F(Cluster, APassMovesAllButTheOwnShare) {
  double seconds = links.pass({8, 1}, 1e9);
  EXPECT_NEAR(seconds,
              1e9 * 7 / 8 / (450e9 * e.intra) + e.intraLatency + 7 * e.intraHop,
              1e-12);
  EXPECT_EQ(links.pass({1, 1}, 1e9), 0);
}

TEST_F(Cluster, MoreBytesRanksAndPiecesNeverTakeLess) {
  for (int64_t stride : {1, 2, 8})
    for (int64_t size : {2, 4, 8, 16, 64}) {
      EXPECT_LE(links.pass({size, stride}, 1e8),
                links.pass({size, stride}, 2e8));
      EXPECT_LE(links.pass({size, stride}, 1e8),
                links.pass({size, stride}, 1e8, 4));
      EXPECT_LE(links.pass({size, stride}, 1e8),
                links.pass({2 * size, stride}, 1e8));
    }
}

// Of 64 ranks on 8 nodes a token with 8 experts visits 7/8 of its experts on
// other nodes, which are 7 (1 - (7/8)^8) = 4.595 distinct ones of the 7 visits:
// sending it once to each saves a third.
TEST_F(Cluster, ATokenIsSentOnceToANode) {
  double bytes = 8e9;
  double all = links.allToAll({64, 1}, bytes, 1e-9); // no token goes twice
  double once = links.allToAll({64, 1}, bytes, 8);
  EXPECT_NEAR((once - e.expertLatency) / (all - e.expertLatency), 4.595 / 7,
              0.01);
}

TEST(Topology, ARackIsOneDomain) {
  Job job = machine("gb200-nvl72", 256);
  EXPECT_EQ(job.domain(), 64); // eight boards of eight; 72 is no power of two
  job.gpusPerNode = 72;
  job.nodes = 4;
  EXPECT_EQ(job.domain(), 72);
  EXPECT_EQ(machine("h100-sxm", 256).domain(), 8);
  EXPECT_EQ(machine("gb200-nvl72", 8).domain(), 8);
}

} // namespace
