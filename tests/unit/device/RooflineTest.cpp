//===- RooflineTest.cpp - the least work of kernel calls ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Roofline.h"

#include <gtest/gtest.h>
#include <vector>

using namespace reckon;
using namespace reckon::device;

namespace {

Operand f32(int64_t n) { return {DType::F32, n}; }
Operand bf16(int64_t n) { return {DType::BF16, n}; }
Operand i32(int64_t n) { return {DType::I32, n}; }
Operand f64(int64_t n) { return {DType::F64, n}; }

KernelWork work(Kernel kernel, std::vector<Operand> in,
                std::vector<Operand> out, std::vector<int64_t> args = {},
                std::vector<double> floats = {}) {
  Result<KernelWork> result = kernelWork(kernel, {in, out, args, floats});
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result ? *result : KernelWork{-1, -1, -1};
}

} // namespace

// Every figure is worked out by hand beside it.

TEST(Roofline, Fp8) {
  Operand one = f32(1);
  EXPECT_EQ(work(Kernel::Amax, {bf16(24)}, {one}), (KernelWork{48 + 4, 0, 24}));
  // 3 x 8 values are 16 x 16 codes, written twice.
  Operand codes{DType::F8E4M3, 256};
  EXPECT_EQ(
      work(Kernel::CastFp8, {bf16(24), one}, {one, codes, codes}, {3, 8, 0, 3}),
      (KernelWork{48 + 8 + 512, 0, 48}));
  EXPECT_EQ(work(Kernel::CastFp8, {bf16(24), one}, {one, codes}, {3, 8, 0, 2}),
            (KernelWork{48 + 8 + 256, 0, 48}));
  // 3 and 5 rows of 16 codes; 15 sums of 8 products, in bf16, or in f32 twice.
  EXPECT_EQ(work(Kernel::LinearFp8, {codes, one, codes, one}, {bf16(15)},
                 {3, 5, 8, 0}),
            (KernelWork{8 * 16 + 8 + 30, 240, 15}));
  EXPECT_EQ(work(Kernel::LinearFp8, {codes, one, codes, one}, {f32(15)},
                 {3, 5, 8, 1}),
            (KernelWork{8 * 16 + 8 + 120, 240, 15}));
}

