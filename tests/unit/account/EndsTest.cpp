//===- EndsTest.cpp - stages without layers, copied key heads -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// All numbers are counted by hand from the sizes of `small`:
//   h 64, f 96, 4 heads of 16, 512 rows of vocabulary, 64 tokens, two layers
//   embedding and head   512 x 64                              = 32768
//   a layer              2 x 64 + 4 x 64 x 64 + 3 x 64 x 96    = 34944
//   final norm                                                 =    64
//   hidden state, bf16   2 x 64 x 64                           =  8192 B
//   token numbers        4 x 64 (reckon), 8 x 64 (others)      = 256, 512 B
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Activations.h"

#include "tests/unit/account/Models.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

ModelShape small(int64_t heads = 4, int64_t kvHeads = 4) {
  ModelShape m = llama(64, 96, 2, heads, kvHeads);
  m.vocab = 512;
  m.sequence = 64;
  return m;
}

/// "E|t|t|L": the embedding, each layer and the loss on a stage of its own.
model::Choice apart() {
  return {.pp = 4, .numMicroBatches = 8, .layout = {0, 1, 1, 0}};
}

constexpr uint64_t kTable = 32768, kLayer = 34944, kNorm = 64;

TEST(Ends, StatesOfEveryRepresentation) {
  struct Figure {
    Representation representation;
    int64_t zero;
    uint64_t parameters, gradients, optimizer; ///< bytes of an element, x 2
  };
  // Two replicas. ZeRO-1 halves the optimizer; FSDP2 halves 4 + 4 + 8 and
  // keeps whole weights and gradients of a pipeline's stage beside them.
  for (const Figure &f : {Figure{Representation::Megatron, 0, 4, 8, 24},
                          {Representation::DeepSpeed, 0, 4, 4, 24},
                          {Representation::DeepSpeed, 1, 4, 4, 12},
                          {Representation::TorchTitan, 3, 4, 4, 8}}) {
    Accountant accountant(jobOf(small(), f.representation));
    model::Choice c = apart();
    c.dp = 2;
    c.zero = f.zero;
    const uint64_t elements[] = {kTable, kLayer, kLayer, kTable + kNorm};
    for (int64_t rank = 0; rank < 4; ++rank) {
      SCOPED_TRACE(std::string(toString(f.representation)) + " " +
                   std::to_string(rank));
      StageMemory memory = accountant.memory(c, rank);
      uint64_t n = elements[rank];
      EXPECT_EQ(memory.parameters, f.parameters * n / 2);
      EXPECT_EQ(memory.gradients, f.gradients * n / 2);
      EXPECT_EQ(memory.optimizer, f.optimizer * n / 2);
      if (f.representation == Representation::TorchTitan) {
        EXPECT_EQ(bytesOf(accountant.items(c, rank),
                          "gathered weights and whole gradients"),
                  6 * n);
      }
    }
  }
}

// Nothing is saved by layers, none is at work. Four embeddings are in flight,
// each with its token numbers; the loss has its norm's input and output and
// 8 B a logit of the one micro-batch that it works on.
TEST(Ends, ActivationsOfFrameworks) {
  for (auto representation :
       {Representation::Megatron, Representation::DeepSpeed,
        Representation::TorchTitan}) {
    SCOPED_TRACE(toString(representation));
    Accountant accountant(jobOf(small(), representation));
    model::Choice c = apart();
    auto first = accountant.items(c, 0), second = accountant.items(c, 1),
         last = accountant.items(c, 3);
    for (const auto &items : {first, last}) {
      EXPECT_EQ(bytesOf(items, "saved by layers"), 0u);
      EXPECT_EQ(bytesOf(items, "gradients in a layer"), 0u);
    }
    double buffers = accountant.profile().pipelineBuffers / 2;
    EXPECT_EQ(bytesOf(first, "inputs in flight"),
              4 * (512 + static_cast<uint64_t>(buffers * 8192)));
    EXPECT_EQ(bytesOf(last, "final norm"), 2u * 8192);
    EXPECT_EQ(
        bytesOf(last, "logits"),
        static_cast<uint64_t>(accountant.profile().logits * 64 * 512) +
            static_cast<uint64_t>(accountant.profile().wholeLogits * 64 * 512));
    // To and from the next rank; the second rank has two neighbours, three
    // micro-batches in flight and a layer at work.
    EXPECT_EQ(bytesOf(first, "pipeline messages"), 2u * 8192);
    EXPECT_EQ(bytesOf(second, "pipeline messages"), 4u * 8192);
    EXPECT_EQ(bytesOf(second, "saved by layers") % 3, 0u);
    EXPECT_GT(bytesOf(second, "gradients in a layer"), 0u);
  }
}

