//===- ActivationsTest.cpp - what layers save -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Activations.h"

#include "tests/unit/account/Models.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

constexpr double kGib = 1073741824.0;

LayerActivations layerOf(const Job &job, const model::Choice &choice) {
  MemoryProfile profile = memoryProfile(job.profile, job.representation);
  return activationBytes(job, profile, choice, job.model.vocab / choice.tp)
      .dense;
}

double unit(const ModelShape &m, int64_t batch) {
  return static_cast<double>(m.sequence * batch * m.hidden);
}

// 10 (norms 8, masks 2) + 24 (attention 8, feed-forward 16) = 34 bytes per
// token and hidden unit, plus the fused kernel's statistics, 4 a s b.
TEST(Activations, ThirtyFour) {
  ModelShape m = gpt(12288, 96, 96);
  Job job = jobOf(m, Representation::Megatron);
  LayerActivations layer = layerOf(job, {});
  double u = unit(m, 1), statistics = 4.0 * m.heads * m.sequence;
  EXPECT_EQ(layer.whole(), static_cast<uint64_t>(34 * u + statistics));
  // Full recompute keeps 2 of 34: 94.1 % less.
  EXPECT_NEAR(1 - layer.input / (34 * u), 0.941, 0.0005);
}

// 8 + 4q + 4k + 6r with q = 1, k = 1/8, r = 3.5: 33.5; 8B has k = 1/4, 34; 405B
// r = 3.25 and k = 1/16, 31.75. Statistics 4 a s b beside.
TEST(Activations, Itemised) {
  for (auto [model, bytes] :
       {std::pair(llama8B(), 34.0), std::pair(llama70B(), 33.5),
        std::pair(llama405B(), 31.75)})
    for (Representation representation :
         {Representation::Reckon, Representation::Megatron}) {
      Job job = jobOf(model, representation);
      double u = unit(model, 2), statistics = 4.0 * model.heads * 2 * 8192;
      EXPECT_EQ(layerOf(job, {.microBatch = 2}).whole(),
                static_cast<uint64_t>(bytes * u + statistics));
    }
}

struct Korthikanti {
  int64_t hidden, layers, heads, pp, v, batch;
  /// GiB: 18 bytes a parameter of the layers, activations with everything
  /// saved, activations with selective recompute and sequence parallelism.
  double states, whole, both;
  /// Shares of `whole`: sequence parallelism, selective, both, full.
  double sequence, selective, together, full;
};

// The paper's figures 1 and 7, by formula: s = 2048, t = 8.
//   whole      s b h L (10 + 24/8 + 5 a s / (8 h)) in flight
//   sequence   s b h L (34 / 8 + 5 a s / (8 h))
//   selective  s b h L (10 + 24/8)
//   both       s b h L 34 / 8
// 22B: u = 2048 x 4 x 6144, 10 + 3 + 13.33 = 26.33, x 48 layers: 59.25 GiB.
// Interleaved chunks multiply by 1 + (p - 1) / (p v): 175B 1.2917.
TEST(Activations, KorthikantiTable) {
  for (const Korthikanti &k :
       {Korthikanti{6144, 48, 64, 1, 1, 4, 45.56, 59.25, 9.56, .668, .494, .162,
                    .076},
        {12288, 96, 96, 8, 3, 1, 45.56, 66.84, 12.35, .620, .565, .185, .087},
        {20480, 105, 128, 35, 3, 1, 31.64, 114.02, 23.08, .583, .620, .203,
         .094},
        {25600, 128, 160, 64, 1, 1, 32.96, 131.25, 26.56, .583, .620, .203,
         .094}}) {
    ModelShape m = gpt(k.hidden, k.layers, k.heads);
    Job job = jobOf(m, Representation::Megatron, "Megatron-LM");
    model::Choice choice{.tp = 8,
                         .pp = k.pp,
                         .v = k.v,
                         .microBatch = k.batch,
                         .numMicroBatches = 8 * k.pp,
                         .schedule = k.v > 1 ? ScheduleKind::Interleaved
                                             : ScheduleKind::OneFOneB};
    choice.layout.assign(k.pp * k.v, k.layers / (k.pp * k.v));
    Accountant accountant(job);
    auto saved = [&](Recompute recompute, bool sequenceParallel) {
      choice.recompute = recompute;
      choice.sequenceParallel = sequenceParallel;
      return bytesOf(accountant.items(choice, 0), "saved by layers") / kGib;
    };
    double whole = saved(Recompute::None, false);
    EXPECT_NEAR(whole, k.whole, 0.01);
    EXPECT_NEAR(saved(Recompute::Selective, true), k.both, 0.01);
    EXPECT_NEAR(saved(Recompute::None, true) / whole, k.sequence, 1.5e-3);
    EXPECT_NEAR(saved(Recompute::Selective, false) / whole, k.selective,
                1.5e-3);
    EXPECT_NEAR(saved(Recompute::Selective, true) / whole, k.together, 1.5e-3);
    EXPECT_NEAR(saved(Recompute::Full, false) / whole, k.full, 1.5e-3);
    // Their states leave out embeddings, norms and biases.
    double elements = 12.0 * k.layers * k.hidden * k.hidden / (8 * k.pp);
    EXPECT_NEAR(18 * elements / kGib, k.states, 0.01);
    double ours = statesOf(accountant.memory(choice, k.pp > 2 ? 1 : 0)) / kGib;
    EXPECT_NEAR(ours / k.states, 1, k.pp > 2 ? 0.001 : 0.02);
  }
}

