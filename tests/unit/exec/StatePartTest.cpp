//===- StatePartTest.cpp - parts of tensors, first values -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/StatePart.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/exec/StateInit.h"
#include "tests/unit/exec/TinyPlan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

using namespace reckon;
using namespace reckon::exec;
using namespace reckon::plan;
using reckon::test::take;

namespace {

/// w[6, 10] cut over tp in dimension `dim` (or not: -1), and flattened over dp
/// if `flat`.
StateT cut(int dim, bool flat, int tp, int dp) {
  StateT state;
  state.name = "w";
  state.role = Role::parameter;
  state.dtype = DType::f32;
  state.global_shape = {6, 10};
  int64_t elements = 60;
  for (int d = 0; d < 2; ++d) {
    auto extent = std::make_unique<ExtentT>();
    int64_t size = state.global_shape[d];
    extent->start = constantExpr(0);
    if (d == dim) {
      size /= tp;
      elements /= tp;
      extent->start->terms.push_back(Term(Axis::tp, size));
    }
    extent->size = constantExpr(size);
    state.box.push_back(std::move(extent));
  }
  if (flat) {
    state.flat_axes = {Axis::dp};
    state.flat_elements = (elements + dp - 1) / dp;
    elements = state.flat_elements;
  }
  state.bytes = static_cast<uint64_t>(elements) * 4;
  state.init = std::make_unique<InitT>();
  state.init->kind = InitKind::normal;
  state.init->stddev = 0.5;
  return state;
}

MeshT meshOf(uint32_t tp, uint32_t dp) {
  MeshT mesh;
  mesh.tp = tp;
  mesh.dp = dp;
  mesh.cp = mesh.ep = mesh.pp = 1;
  return mesh;
}

} // namespace

TEST(StatePart, RanksCoverTheTensorOnce) {
  for (int dim : {-1, 0, 1})
    for (bool flat : {false, true})
      for (int dp : {1, 2, 4, 7}) {
        int tp = dim < 0 ? 1 : 2;
        MeshT mesh = meshOf(tp, dp);
        StateT state = cut(dim, flat, tp, dp);
        std::map<int64_t, int> seen;
        for (int rank = 0; rank < tp * dp; ++rank) {
          Coord coord = coordOf(mesh, rank);
          StatePart part = partOf(state, mesh, coord);
          int64_t next = part.bufferFirst;
          part.forEachRun([&](int64_t global, int64_t local, int64_t n) {
            EXPECT_EQ(local, next);
            EXPECT_GT(n, 0);
            next += n;
            for (int64_t i = 0; i < n; ++i)
              ++seen[global + i];
          });
          EXPECT_EQ(next - part.bufferFirst, part.count);
          EXPECT_LE(next * 4, static_cast<int64_t>(state.bytes));
        }
        ASSERT_EQ(seen.size(), 60u);
        EXPECT_EQ(seen.rbegin()->first, 59);
        for (auto [index, count] : seen)
          EXPECT_EQ(count, flat ? 1 : dp) << index;
      }
}

TEST(StatePart, RunsAreAsLongAsTheyCanBe) {
  MeshT mesh = meshOf(2, 1);
  auto runs = [&](int dim, Coord coord) {
    std::vector<std::array<int64_t, 3>> all;
    StateT state = cut(dim, false, dim < 0 ? 1 : 2, 1);
    partOf(state, mesh, coord).forEachRun([&](int64_t a, int64_t b, int64_t c) {
      all.push_back({a, b, c});
    });
    return all;
  };
  using Runs = std::vector<std::array<int64_t, 3>>;
  EXPECT_EQ(runs(-1, {}), (Runs{{0, 0, 60}}));
  EXPECT_EQ(runs(0, {.tp = 1}), (Runs{{30, 0, 30}}));
  Runs columns = runs(1, {.tp = 1});
  ASSERT_EQ(columns.size(), 6u);
  EXPECT_EQ(columns[2], (std::array<int64_t, 3>{25, 10, 5}));
}

TEST(StatePart, AGradientReducedInPlaceLiesAtItsRange) {
  MeshT mesh = meshOf(1, 4);
  StateT state = cut(-1, true, 1, 4);
  state.role = Role::gradient;
  state.bytes = 15 * 4;
  EXPECT_EQ(partOf(state, mesh, {.dp = 2}).bufferFirst, 0);
  state.bytes = 4 * 15 * 4; // the whole accumulator
  EXPECT_EQ(partOf(state, mesh, {.dp = 2}).bufferFirst, 30);
}