// Reckon's own arena of rank 0: bf16 weights, fp32 gradients, main weights and
// two moments; five slots of token numbers (four in flight and the one that
// comes); two results and two gradients on their way; the two blocks of
// scalars. The forward's result is in a slot and the backward has none, so it
// has no workspace, and no rotary table.
TEST(Ends, ArenaOfTheEmbedding) {
  Accountant accountant(jobOf(small()));
  StageMemory memory = accountant.memory(apart(), 0);
  EXPECT_EQ(memory.parameters, 2 * kTable);
  EXPECT_EQ(memory.gradients, 4 * kTable);
  EXPECT_EQ(memory.optimizer, 12 * kTable);
  EXPECT_EQ(memory.activations, 5u * 256);
  EXPECT_EQ(memory.communication, 4u * 8192);
  EXPECT_EQ(memory.logits, 0u);
  EXPECT_EQ(memory.workspace, 512u);
}

// The last rank: its table and a norm whose four buffers are rounded up to 256
// B; two slots for the hidden states that it reads, one of targets; two
// gradients on their way back. In the backward the logits, 2 x 64 x 512, their
// row sums and the norm's output and gradient.
TEST(Ends, ArenaOfTheLoss) {
  Accountant accountant(jobOf(small()));
  StageMemory memory = accountant.memory(apart(), 3);
  EXPECT_EQ(memory.parameters, 2 * kTable + 256);
  EXPECT_EQ(memory.gradients, 4 * kTable + 256);
  EXPECT_EQ(memory.optimizer, 12 * kTable + 3 * 256);
  EXPECT_EQ(memory.activations, 2u * 8192 + 256);
  EXPECT_EQ(memory.communication, 2u * 8192);
  EXPECT_EQ(memory.logits, 65536u);
  EXPECT_GE(memory.workspace, 512u + 8192);
  EXPECT_LE(memory.workspace, 512u + 3 * 8192);
}

// The two implementations of reckon's account agree on such layouts too.
TEST(Ends, EqualsStageModel) {
  ModelShape m = small();
  StageModel stages({m.vocab, m.hidden, m.ffn, m.layers, m.heads, m.kvHeads,
                     m.headDim, m.sequence},
                    jobOf(m).reserveBytes);
  Accountant accountant(jobOf(m));
  for (auto layout :
       {std::vector<int64_t>{0, 1, 1, 0}, {0, 2}, {2, 0}, {0, 2, 0}})
    for (auto recompute : {Recompute::None, Recompute::Full})
      for (auto kind : {ScheduleKind::OneFOneB, ScheduleKind::GPipe})
        for (int64_t tp : {1, 2})
          for (int64_t zero : {0, 1}) {
            model::Choice c{.tp = tp,
                            .sequenceParallel = tp > 1,
                            .pp = static_cast<int64_t>(layout.size()),
                            .dp = 2,
                            .zero = zero,
                            .numMicroBatches = 8,
                            .recompute = recompute,
                            .schedule = kind,
                            .layout = layout};
            for (int64_t rank = 0; rank < c.pp; ++rank) {
              StageMemory ours = accountant.memory(c, rank),
                          theirs = stages.memory(c, rank);
              EXPECT_EQ(ours.activations, theirs.activations);
              EXPECT_EQ(ours.communication, theirs.communication);
              EXPECT_EQ(ours.logits, theirs.logits);
              EXPECT_EQ(ours.workspace, theirs.workspace);
              EXPECT_EQ(ours.total(), theirs.total());
            }
          }
}

