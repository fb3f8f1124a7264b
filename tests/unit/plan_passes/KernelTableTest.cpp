//===- KernelTableTest.cpp - one table of kernels in three places ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The compiler, the plan format and the devices each number and count kernels;
// a difference would compile and fail on a rank.
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan/KernelTable.h"
#include "runtime/device/Kernels.h"
#include "runtime/plan/plan_generated.h"

#include <gtest/gtest.h>

using namespace reckon;

TEST(KernelTable, HasTheNamesOfThePlanFormatInItsOrder) {
  auto table = planir::kernelTable();
  ASSERT_EQ(table.size(), static_cast<size_t>(plan::Kernel::MAX));
  for (size_t i = 0; i < table.size(); ++i)
    EXPECT_STREQ(table[i].name,
                 plan::EnumNameKernel(static_cast<plan::Kernel>(i + 1)));
}

TEST(KernelTable, CountsOperandsAsTheDevicesDo) {
  auto table = planir::kernelTable();
  ASSERT_EQ(table.size() + 1, static_cast<size_t>(device::kernelCount));
  for (size_t i = 0; i < table.size(); ++i) {
    const device::KernelSignature *device =
        device::kernelSignature(static_cast<device::Kernel>(i + 1));
    ASSERT_NE(device, nullptr) << table[i].name;
    EXPECT_EQ(device->name, table[i].name);
    EXPECT_EQ(device->inputs, static_cast<int>(table[i].ins)) << table[i].name;
    EXPECT_EQ(device->outputs, static_cast<int>(table[i].outs))
        << table[i].name;
    EXPECT_EQ(device->optionalOutputs, static_cast<int>(table[i].optionalOuts))
        << table[i].name;
    EXPECT_EQ(device->args, static_cast<int>(table[i].args)) << table[i].name;
    EXPECT_EQ(device->floats, static_cast<int>(table[i].floats))
        << table[i].name;
  }
}

TEST(KernelTable, FindsByName) {
  EXPECT_EQ(planir::findKernel("rope"), &planir::kernelTable()[11]);
  EXPECT_EQ(planir::findKernel("softmax"), nullptr);
}

TEST(KernelTable, ChecksAttentionSizes) {
  const auto *attention = planir::findKernel("attention");
  // 2 sequences of 8 tokens, 4 query and 2 key heads of 16: q and o have
  // 16 * 64, k and v 16 * 32, lse 16 * 4 elements.
  EXPECT_EQ(planir::checkKernelSizes(
                *attention, {{1024, 512, 512}, {1024, 64}, {4, 2, 16, 8}}),
            "");
  EXPECT_NE(planir::checkKernelSizes(
                *attention, {{1024, 512, 512}, {1024, 32}, {4, 2, 16, 8}}),
            "");
  EXPECT_EQ(planir::checkKernelSizes(
                *attention, {{1024, 512, 512}, {1024, 64}, {4, 3, 16, 8}}),
            "query heads are no multiple of kv heads");
  EXPECT_EQ(planir::checkKernelSizes(
                *attention, {{1024, 512, 512}, {1024, 64}, {4, 2, 0, 8}}),
            "argument 2 is 0, expected a positive size");
}

TEST(KernelTable, ChecksFp8Sizes) {
  // 8 x 24 values are 16 x 32 codes.
  const auto *cast = planir::findKernel("cast_fp8");
  EXPECT_EQ(
      planir::checkKernelSizes(*cast, {{192, 1}, {1, 512, 512}, {8, 24, 0, 3}}),
      "");
  EXPECT_EQ(
      planir::checkKernelSizes(*cast, {{192, 1}, {1, 512}, {8, 24, 1, 2}}), "");
  EXPECT_EQ(
      planir::checkKernelSizes(*cast, {{192, 1}, {1, 512}, {8, 24, 0, 3}}),
      "two matrices of codes go with layout 3, one with 1 or 2");
  EXPECT_EQ(
      planir::checkKernelSizes(*cast, {{192, 1}, {1, 192}, {8, 24, 0, 1}}),
      "out 1 has 192 elements, expected padded R * padded C = 512");
  EXPECT_EQ(
      planir::checkKernelSizes(*cast, {{192, 1}, {1, 512}, {8, 24, 2, 1}}),
      "the format is neither 0 nor 1");
  const auto *linear = planir::findKernel("linear_fp8");
  EXPECT_EQ(planir::checkKernelSizes(
                *linear, {{512, 1, 512, 1}, {8 * 4}, {8, 4, 24, 0}}),
            "");
  EXPECT_NE(planir::checkKernelSizes(
                *linear, {{512, 1, 512, 1}, {8 * 4}, {8, 17, 24, 0}}),
            "");
  EXPECT_EQ(
      planir::kernelFlops(*linear, {{512, 1, 512, 1}, {8 * 4}, {8, 4, 24, 0}}),
      2 * 8 * 4 * 24);
}

TEST(KernelTable, CountsFloatingPointOperations) {
  // 128 rows, 64 to 176 columns: 2 * 128 * 64 * 176.
  const int64_t flops = 2 * 128 * 64 * 176;
  EXPECT_EQ(planir::kernelFlops(*planir::findKernel("linear"),
                                {{128 * 64, 176 * 64}, {128 * 176}, {176, 64}}),
            flops);
  EXPECT_EQ(planir::kernelFlops(*planir::findKernel("linear_grad_input"),
                                {{128 * 176, 176 * 64}, {128 * 64}, {176, 64}}),
            flops);
  EXPECT_EQ(
      planir::kernelFlops(*planir::findKernel("linear_grad_weight"),
                          {{128 * 176, 128 * 64}, {176 * 64}, {176, 64, 0}}),
      flops);
  // 2 sequences of 8, 4 heads of 16; two products of 8 * 8 / 2 scores each:
  // 2 * 2 * (2 * 4) * 32 * 16 = 16384 = 2 * 1024 * 8.
  EXPECT_EQ(planir::kernelFlops(*planir::findKernel("attention"),
                                {{1024, 512, 512}, {1024, 64}, {4, 2, 16, 8}}),
            16384);
  EXPECT_EQ(
      planir::kernelFlops(*planir::findKernel("add"), {{64, 64}, {64}, {}}), 0);
}
