//===- EstimatesTest.cpp - the frameworks' estimators and traffic ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Estimates.h"

#include "tests/unit/account/Models.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

// Layers 2 x 80 x 8192^2 x ((1 + 1/8) + 3.5 x 1.5 = 6.375) = 68.45e9 / 4, an
// embedding of 1.05e9, / 8: 2.271e9 x 6.375 = 14.47e9 B. Activations
// 8192 x 8192 x ((18 + 14) x 80 + 4) x (1 + 3/16) / 8 = 25.54e9 B. Sum 40.0 GB.
TEST(Estimates, MegatronOnTheSeedsJob) {
  Job job = jobOf(llama70B(), Representation::Megatron);
  MegatronEstimate e = megatronEstimate(job, seed70B());
  EXPECT_NEAR(e.parameters, 2.271e9, 0.002e9);
  EXPECT_NEAR(e.statesBytes, 14.47e9, 0.02e9);
  EXPECT_NEAR(e.activationBytes, 25.54e9, 0.01e9);
  EXPECT_NEAR(e.totalBytes(), 40.0e9, 0.05e9);
  // Its states are ours where it looks: the first stage without padding.
  Accountant accountant(job);
  EXPECT_NEAR(e.statesBytes,
              static_cast<double>(statesOf(accountant.memory(seed70B(), 0))),
              0.001 * e.statesBytes);
  // It does not know that context parallelism shares the optimizer too.
  model::Choice cp = seed70B();
  cp.dp = 8, cp.cp = 4, cp.contextMethod = ContextMethod::Ring;
  EXPECT_GT(megatronEstimate(job, cp).statesBytes,
            1.1 * statesOf(accountant.memory(cp, 0)));
}

// p = 1: GPT 22B under TP 8, s b h (18 + 16) L + logits 4 s b h (1 + V / h),
// + (8 + h) s b for the embedding, / 8, with s b = 8192.
TEST(Estimates, MegatronWithoutPipeline) {
  Job job = jobOf(gpt(6144, 48, 64), Representation::Megatron);
  MegatronEstimate e =
      megatronEstimate(job, {.tp = 8, .microBatch = 4, .layout = {48}});
  double sb = 8192, h = 6144, v = 51200;
  EXPECT_DOUBLE_EQ(
      e.activationBytes,
      (sb * h * 34 * 48 + sb * (8 + h) + 4 * sb * h * (1 + v / h)) / 8);
}

// Experts, MLA and prediction layers: on one rank the formula counts what we
// count but for the routers (h E a layer) and the prediction module's
// projection (2 h^2) and norms (3 h). Mixtral 8x7B: 46.70e9 and routers of 32 x
// 4096 x 8; DeepSeek-V3: 671.0e9, of which routers are 58 x 7168 x 256.
TEST(Estimates, MegatronWithExperts) {
  ModelShape mixtral = llama(4096, 14336, 32, 32, 8);
  mixtral.architecture = "mixtral";
  mixtral.vocab = 32000;
  mixtral.experts = 8;
  mixtral.topK = 2;
  mixtral.expertFfn = 14336;
  ModelShape deepseek = deepseekV3(), predicts = deepseekV3();
  predicts.mtpLayers = 1;
  for (const ModelShape &m : {mixtral, deepseek, predicts}) {
    Job job = jobOf(m, Representation::Megatron);
    model::Choice c{.layout = {m.layers}};
    MegatronEstimate e = megatronEstimate(job, c);
    double routers =
        static_cast<double>(m.layers - m.firstDense + m.mtpLayers) *
        static_cast<double>(m.hidden * m.experts);
    double h = m.hidden;
    double projection = static_cast<double>(m.mtpLayers) * (2 * h * h + 3 * h);
    EXPECT_DOUBLE_EQ(e.parameters + routers + projection,
                     static_cast<double>(m.parameters()));
    // 18 bytes each; the vocabularies are multiples of 128.
    EXPECT_DOUBLE_EQ(
        e.statesBytes + 18 * (routers + projection),
        static_cast<double>(statesOf(Accountant(job).memory(c, 0))));
    // On 8 ranks that share the optimizer: 6 + 12 / 8 bytes.
    c.dp = 8;
    c.zero = 1;
    double ours = statesOf(Accountant(job).memory(c, 0));
    EXPECT_NEAR(megatronEstimate(job, c).statesBytes +
                    7.5 * (routers + projection),
                ours, 1e-5 * ours);
    // It keeps every expert on every rank; we leave each its part.
    c.ep = 8;
    double expert = static_cast<double>(m.layers - m.firstDense + m.mtpLayers) *
                    static_cast<double>(m.experts * 3 * m.hidden * m.expertFfn);
    double parted = statesOf(Accountant(job).memory(c, 0));
    EXPECT_NEAR(ours - parted, 7.5 * expert - 18 * expert / 8, 1e-5 * ours);
  }
  EXPECT_NEAR(mixtral.parameters(), 46.70e9, 0.01e9);
}

// 7e9 parameters: ZeRO-2 on 64 ranks 2 x 8.03e9 + 18 x 8.03e9 / 64; ZeRO-3
// 4 x 0.525e9 (the embedding) + 18 x 8.03e9 / 64.
TEST(Estimates, DeepSpeed) {
  Job job = jobOf(llama8B(), Representation::DeepSpeed);
  double n = 8030261248;
  model::Choice c{.dp = 64, .zero = 2, .layout = {32}};
  EXPECT_DOUBLE_EQ(deepspeedEstimate(job, c), 2 * n + 18 * n / 64);
  c.zero = 3;
  EXPECT_DOUBLE_EQ(deepspeedEstimate(job, c),
                   4.0 * 128256 * 4096 + 18 * n / 64);
  // By its buffers stage 3 holds 16 / d (bf16 accumulation), not 18.
  double ours = statesOf(Accountant(job).memory(c, 0));
  EXPECT_NEAR(ours, 16 * n / 64, 0.01 * ours);
}