TEST(Roofline, Rows) {
  EXPECT_EQ(work(Kernel::FillZero, {}, {f32(10)}), (KernelWork{40, 0, 0}));
  EXPECT_EQ(work(Kernel::Copy, {bf16(10)}, {bf16(10)}),
            (KernelWork{40, 0, 0})); // 20 read, 20 written
  EXPECT_EQ(work(Kernel::Add, {bf16(10), bf16(10)}, {bf16(10)}),
            (KernelWork{60, 0, 10}));
  // 3 tokens of 4 bytes; 3 rows of 8 f32 read and as many written.
  EXPECT_EQ(
      work(Kernel::Embedding, {i32(3), f32(5 * 8)}, {f32(3 * 8)}, {5, 8, 0}),
      (KernelWork{12 + 96 + 96, 0, 0}));
  // 7 tokens have at most 5 words: 40 f32 of the table are read, 56 written.
  EXPECT_EQ(
      work(Kernel::Embedding, {i32(7), f32(5 * 8)}, {f32(7 * 8)}, {5, 8, 0}),
      (KernelWork{28 + 160 + 224, 0, 0}));
  // dy of 3 rows in bf16, all 5 rows of gw written; or 3 read and written.
  EXPECT_EQ(
      work(Kernel::EmbeddingGrad, {bf16(24), i32(3)}, {f32(40)}, {5, 8, 0, 0}),
      (KernelWork{12 + 48 + 160, 0, 24}));
  EXPECT_EQ(
      work(Kernel::EmbeddingGrad, {bf16(24), i32(3)}, {f32(40)}, {5, 8, 0, 1}),
      (KernelWork{12 + 48 + 192, 0, 24}));
  // x and y of 2 x 16, w of 16, in bf16.
  EXPECT_EQ(
      work(Kernel::RmsNorm, {bf16(32), bf16(16)}, {bf16(32)}, {16}, {1e-5}),
      (KernelWork{160, 0, 128}));
  EXPECT_EQ(work(Kernel::RmsNormGradInput, {bf16(32), bf16(32), bf16(16)},
                 {bf16(32)}, {16}, {1e-5}),
            (KernelWork{224, 0, 288}));
  EXPECT_EQ(work(Kernel::RmsNormGradWeight, {bf16(32), bf16(32)}, {f32(16)},
                 {16, 1}, {1e-5}),
            (KernelWork{128 + 128, 0, 160}));
  EXPECT_EQ(work(Kernel::Swiglu, {f32(6), f32(6)}, {f32(6)}, {3}),
            (KernelWork{72, 0, 30}));
  EXPECT_EQ(
      work(Kernel::SwigluGrad, {f32(6), f32(6), f32(6)}, {f32(6), f32(6)}, {3}),
      (KernelWork{120, 0, 66}));
  // As above, with a bias of 16, and the mean's operations.
  EXPECT_EQ(work(Kernel::LayerNorm, {bf16(32), bf16(16), bf16(16)}, {bf16(32)},
                 {16}, {1e-5}),
            (KernelWork{192, 0, 224}));
  EXPECT_EQ(work(Kernel::LayerNormGradInput, {bf16(32), bf16(32), bf16(16)},
                 {bf16(32)}, {16}, {1e-5}),
            (KernelWork{224, 0, 416}));
  EXPECT_EQ(work(Kernel::LayerNormGradWeight, {bf16(32), bf16(32)},
                 {f32(16), f32(16)}, {16, 0}, {1e-5}),
            (KernelWork{128 + 128, 0, 256}));
  EXPECT_EQ(work(Kernel::Gelu, {f32(6)}, {f32(6)}, {3}),
            (KernelWork{48, 0, 60}));
  EXPECT_EQ(work(Kernel::GeluGrad, {f32(6), f32(6)}, {f32(6)}, {3}),
            (KernelWork{72, 0, 108}));
}

TEST(Roofline, Model) {
  // T 4, N 3, K 5: 20 + 15 + 12 elements, 4 * 3 * 5 pairs of operations.
  EXPECT_EQ(work(Kernel::Linear, {bf16(20), bf16(15)}, {bf16(12)}, {3, 5}),
            (KernelWork{94, 120, 0}));
  EXPECT_EQ(
      work(Kernel::LinearGradInput, {f32(12), f32(15)}, {f32(20)}, {3, 5}),
      (KernelWork{188, 120, 0}));
  // gw of 15 f32 written; or read and written.
  EXPECT_EQ(work(Kernel::LinearGradWeight, {bf16(12), bf16(20)}, {f32(15)},
                 {3, 5, 0}),
            (KernelWork{64 + 60, 120, 0}));
  EXPECT_EQ(work(Kernel::LinearGradWeight, {bf16(12), bf16(20)}, {f32(15)},
                 {3, 5, 1}),
            (KernelWork{64 + 120, 120, 0}));
  // 6 rows of 2 heads of 4 in bf16, a table of 3 x 4 f32.
  EXPECT_EQ(work(Kernel::Rope, {bf16(48), f32(12)}, {bf16(48)}, {2, 4, 3, 0}),
            (KernelWork{192 + 48, 0, 144}));
  // 2 sequences of 3, 4 query heads on 2, D 8: q and o of 192, k and v of 96,
  // lse of 24; 2 * 4 * 6 scores, 2 products of 2 * 8 operations each.
  EXPECT_EQ(work(Kernel::Attention, {bf16(192), bf16(96), bf16(96)},
                 {bf16(192), f32(24)}, {4, 2, 8, 3}),
            (KernelWork{2 * (192 * 2 + 96 * 2) + 96, 48 * 32, 240}));
  // do, q, o, dq; k, v, dk, dv; lse and delta; 5 products.
  EXPECT_EQ(work(Kernel::AttentionGrad,
                 {bf16(192), bf16(192), bf16(96), bf16(96), bf16(192), f32(24)},
                 {bf16(192), bf16(96), bf16(96), f32(24)}, {4, 2, 8, 3}),
            (KernelWork{2 * (192 * 4 + 96 * 4) + 192, 48 * 80, 240 + 384}));
}

