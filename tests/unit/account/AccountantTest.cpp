//===- AccountantTest.cpp - a rank's whole account ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/account/Models.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

/// Choices of many shapes, some of them odd.
std::vector<model::Choice> choices(const ModelShape &m) {
  std::vector<model::Choice> all;
  for (int64_t pp : {1, 2, 4, 8})
    for (int64_t v : {1, 2, 4})
      for (int64_t zero : {0, 1, 2, 3})
        for (auto kind :
             {ScheduleKind::OneFOneB, ScheduleKind::GPipe,
              ScheduleKind::Interleaved, ScheduleKind::Bfs, ScheduleKind::ZbH1,
              ScheduleKind::ZbH2, ScheduleKind::ZbV, ScheduleKind::DualPipeV,
              ScheduleKind::Synthesized})
          for (auto recompute :
               {Recompute::None, Recompute::Selective, Recompute::Full})
            for (int64_t cp : {1, 2}) {
              model::Choice c{.tp = 2,
                              .sequenceParallel = cp == 1,
                              .cp = cp,
                              .contextMethod = cp > 1 ? ContextMethod::Ring
                                                      : ContextMethod::None,
                              .pp = pp,
                              .v = v,
                              .dp = 4,
                              .ep = m.isMoe() ? 8 : 1,
                              .zero = zero,
                              .microBatch = 1,
                              .numMicroBatches = 16,
                              .recompute = recompute,
                              .schedule = kind};
              if ((kind == ScheduleKind::OneFOneB && v > 1) ||
                  !(kind == ScheduleKind::Synthesized ||
                    whyNotSchedule(shapeOf(c)).empty()))
                continue;
              c.layout.assign(pp * v, m.layers / (pp * v));
              c.layout[pp * v / 2] += m.layers % (pp * v);
              all.push_back(c);
            }
  return all;
}

TEST(Accountant, ItemsSumToCategoriesAndPeakIsTheFullestRank) {
  ModelShape tied = llama8B();
  tied.tied = true;
  ModelShape moe = deepseekV3();
  moe.mtpLayers = 1;
  for (const ModelShape &m : {llama8B(), tied, moe, gpt(6144, 48, 64)})
    for (auto representation :
         {Representation::Reckon, Representation::Megatron,
          Representation::DeepSpeed, Representation::TorchTitan}) {
      Accountant accountant(jobOf(m, representation));
      for (const model::Choice &c : choices(m)) {
        uint64_t most = 0;
        int64_t fullest = 0;
        for (int64_t rank = 0; rank < c.pp; ++rank) {
          StageMemory memory = accountant.memory(c, rank);
          uint64_t sums[8] = {};
          for (const MemoryItem &item : accountant.items(c, rank)) {
            sums[static_cast<size_t>(item.category)] += item.bytes;
            EXPECT_GT(item.bytes, 0u);
            EXPECT_FALSE(item.formula.empty()) << item.name;
          }
          ASSERT_EQ(sums[0], memory.parameters);
          ASSERT_EQ(sums[1], memory.gradients);
          ASSERT_EQ(sums[2], memory.optimizer);
          ASSERT_EQ(sums[3], memory.activations);
          ASSERT_EQ(sums[4], memory.logits);
          ASSERT_EQ(sums[5], memory.communication);
          ASSERT_EQ(sums[6], memory.workspace);
          ASSERT_EQ(sums[7], memory.reserve);
          if (memory.arena() > most)
            most = memory.arena(), fullest = rank;
        }
        PeakMemory peak = accountant.peak(c);
        ASSERT_EQ(peak.arena, most);
        ASSERT_EQ(peak.ppRank, fullest);
        ASSERT_LE(accountant.lowerBound(c), most);
      }
    }
}