TEST(Estimates, SeriesFigures) {
  model::Choice c{.zero = 1, .layout = {32}};
  auto figure = [&](Representation representation, const char *profile = "") {
    return seriesFigure(jobOf(llama8B(), representation, profile), c);
  };
  EXPECT_EQ(figure(Representation::Megatron), "2 + 4 + 12/d");
  EXPECT_EQ(figure(Representation::Megatron, "Megatron-DeepSpeed"),
            "2 + 2 + 16/d");
  EXPECT_EQ(figure(Representation::Megatron, "nanotron"), "2 + 6 + 12/d");
  c.zero = 0;
  EXPECT_EQ(figure(Representation::Megatron), "18");
  c.zero = 3;
  EXPECT_EQ(figure(Representation::DeepSpeed), "16/d");
  EXPECT_EQ(figure(Representation::TorchTitan), "16/d");
  c.pp = 2;
  EXPECT_EQ(figure(Representation::TorchTitan), "2 + 4 + 16/d");
  c.pp = 1, c.zero = 2; // weights stay gathered for the step
  EXPECT_EQ(figure(Representation::TorchTitan), "2 + 16/d");
}

double sent(const Job &job, const model::Choice &c) {
  double bytes = 0;
  for (const StateTraffic &t : stateTraffic(job, c, 1000, 0))
    bytes += t.bytes();
  return bytes;
}

// Of 1000 elements over d = 8, k = 4 micro-batches, times 7/8 each:
// Megatron RS 4 B + AG 2 B once; DeepSpeed-3 (AG + AG + RS) x 2 B x 4;
// FSDP2 (AG + AG) x 2 B + RS 4 B, x 4, in a pipeline once each.
TEST(Estimates, Traffic) {
  model::Choice c{.dp = 8, .zero = 1, .numMicroBatches = 4, .layout = {32}};
  Job megatron = jobOf(llama8B(), Representation::Megatron);
  EXPECT_DOUBLE_EQ(sent(megatron, c), 6000 * 7 / 8.0);
  megatron.gradReduce = GradReduceDtype::Bf16;
  EXPECT_DOUBLE_EQ(sent(megatron, c), 4000 * 7 / 8.0);
  c.zero = 0; // an all-reduce counts twice
  EXPECT_DOUBLE_EQ(sent(megatron, c), 2 * 2000 * 7 / 8.0);
  c.zero = 3;
  Job deepspeed = jobOf(llama8B(), Representation::DeepSpeed);
  EXPECT_DOUBLE_EQ(sent(deepspeed, c), 4 * 6000 * 7 / 8.0);
  Job titan = jobOf(llama8B(), Representation::TorchTitan);
  EXPECT_DOUBLE_EQ(sent(titan, c), 4 * 8000 * 7 / 8.0);
  c.pp = 2;
  EXPECT_DOUBLE_EQ(sent(titan, c), 6000 * 7 / 8.0);
  c.dp = 1;
  EXPECT_DOUBLE_EQ(sent(titan, c), 0);
}

// The seed's 175 GB and 3.5 s: 70B under TP 8 and FSDP over 128 ranks, four
// micro-batches. A rank's slice has 8.82e9 elements; it is gathered in bf16 for
// the forward and the backward of every micro-batch, 8 x 2 B, and its gradients
// are reduced once in fp32, 4 B, which takes accumulation of whole gradients
// between: 20 B x 8.82e9 x 127/128 = 175.0e9 B, at 50 GB/s 3.50 s. What
// torchtitan does by default reduces four times: 32 B, 280 GB.
TEST(Estimates, SeedTrafficOfFsdp) {
  Job job = jobOf(llama70B(), Representation::TorchTitan);
  int64_t slice = llama70B().parameters() / 8;
  model::Choice c{.tp = 8,
                  .sequenceParallel = true,
                  .dp = 128,
                  .zero = 3,
                  .numMicroBatches = 4,
                  .layout = {80}};
  auto traffic = stateTraffic(job, c, slice, 0);
  ASSERT_EQ(traffic.size(), 2u);
  double gathers = traffic[1].bytes(), reduces = traffic[0].bytes();
  EXPECT_NEAR(gathers + reduces / 4, 175.0e9, 0.05e9);
  EXPECT_NEAR((gathers + reduces / 4) / 50e9, 3.50, 0.005);
  EXPECT_NEAR(gathers + reduces, 280.0e9, 0.1e9);
}

// Experts travel in their own group: dp 8, ep 4 leaves 2 ranks an expert.
TEST(Estimates, TrafficOfExperts) {
  Job job = jobOf(deepseekV3(), Representation::Megatron);
  auto traffic = stateTraffic(job, {.dp = 8, .ep = 4, .zero = 1}, 1000, 600);
  ASSERT_EQ(traffic.size(), 4u);
  EXPECT_EQ(traffic[0].group, 8);
  EXPECT_EQ(traffic[2].group, 2);
  EXPECT_DOUBLE_EQ(traffic[2].bytes(), 600 * 4 / 2.0);
}

} // namespace