TEST(Roofline, LossAndOptimizer) {
  // 3 rows of 8 columns, 5 of them words.
  EXPECT_EQ(work(Kernel::CrossEntropyMax, {bf16(24)}, {f32(3)}, {8, 5}),
            (KernelWork{30 + 12, 0, 15}));
  EXPECT_EQ(work(Kernel::CrossEntropySum, {bf16(24), i32(3), f32(3)}, {f32(6)},
                 {8, 5, 0}),
            (KernelWork{30 + 12 + 12 + 24, 0, 45}));
  EXPECT_EQ(
      work(Kernel::CrossEntropyLoss, {f32(6), f32(3)}, {f32(3), f64(4)}, {1}),
      (KernelWork{24 + 12 + 12 + 16, 0, 12}));
  EXPECT_EQ(
      work(Kernel::CrossEntropyLoss, {f32(6), f32(3)}, {f32(3), f64(4)}, {0}),
      (KernelWork{48, 0, 12}));
  // Words are read, all columns are written.
  EXPECT_EQ(work(Kernel::CrossEntropyGrad, {bf16(24), i32(3), f32(3)},
                 {bf16(24)}, {8, 5, 0}, {1.0}),
            (KernelWork{30 + 48 + 24, 0, 60}));
  EXPECT_EQ(work(Kernel::SumSquares, {f32(9)}, {f64(4)}, {1}),
            (KernelWork{36 + 16, 0, 18}));
  EXPECT_EQ(work(Kernel::SumSquares, {f32(9)}, {f64(4)}, {0}),
            (KernelWork{0, 0, 0}));
  EXPECT_EQ(work(Kernel::ClipFactor, {}, {f64(4)}, {}, {1.0}),
            (KernelWork{24, 0, 4}));
  // 28 bytes an element, 30 with a bf16 parameter; factor and 3 scalars.
  EXPECT_EQ(work(Kernel::Adamw, {f32(9), f64(4), f64(3)},
                 {f32(9), f32(9), f32(9)}, {}, {0.9, 0.95, 1e-8, 0.1}),
            (KernelWork{252 + 32, 0, 135}));
  EXPECT_EQ(work(Kernel::Adamw, {f32(9), f64(4), f64(3)},
                 {f32(9), f32(9), f32(9), bf16(9)}, {}, {0.9, 0.95, 1e-8, 0.1}),
            (KernelWork{270 + 32, 0, 135}));
}

TEST(Roofline, TheSlowestOfThreeCounts) {
  DeviceRates rates{.bytes = 10.0, .productFlops = 100.0, .otherFlops = 20.0};
  EXPECT_EQ(rooflineSeconds({50, 100, 20}, rates), 5.0);
  EXPECT_EQ(rooflineSeconds({50, 1000, 20}, rates), 10.0);
  EXPECT_EQ(rooflineSeconds({50, 100, 400}, rates), 20.0);
  // What is not needed may have no rate.
  EXPECT_EQ(rooflineSeconds({50, 0, 0}, {.bytes = 10.0}), 5.0);
}

TEST(Roofline, RefusesWhatPrepareRefuses) {
  Operand in[] = {f32(10)}, out[] = {f32(11)};
  Result<KernelWork> uneven = kernelWork(Kernel::Copy, {in, out, {}, {}});
  ASSERT_FALSE(uneven.ok());
  EXPECT_EQ(uneven.error().code, ExitCode::Incompatible);
  Result<KernelWork> unknown =
      kernelWork(static_cast<Kernel>(kernelCount), {in, out, {}, {}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("expected a kernel number"),
            std::string::npos);
}

TEST(Roofline, KnowsEveryKernel) {
  for (int id = 1; id < kernelCount; ++id) {
    Result<KernelWork> result = kernelWork(static_cast<Kernel>(id), {});
    // Operands are missing; but the kernel itself is known.
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message.find("expected a kernel number"),
              std::string::npos)
        << kernelSignature(static_cast<Kernel>(id))->name;
  }
}
