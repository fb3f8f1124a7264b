//===- CoordinatesTest.cpp - ranks, coordinates, groups -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Coordinates.h"

#include <gtest/gtest.h>

#include <set>

using namespace reckon::plan;

static MeshT mesh(uint32_t tp, uint32_t cp, uint32_t ep, uint32_t dp,
                  uint32_t pp) {
  MeshT m;
  m.tp = tp;
  m.cp = cp;
  m.ep = ep;
  m.dp = dp;
  m.pp = pp;
  return m;
}

TEST(Coordinates, RankOrderIsTpCpEpDpPp) {
  MeshT m = mesh(2, 3, 1, 4, 5);
  EXPECT_EQ(worldSize(m), 120);
  EXPECT_EQ(coordOf(m, 1), (Coord{.tp = 1}));
  EXPECT_EQ(coordOf(m, 2), (Coord{.cp = 1}));
  EXPECT_EQ(coordOf(m, 6), (Coord{.dp = 1}));
  EXPECT_EQ(coordOf(m, 24), (Coord{.pp = 1}));
  for (int rank = 0; rank < 120; ++rank)
    EXPECT_EQ(rankOf(m, coordOf(m, rank)), rank);
}

TEST(Coordinates, ExpressionsTakeTheFirstCaseElseTheSum) {
  ExprT expr;
  expr.base = 10;
  expr.terms = {Term(Axis::tp, 3), Term(Axis::dp, 100)};
  EXPECT_EQ(evalExpr(expr, {.tp = 2, .dp = 1}), 116);
  expr.cases = {Case(Axis::pp, false, 0, -1), Case(Axis::tp, false, 2, 7),
                Case(Axis::dp, true, 0, 9)};
  EXPECT_EQ(evalExpr(expr, {.tp = 2, .dp = 1, .pp = 0}), -1);
  EXPECT_EQ(evalExpr(expr, {.tp = 2, .dp = 1, .pp = 1}), 7);
  EXPECT_EQ(evalExpr(expr, {.tp = 1, .dp = 1, .pp = 1}), 9);
  EXPECT_EQ(evalExpr(expr, {.tp = 1, .dp = 0, .pp = 1}), 13);
  EXPECT_EQ(evalExpr(std::unique_ptr<ExprT>(), {}), 0);
  EXPECT_FALSE(isConstant(expr));
  EXPECT_TRUE(isConstant(*constantExpr(5)));
  EXPECT_EQ(evalExpr(constantExpr(5), {.tp = 3}), 5);
}

TEST(Coordinates, GroupsShareTheOtherAxes) {
  MeshT m = mesh(2, 1, 1, 3, 2);
  GroupT dp;
  dp.axes = {Axis::dp};
  EXPECT_EQ(groupRanks(dp, m, {.tp = 1, .dp = 2, .pp = 1}),
            (std::vector<int>{7, 9, 11}));
  GroupT both;
  both.axes = {Axis::dp, Axis::tp};
  EXPECT_EQ(groupRanks(both, m, {.pp = 1}),
            (std::vector<int>{6, 7, 8, 9, 10, 11}));
  GroupT none;
  EXPECT_EQ(groupRanks(none, m, {.tp = 1}), std::vector<int>{1});
}

TEST(Coordinates, GroupsOfAnAxisPartitionTheWorld) {
  MeshT m = mesh(2, 2, 1, 3, 2);
  for (Axis axis : kRankOrder) {
    GroupT group;
    group.axes = {axis};
    std::set<std::vector<int>> all;
    for (int rank = 0; rank < worldSize(m); ++rank)
      all.insert(groupRanks(group, m, coordOf(m, rank)));
    std::set<int> seen;
    for (const std::vector<int> &ranks : all) {
      EXPECT_EQ(static_cast<int64_t>(ranks.size()), axisSize(m, axis));
      for (int rank : ranks)
        EXPECT_TRUE(seen.insert(rank).second);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), worldSize(m));
  }
}

TEST(Coordinates, FiltersKeepSomeOfAnAxis) {
  // The stages of tied embeddings: first and last.
  MeshT m = mesh(1, 1, 1, 2, 4);
  GroupT tied;
  tied.axes = {Axis::pp};
  tied.filters.push_back(std::make_unique<AxisFilterT>());
  tied.filters[0]->axis = Axis::pp;
  tied.filters[0]->values = {0, 3};
  EXPECT_EQ(groupRanks(tied, m, {.dp = 1, .pp = 0}), (std::vector<int>{1, 7}));
  // A rank outside is no member of its own group.
  EXPECT_EQ(groupRanks(tied, m, {.dp = 1, .pp = 2}), (std::vector<int>{1, 7}));
}

TEST(Coordinates, RanksAreDescribedByTheAxesThatMatter) {
  EXPECT_EQ(describeRank(mesh(2, 1, 1, 1, 2), 3), "rank 3 (tp 1, pp 1)");
  EXPECT_EQ(describeRank(mesh(1, 1, 1, 1, 1), 0), "rank 0");
}

TEST(Coordinates, SizesOfTypesAndShapes) {
  EXPECT_EQ(dtypeSize(DType::bf16), 2);
  EXPECT_EQ(dtypeSize(DType::f64), 8);
  EXPECT_EQ(elementCount({}), 1);
  EXPECT_EQ(elementCount({3, 5}), 15);
}