TEST(StatePart, TheOwnerHasCoordinateZero) {
  StateT state = cut(1, false, 2, 2);
  EXPECT_TRUE(ownsState(state, {.tp = 1, .dp = 1}));
  state.replica_axes = {Axis::dp};
  EXPECT_FALSE(ownsState(state, {.tp = 1, .dp = 1}));
  EXPECT_TRUE(ownsState(state, {.tp = 1, .dp = 0}));
}

TEST(StateInit, EveryLayoutHasTheBitsOfTheWholeTensor) {
  auto valuesOf = [](int dim, bool flat, int tp, int dp) {
    std::vector<float> whole(60);
    MeshT mesh = meshOf(tp, dp);
    for (int rank = 0; rank < tp * dp; ++rank) {
      StagePlanT plan;
      plan.seed = 11;
      plan.mesh = std::make_unique<MeshT>(mesh);
      plan.states.push_back(std::make_unique<StateT>(cut(dim, flat, tp, dp)));
      plan.arena_bytes = plan.states[0]->bytes;
      auto device = take(device::makeCpuDevice({.threads = 1, .isa = {}}));
      auto *arena = static_cast<std::byte *>(
          *device->allocateArena(static_cast<int64_t>(plan.arena_bytes)));
      Coord coord = coordOf(mesh, rank);
      EXPECT_TRUE(initStates(plan, coord, *device, arena, nullptr).ok());
      const auto *values = reinterpret_cast<const float *>(arena);
      StatePart part = partOf(*plan.states[0], mesh, coord);
      part.forEachRun([&](int64_t global, int64_t local, int64_t n) {
        std::memcpy(&whole[global], values + local, n * 4);
      });
      for (size_t i = part.count; i < plan.arena_bytes / 4; ++i)
        EXPECT_EQ(values[i], 0.0f) << "padding";
    }
    return whole;
  };
  std::vector<float> want = valuesOf(-1, false, 1, 1);
  EXPECT_GT(std::set<float>(want.begin(), want.end()).size(), 55u);
  EXPECT_EQ(valuesOf(0, false, 2, 1), want);
  EXPECT_EQ(valuesOf(1, false, 2, 1), want);
  EXPECT_EQ(valuesOf(1, true, 2, 7), want);
  EXPECT_EQ(valuesOf(-1, true, 1, 4), want);
}

TEST(StateInit, MainWeightsAndRotaryTables) {
  StagePlanT plan;
  plan.seed = 3;
  plan.mesh = std::make_unique<MeshT>(meshOf(1, 1));
  auto add = [&](StateT state, uint64_t offset) {
    state.offset = offset;
    plan.states.push_back(std::make_unique<StateT>(std::move(state)));
    return plan.states.back().get();
  };
  StateT *parameter = add(cut(-1, false, 1, 1), 0);
  parameter->dtype = DType::bf16;
  parameter->bytes = 120;
  StateT *main = add(cut(-1, false, 1, 1), 256);
  main->name = "w#main_weight";
  main->role = Role::main_weight;
  main->init.reset(); // that of its parameter
  StateT *rope = add(StateT(), 512);
  rope->name = "rope.table";
  rope->role = Role::buffer;
  rope->global_shape = {4, 8};
  rope->bytes = 128;
  rope->init = std::make_unique<InitT>();
  rope->init->kind = InitKind::rope;
  rope->init->rope = {10000, 1, 1, 4, 8192};
  auto device = take(device::makeCpuDevice({.threads = 1, .isa = {}}));
  auto *arena = static_cast<std::byte *>(*device->allocateArena(1024));
  ASSERT_TRUE(initStates(plan, {}, *device, arena, nullptr).ok());
  const auto *halves = reinterpret_cast<const uint16_t *>(arena);
  const auto *floats = reinterpret_cast<const float *>(arena + 256);
  for (int i = 0; i < 60; ++i) {
    uint32_t bits = uint32_t(halves[i]) << 16;
    float rounded;
    std::memcpy(&rounded, &bits, 4);
    EXPECT_NEAR(rounded, floats[i], std::abs(floats[i]) / 256) << i;
    EXPECT_NE(floats[i], 0.0f);
  }
  const auto *table = reinterpret_cast<const float *>(arena + 512);
  EXPECT_EQ(table[0], 1.0f);                // cos 0
  EXPECT_EQ(table[4], 0.0f);                // sin 0
  EXPECT_NEAR(table[8], 0.540302306, 1e-7); // cos 1
}
