//===- KernelsTest.cpp - matmuls, attention, memory traffic ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Kernels.h"
#include "tests/unit/time/Jobs.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::model::test;

namespace {

struct H100 : testing::Test {
  Job job = llama70b(8, 8);
  Efficiency efficiency = efficiencyFor(job, efficiencyTable());
  /// TFLOP/s of one bf16 product without the share that sustained clocks take.
  double tflops(double m, double n, double k) {
    efficiency.eta = 1;
    Kernels kernels(job, efficiency);
    return 2 * m * n * k / kernels.matmul(m, n, k, false) / 1e12;
  }
};

// Measured on an H100, bf16, in the interpolation table of XLA's GPU cost
// model (openxla/xla, matmul_interpolator_data.h): 677, 634, 470 and 82
// TFLOP/s. The model may be a quarter off on shapes that fill the chip.
TEST_F(H100, MatmulRatesAreThoseMeasured) {
  EXPECT_NEAR(tflops(4096, 4096, 1024), 677, 0.15 * 677);
  EXPECT_NEAR(tflops(1024, 4096, 2048), 634, 0.25 * 634);
  EXPECT_NEAR(tflops(1024, 1024, 4096), 470, 0.25 * 470);
  // Launch and memory decide here; only the order of magnitude is asked for.
  double small = tflops(4096, 256, 256);
  EXPECT_GT(small, 82.0 / 2);
  EXPECT_LT(small, 82.0 * 2);
}

// An output of 8448 x 512 is 66 x 2 tiles of 128 x 256: one wave on 132
// multiprocessors. With 128 rows more it is 134.
TEST_F(H100, OneTileTooManyCostsAWave) {
  Kernels kernels(job, efficiency);
  double full = kernels.matmul(8448, 512, 8192, false);
  double over = kernels.matmul(8448 + 128, 512, 8192, false);
  EXPECT_GT(over, 1.2 * full);
}

TEST_F(H100, OddWidthsLeaveTheFastPath) {
  Kernels kernels(job, efficiency);
  double aligned = kernels.matmul(4096, 152, 2048, false);
  double odd = kernels.matmul(4096, 150, 2048, false);
  EXPECT_GT(odd, 4 * aligned);
  // Tokens are padded by the kernel.
  EXPECT_NEAR(kernels.matmul(4095, 152, 2048, false), aligned, 0.01 * aligned);
}

TEST_F(H100, Fp8IsFasterOnlyForMatmuls) {
  Job low = job;
  low.precision = Precision::Fp8;
  Kernels bf16(job, efficiency);
  Efficiency e = efficiencyFor(low, efficiencyTable());
  Kernels fp8(low, e);
  EXPECT_LT(fp8.matmul(8192, 8192, 8192, true),
            0.65 * bf16.matmul(8192, 8192, 8192, false));
  EXPECT_EQ(fp8.attentionForward(8192, 8192, 8, 128, 128).total(),
            bf16.attentionForward(8192, 8192, 8, 128, 128).total());
}

// 4 s a d / 2 FLOPs a token: twice the sequence, twice the time a token, and a
// little less because longer sequences run nearer to the peak.
TEST_F(H100, AttentionGrowsWithTheSequence) {
  Kernels kernels(job, efficiency);
  double once = kernels.attentionForward(8192, 8192, 8, 128, 128).total();
  double twice = kernels.attentionForward(16384, 16384, 8, 128, 128).total();
  EXPECT_LT(twice, 4 * once);
  EXPECT_GT(twice, 3.5 * once);
  // Five products instead of two, at a lower rate.
  double back = kernels.attentionBackward(8192, 8192, 8, 128, 128).total();
  EXPECT_GT(back, 2.5 * once);
}

// bytes of a score: forward 8 to 9, backward 13, at every one of s s a.
TEST_F(H100, UnfusedAttentionMovesTheScores) {
  efficiency.attentionKernel = 0;
  Kernels kernels(job, efficiency);
  double scores = 64.0 * 2048 * 2048;
  double bytes = kernels.attentionForward(2048, 2048, 64, 128, 128).memory *
                 efficiency.memory * job.memoryBandwidth;
  EXPECT_NEAR(bytes / scores, efficiency.unfusedForwardBytes, 1e-9);
}

} // namespace