// 70B on 1024 devices, stage 0, the seed's "about 49 GB":
//   states        (20 layers + embedding) / 8 = 2.271e9 elements x
//                 (6 + 12/32 = 6.375) = 14.48e9 B
//   in flight     2 x 3 + 3 x 4 + 1 = 19 chunks of 5 layers = 95 layers
//   activations   95 x 33.5 x 8192 x 8192 / 8 = 26.70e9 B, and the softmax
//                 statistics, 95 x 4 x 64 x 8192 / 8 = 0.025e9
// 41.2 GB bare. With buffers, the allocator's share and the reserve 47 to 50.
TEST(Accountant, SeedFortyNine) {
  Accountant accountant(jobOf(llama70B(), Representation::Megatron));
  StageMemory memory = accountant.memory(seed70B(), 0);
  EXPECT_NEAR(statesOf(memory), 14.48e9, 0.01e9);
  auto items = accountant.items(seed70B(), 0);
  double saved = bytesOf(items, "saved by layers");
  EXPECT_NEAR(saved, 26.72e9, 0.01e9);
  EXPECT_NEAR(statesOf(memory) + saved, 41.2e9, 0.05e9);
  EXPECT_NEAR(95.0 * 34 * 8192 * 8192 / 8, 27.10e9, 0.01e9); // the seed's 34
  // 41.2 + 5 % of the activations 1.3 + messages and gathers 0.3 + gradients
  // in a layer 0.3 + reserve 2.1 = 45.3; a context of 3.2 GB and 10 % lost
  // by the allocator, as the seed assumes, give 48.8.
  EXPECT_NEAR(memory.total(), 45.3e9, 0.5e9);
  MemoryProfile seed = accountant.profile();
  seed.allocator = seed.stateAllocator = 1.10;
  seed.fixedGib = 1; // 3.2 GB with the reserve of 2 GiB
  StageMemory most =
      Accountant(jobOf(llama70B(), Representation::Megatron), seed)
          .memory(seed70B(), 0);
  EXPECT_GT(most.total(), 47e9);
  EXPECT_LT(most.total(), 50e9);
}

// Uneven chunks: [1, 2, 2, 3] layers. The average is 2, the heaviest stage
// has 3: half as much again.
TEST(Accountant, HeaviestStageNotTheAverage) {
  ModelShape m = llama(1024, 4096, 8, 8, 8);
  m.vocab = 1024;
  Accountant accountant(jobOf(m, Representation::Megatron));
  model::Choice even{.pp = 4, .numMicroBatches = 1, .layout = {2, 2, 2, 2}};
  model::Choice uneven = even;
  uneven.layout = {1, 2, 2, 3};
  auto states = [&](const model::Choice &c, int64_t rank) {
    return static_cast<double>(statesOf(accountant.memory(c, rank)));
  };
  double head = 1024 * 1024 + 1024;
  double layer = m.layerParameters(false).total();
  EXPECT_EQ(states(uneven, 3), 18 * (3 * layer + head));
  EXPECT_EQ(states(even, 3), 18 * (2 * layer + head));
  EXPECT_EQ(accountant.peak(uneven).ppRank, 3);
}

// Interleaved p = 4, v = 4, m = 16, rank 0: the chunks' sizes count, not only
// how many live: 19 live chunks, each of 5 layers or of the sizes given.
TEST(Accountant, UnevenChunksUseSimultaneousPeaks) {
  Accountant accountant(jobOf(llama70B(), Representation::Megatron));
  model::Choice even = seed70B(), uneven = even;
  uneven.layout[0] = 6;
  uneven.layout[12] = 4; // the first and the last chunk of rank 0
  uint64_t saved = bytesOf(accountant.items(even, 0), "saved by layers");
  uint64_t layer = saved / 95;
  uint64_t moved = bytesOf(accountant.items(uneven, 0), "saved by layers");
  EXPECT_EQ((moved - saved) % layer, 0u);
  // When the first four backwards have emptied chunk 3, chunk 0 holds the
  // forwards of two groups, 8: one layer more in each.
  EXPECT_EQ(moved - saved, 8 * layer);
}