// Interleaved, two chunks a rank: E|t on rank 0, t|L on rank 1.
TEST(Ends, ChunksOfARank) {
  Accountant accountant(jobOf(small(), Representation::Megatron));
  model::Choice c{.pp = 2,
                  .v = 2,
                  .numMicroBatches = 8,
                  .schedule = ScheduleKind::Interleaved,
                  .layout = {0, 1, 1, 0}};
  EXPECT_EQ(statesOf(accountant.memory(c, 0)), 18 * (kTable + kLayer));
  EXPECT_EQ(statesOf(accountant.memory(c, 1)), 18 * (kLayer + kTable + kNorm));
  // Of the 5 chunks of micro-batches that rank 0 holds at most (two at the
  // warm-up's begin, one for each of two chunks, one more), only those of its
  // second chunk keep a layer: two.
  model::Choice whole{.numMicroBatches = 1, .layout = {2}};
  uint64_t layer = bytesOf(accountant.items(whole, 0), "saved by layers") / 2;
  uint64_t saved = bytesOf(accountant.items(c, 0), "saved by layers");
  EXPECT_EQ(saved % layer, 0u);
  EXPECT_EQ(saved / layer, 2u);
}

// Eight heads of 8, two of keys, on four ranks: 16 rows of queries each, and
// with a head of keys and of values (8 rows) a copy each, where an even share
// would be 4.
//   a layer of a rank   128 + 64 x (16 + 8 + 8 + 16) + 3 x 64 x 24 = 7808
//   Megatron            parts the joined matrix, (64 + 2 x 16) / 4 rows: 7296
TEST(Copies, WeightsOfKeyHeads) {
  ModelShape m = small(8, 2);
  model::Choice c = apart();
  c.tp = 4;
  auto states = [&](Representation representation) {
    return statesOf(Accountant(jobOf(m, representation)).memory(c, 1));
  };
  EXPECT_EQ(states(Representation::Megatron), 18u * 7296);
  // Norms of 64 take 256 B in bf16 and in fp32 each: 5 buffers of 256 instead
  // of 18 x 64 B.
  EXPECT_EQ(states(Representation::Reckon), 18u * (7808 - 128) + 2 * (5 * 256));
}

// bf16: queries and context 16 wide, keys and values 8, for 64 tokens;
// statistics 4 B for each of two heads. Megatron gathers all 96 columns.
TEST(Copies, ActivationsOfKeyHeads) {
  ModelShape m = small(8, 2);
  model::Choice c = apart();
  c.tp = 4;
  for (auto representation :
       {Representation::Reckon, Representation::Megatron}) {
    Job job = jobOf(m, representation);
    ActivationBytes a =
        activationBytes(job, memoryProfile("", representation), c, 128);
    EXPECT_EQ(a.dense.attention,
              64u * (2 * 16 + 2 * 8 + 2 * 8 + 2 * 16 + 4 * 2));
    bool gathers = representation == Representation::Megatron;
    EXPECT_EQ(a.gatheredKeys, gathers ? 64u * 2 * (64 + 16 + 16) : 0u);
    Accountant accountant(job);
    auto gathered = [&](int64_t rank) {
      return bytesOf(accountant.items(c, rank),
                     "gathered queries, keys and values");
    };
    EXPECT_EQ(gathered(0), 0u); // the embedding alone
    EXPECT_EQ(gathered(1), a.gatheredKeys);
  }
}

} // namespace
