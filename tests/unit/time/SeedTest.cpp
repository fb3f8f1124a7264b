//===- SeedTest.cpp - printed figures and the convention behind each ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/ModelFlops.h"
#include "tests/unit/time/Jobs.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::model::test;

namespace {

// 70B on 1024 H100 of 989.4 TFLOP/s, 512 sequences of 8192: 4,194,304 tokens.
constexpr double kTokens = 512.0 * 8192;
constexpr double kPeak = 1024 * 989.4e12;

// N without the input embedding: 70.554e9 - 128256 * 8192 = 69.503e9.
// 12 L s a d = 12 * 80 * 8192 * 8192 = 64.42e9 FLOPs a token.
// (6 * 69.503e9 + 64.42e9) * 4194304 / 1.01315e18 = 1.993 s: "2.0 s".
// At an MFU of 42 %: 4.746 s ("4.75 s"), 883.8e3 tokens/s ("880k").
TEST(Seed, StepOfThe70BWithAttentionOverTheSquare) {
  Job job = llama70b(1024, 512);
  ModelFlops flops = modelFlops(job.model, AttentionFlops::Square);
  double ideal = flops.total() * kTokens / kPeak;
  EXPECT_NEAR(ideal, 1.993, 0.001);
  EXPECT_NEAR(ideal / 0.42, 4.746, 0.005);
  EXPECT_NEAR(kTokens / (ideal / 0.42), 883.8e3, 500);
}

// The causal convention counts half of the attention: 32.21e9 a token,
// (417.02e9 + 32.21e9) * 4194304 / 1.01315e18 = 1.860 s. With N that includes
// the input embedding (6 * 70.554e9) it is the 1.886 s that is quoted.
TEST(Seed, StepOfThe70BWithCausalAttention) {
  Job job = llama70b(1024, 512);
  ModelFlops flops = modelFlops(job.model, AttentionFlops::Causal);
  EXPECT_NEAR(flops.total() * kTokens / kPeak, 1.860, 0.001);
  double embedding = 6.0 * 128256 * 8192;
  EXPECT_NEAR((flops.total() + embedding) * kTokens / kPeak, 1.886, 0.001);
}

// Full recomputation runs the forward again: 4/3 of the arithmetic.
TEST(Seed, DeepSeekActivatesFourHundredthOfItself) {
  Job job = deepseek(1024, 8192);
  // 37.6e9 active parameters with both embeddings, 36.6e9 without the input's.
  double active = modelFlops(job.model, AttentionFlops::Causal).matmul / 6;
  EXPECT_NEAR(active / 1e9, 36.6, 0.2);
}

} // namespace