// ZB-H1 keeps p = 4 stashes on every rank, 1F1B p - r; split backwards free
// part of a stash early.
TEST(Accountant, SchedulesDifferInWhatTheyHold) {
  Accountant accountant(jobOf(llama8B(), Representation::Megatron));
  model::Choice c{.pp = 4, .numMicroBatches = 16, .layout = {8, 8, 8, 8}};
  auto saved = [&](ScheduleKind kind, int64_t rank) {
    c.schedule = kind;
    return bytesOf(accountant.items(c, rank), "saved by layers");
  };
  uint64_t one = saved(ScheduleKind::OneFOneB, 3);
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(saved(ScheduleKind::OneFOneB, rank), (4 - rank) * one);
    EXPECT_EQ(saved(ScheduleKind::GPipe, rank), 16 * one);
  }
  EXPECT_GE(saved(ScheduleKind::ZbH1, 3), one);
  EXPECT_LT(saved(ScheduleKind::ZbH1, 3), 5 * one);
  EXPECT_GT(saved(ScheduleKind::ZbH2, 0), saved(ScheduleKind::ZbH1, 0));
}

TEST(Accountant, RecomputedLayersOfAStage) {
  Accountant accountant(jobOf(llama8B()));
  model::Choice c{.pp = 2, .numMicroBatches = 2, .layout = {16, 16}};
  auto saved = [&](std::vector<int64_t> layers) {
    c.recomputeLayers = std::move(layers);
    c.recompute = Recompute::Full;
    return bytesOf(accountant.items(c, 0), "saved by layers");
  };
  uint64_t none = saved({0, 0}), all = saved({16, 16}), half = saved({8, 8});
  EXPECT_EQ(2 * half, none + all);
  EXPECT_LT(all, none);
}

// Context parallelism halves what a rank saves and adds buffers for keys and
// values of the others: 2 blocks of 2 x 2 B x T x 1024 for 8B's 8 heads.
TEST(Accountant, ContextParallelBuffers) {
  Accountant accountant(jobOf(llama8B()));
  model::Choice one{.numMicroBatches = 1, .layout = {32}}, two = one;
  two.cp = 2;
  two.contextMethod = ContextMethod::Ring;
  EXPECT_EQ(bytesOf(accountant.items(two, 0), "buffers of context parallelism"),
            2u * 2 * 2 * 4096 * 1024);
  EXPECT_EQ(bytesOf(accountant.items(one, 0), "buffers of context parallelism"),
            0u);
}

TEST(Accountant, BasisSaysWhatIsExact) {
  Accountant ours(jobOf(llama8B())),
      theirs(jobOf(llama8B(), Representation::Megatron));
  model::Choice c{.pp = 2, .numMicroBatches = 2, .layout = {16, 16}};
  for (const MemoryItem &item : ours.items(c, 0))
    EXPECT_NE(item.basis, MemoryBasis::Calibrated) << item.name;
  bool calibrated = false;
  for (const MemoryItem &item : theirs.items(c, 0))
    calibrated |= item.basis == MemoryBasis::Calibrated;
  EXPECT_TRUE(calibrated);
}

// nanotron, by its own layout: the head of 131072 x 4096 counts as 2.2 of the
// 32 layers, so a share of two stages is 17.1 and the first takes 18.
TEST(Accountant, DefaultLayouts) {
  ModelShape m = llama(4096, 14336, 32, 32, 32);
  m.vocab = 131072;
  auto layout = [&](const char *profile, int64_t stages) {
    Job job = jobOf(m, Representation::Megatron, profile);
    Accountant accountant(job);
    return defaultLayout(job, accountant.profile(), {.pp = stages});
  };
  EXPECT_EQ(layout("nanotron", 2), (std::vector<int64_t>{18, 14}));
  EXPECT_EQ(layout("nanotron", 4), (std::vector<int64_t>{9, 9, 8, 6}));
  EXPECT_EQ(layout("", 2), (std::vector<int64_t>{16, 16}));
  EXPECT_EQ(layout("", 3), (std::vector<int64_t>{11, 11, 10}));
  // 126 layers on 16 stages: with embedding and head as layers 128 / 16.
  m.layers = 126;
  std::vector<int64_t> eights(16, 8);
  eights.front() = eights.back() = 7;
  EXPECT_EQ(layout("", 16), eights);
  EXPECT_EQ(defaultLayout(jobOf(m), {}, {.pp = 16}), eights);
}

} // namespace