// Reckon's selective mode computes both norms' outputs and the product of the
// feed-forward again: 33.5 - 4 - 2 x 3.5 = 22.5.
TEST(Activations, SelectiveOfReckon) {
  Job job = jobOf(llama70B());
  double u = unit(job.model, 1), statistics = 4.0 * 64 * 8192;
  EXPECT_EQ(layerOf(job, {}).selective,
            static_cast<uint64_t>(22.5 * u + statistics));
}

// Per token of DeepSeek-V3, bf16: norms 4 x 7168 x 2; q and k 128 x 192 x 2
// each; v and context 128 x 128 x 2 each; statistics 128 x 4; latents
// (1536 + 512) x 4 and 64 x 2.
TEST(Activations, LatentAttention) {
  Job job = jobOf(deepseekV3(), Representation::Megatron);
  LayerActivations dense = layerOf(job, {});
  EXPECT_EQ(dense.norms, 4096u * 4 * 7168 * 2);
  EXPECT_EQ(dense.attention, 4096u * (2 * 128 * 192 * 2 + 2 * 128 * 128 * 2 +
                                      128 * 4 + 2048 * 4 + 64 * 2));
  EXPECT_EQ(dense.mlp, 4096u * 6 * 18432);
}

// 8 of 256 experts with an expected imbalance of 1.25: 10 rows a token, each
// with 6 x 2048 inside and two copies of 7168 in bf16; router logits in fp32.
TEST(Activations, Experts) {
  Job job = jobOf(deepseekV3(), Representation::Megatron);
  MemoryProfile profile = memoryProfile("", job.representation);
  ActivationBytes a = activationBytes(job, profile, {}, job.model.vocab);
  EXPECT_EQ(a.moe.routed, 4096u * (10 * (6 * 2048 + 4 * 7168) + 4 * 256));
  EXPECT_EQ(a.moe.mlp, 4096u * 6 * 2048); // the shared one
  EXPECT_EQ(a.dispatch, 4096u * 10 * 2 * 7168);
  // Gradients at work: of gate, up and output of the shared expert and of the
  // routed rows; those of a dense layer, 2 x 18432 + 7168 wide, are fewer.
  EXPECT_EQ(a.temporaries, 4096u * 2 * (11 * (2 * 2048 + 7168)));
  job.moeCapacityFactor = 2; // rows that the blocks have room for: 16
  a = activationBytes(job, profile, {}, job.model.vocab);
  EXPECT_EQ(a.dispatch, 4096u * 16 * 2 * 7168);
}

TEST(Activations, TokensAreSharedOverContextParallelism) {
  Job job = jobOf(llama70B());
  model::Choice one{}, four{.cp = 4, .contextMethod = ContextMethod::Ring};
  EXPECT_EQ(layerOf(job, one).whole(), 4 * layerOf(job, four).whole());
}

} // namespace
