//===- ExactTest.cpp - what can be compiled equals the compiler's arena ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/account/Models.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

ModelDims dimsOf(const ModelShape &m) {
  return {m.vocab, m.hidden,  m.ffn,     m.layers,
          m.heads, m.kvHeads, m.headDim, m.sequence};
}

/// Calls `visit` with every compilable choice of a few degrees.
template <typename Visit> void compilable(const ModelShape &m, Visit visit) {
  for (int64_t tp : {1, 2, 8})
    for (int64_t pp : {1, 2, 3, 7})
      for (bool sequence : {false, true})
        for (int64_t batch : {1, 3})
          for (int64_t zero : {0, 1})
            for (int64_t dp : {1, 3})
              for (int64_t micro : {1, 2, 16})
                for (auto recompute : {Recompute::None, Recompute::Full})
                  for (auto kind :
                       {ScheduleKind::GPipe, ScheduleKind::OneFOneB})
                    for (auto precision :
                         {Precision::Fp32, Precision::Bf16, Precision::Fp8}) {
                      model::Choice c{.tp = tp,
                                      .sequenceParallel = sequence && tp > 1,
                                      .pp = pp,
                                      .dp = dp,
                                      .zero = zero,
                                      .microBatch = batch,
                                      .numMicroBatches = micro,
                                      .recompute = recompute,
                                      .schedule = kind,
                                      .precision = precision};
                      c.layout.assign(pp, m.layers / pp);
                      c.layout.back() += m.layers % pp;
                      visit(c);
                    }
}

TEST(Exact, EqualsStageModelToTheByte) {
  ModelShape odd = llama(60, 100, 7, 6, 2); // sizes that alignment rounds up
  odd.vocab = 250;
  odd.sequence = 33;
  ModelShape small = llama(64, 96, 12, 8, 8);
  small.vocab = 512;
  small.sequence = 64;
  int64_t compared = 0;
  for (const ModelShape &m : {odd, small, llama8B()}) {
    Job job = jobOf(m);
    Accountant accountant(job);
    StageModel stages(dimsOf(m), job.reserveBytes);
    compilable(m, [&](const model::Choice &c) {
      if (!accountant.exact(c))
        return;
      uint64_t peak = 0;
      for (int64_t rank = 0; rank < c.pp; ++rank, ++compared) {
        StageMemory ours = accountant.memory(c, rank);
        StageMemory theirs = stages.memory(c, rank);
        ASSERT_EQ(ours.parameters, theirs.parameters);
        ASSERT_EQ(ours.gradients, theirs.gradients);
        ASSERT_EQ(ours.optimizer, theirs.optimizer);
        ASSERT_EQ(ours.activations, theirs.activations);
        ASSERT_EQ(ours.logits, theirs.logits);
        ASSERT_EQ(ours.communication, theirs.communication);
        ASSERT_EQ(ours.workspace, theirs.workspace);
        ASSERT_EQ(ours.reserve, theirs.reserve);
        peak = std::max(peak, theirs.arena());
      }
      ASSERT_EQ(accountant.peak(c).arena, peak);
    });
  }
  EXPECT_GT(compared, 4000);
}

// The account looks at eight layers of a fragment at most; here fragments of
// more, over shapes that round and shapes that do not.
TEST(Exact, ManyLayersNeedTheWorkspaceOfEight) {
  for (int64_t hidden : {60, 96, 4096})
    for (int64_t ffn : {100, 256, 14336})
      for (int64_t kv : {2, 8})
        for (int64_t heads : {8, 24})
          for (int64_t tp : {1, 2})
            for (bool sequence : {false, true})
              for (auto recompute : {Recompute::None, Recompute::Full})
                for (int64_t layers : {9, 13, 20}) {
                  ModelDims dims{512, hidden, ffn, 80, heads, kv, 16, 64};
                  StageShape shape{.layers = layers,
                                   .first = hidden == 60,
                                   .last = ffn == 100,
                                   .tp = tp,
                                   .sequenceParallel = sequence && tp > 1,
                                   .microBatch = 1,
                                   .recompute = recompute};
                  StageShape eight = shape;
                  eight.layers = 8;
                  ASSERT_EQ(fragmentMemory(dims, shape).laneBytes(),
                            fragmentMemory(dims, eight).laneBytes());
                }
}

TEST(Exact, OnlyWhatTheCompilerLowers) {
  ModelShape m = llama8B();
  Accountant ours(jobOf(m)), megatron(jobOf(m, Representation::Megatron));
  model::Choice choice{.layout = {32}};
  EXPECT_TRUE(ours.exact(choice));
  EXPECT_FALSE(megatron.exact(choice));
  choice.zero = 2;
  EXPECT_FALSE(ours.exact(choice));
  choice = {.recompute = Recompute::Selective, .layout = {32}};
  EXPECT_FALSE(ours.exact(choice));
  choice = {.cp = 2, .layout = {32}};
  EXPECT_FALSE(ours.exact(choice));
  m.tied = true;
  EXPECT_FALSE(Accountant(jobOf(m)).exact({.layout = {32}}));
}

// What the compiler cannot lower yet follows the same rules: with one chunk a
// rank, one rank to share with and nothing recomputed, the extended account is
// the exact one.
TEST(Exact, ExtensionsMeetTheExactAccount) {
  ModelShape m = llama8B();
  Accountant accountant(jobOf(m));
  model::Choice base{.pp = 4, .numMicroBatches = 8, .layout = {8, 8, 8, 8}};
  model::Choice none = base;
  none.recomputeLayers = {0, 0, 0, 0}; // of 8 layers, none
  ASSERT_FALSE(accountant.exact(none));
  model::Choice all = base;
  all.recompute = Recompute::Full;
  model::Choice every = all;
  every.recomputeLayers = {8, 8, 8, 8};
  for (int64_t rank = 0; rank < 4; ++rank) {
    StageMemory exact = accountant.memory(base, rank);
    StageMemory extended = accountant.memory(none, rank);
    EXPECT_EQ(exact.activations, extended.activations);
    EXPECT_EQ(exact.communication, extended.communication);
    EXPECT_NEAR(exact.workspace, extended.workspace, 0.05 * exact.workspace);
    EXPECT_EQ(accountant.memory(all, rank).activations,
              accountant.memory(every, rank).activations);
  }
}

} // namespace
