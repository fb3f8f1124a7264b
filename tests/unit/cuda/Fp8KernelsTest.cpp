//===- Fp8KernelsTest.cpp - largest magnitude and fp8 casts, emulated -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Against the CPU device, bit for bit, whose own results tests/unit/device
// holds against f64; and against f64 here, so that neither hides the other.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/Fp8Kernels.h"
#include "runtime/cuda/emulated/ReferenceMatmul.h"
#include "runtime/device/kernels/Fp8.h"
#include "tests/unit/cuda/OnDevice.h"

#include <limits>

namespace reckon::cuda::test {
namespace {

using device::CastFp8Call;
using device::DType;
using device::test::Bound;
using device::test::Call;
using device::test::Codes;
using Bytes = std::vector<uint8_t>;

float amaxOf(const Halves &x, int shift = 0,
             std::optional<uint64_t> seed = std::nullopt) {
  OnDevice<uint16_t> gpuX(x, shift);
  OnDevice<float> found(Floats(1, 7.0f));
  runOnStream(
      [&](cudaStream_t stream) {
        return amax({static_cast<int64_t>(x.size())}, gpuX.data(), found.data(),
                    stream);
      },
      seed);
  return found.read()[0];
}

/// What castFp8 gives.
struct Cast {
  Cast(const CastFp8Call &call, const Halves &x, float largest, int shift = 0,
       std::optional<uint64_t> seed = std::nullopt) {
    size_t bytes = static_cast<size_t>(fp8Codes(call.rows, call.columns));
    OnDevice<uint16_t> gpuX(x, shift);
    OnDevice<float> gpuAmax(Floats(1, largest)), gpuScale(Floats(1, 7.0f));
    OnDevice<uint8_t> gpuStraight(Bytes(bytes, 0x55)),
        gpuTurned(Bytes(bytes, 0x55));
    runOnStream(
        [&](cudaStream_t stream) {
          return castFp8(call, gpuX.data(), gpuAmax.data(), gpuScale.data(),
                         call.straight ? gpuStraight.data() : nullptr,
                         call.transposed ? gpuTurned.data() : nullptr, stream);
        },
        seed);
    scale = gpuScale.read()[0];
    straight = gpuStraight.read();
    turned = gpuTurned.read();
  }
  bool operator==(const Cast &) const = default;
  float scale;
  Bytes straight, turned;
};

} // namespace

TEST(AmaxKernel, IsTheLargestMagnitude) {
  for (int64_t n : {1, 7, 8, 255, 2049, 70000}) {
    Halves x = storedAs<uint16_t>(randomFloats(n, 1));
    double want = 0.0;
    for (uint16_t half : x)
      want = std::max(want, double(std::abs(widen(half))));
    for (int shift : {0, 3})
      EXPECT_EQ(amaxOf(x, shift), want) << n;
    for (int64_t at : {int64_t(0), n / 2, n - 1}) {
      Halves other = x;
      other[at] = 0xc2f7; // -123.5
      EXPECT_EQ(amaxOf(other), 123.5f) << n << " " << at;
      other[at] = 0xffc0;
      EXPECT_TRUE(std::isnan(amaxOf(other, 1))) << n << " " << at;
    }
  }
  EXPECT_EQ(amaxOf({}), 0.0f);
  EXPECT_EQ(amaxOf(Halves(40, 0x8000)), 0.0f);
}

TEST(AmaxKernel, DoesNotDependOnTheOrderOfThreads) {
  Halves x = storedAs<uint16_t>(randomFloats(5000, 2));
  for (uint64_t seed : threadSeeds)
    EXPECT_EQ(amaxOf(x, 0, seed), amaxOf(x));
}

TEST(CastFp8Kernel, EqualsTheCpuDeviceAndTheReference) {
  auto cpu = std::move(*device::makeCpuDevice({.threads = 1, .isa = {}}));
  struct {
    int64_t rows, columns;
  } cases[] = {{1, 1}, {16, 16}, {17, 40}, {65, 33}, {130, 72}, {64, 129}};
  for (DType codes : {DType::F8E4M3, DType::F8E5M2})
    for (auto [rows, columns] : cases)
      for (int layout : {1, 2, 3})
        for (int shift : {0, 1}) {
          SCOPED_TRACE(testing::Message()
                       << rows << " x " << columns << " layout " << layout);
          bool wide = codes == DType::F8E5M2;
          CastFp8Call call{rows, columns, codes, (layout & 1) != 0,
                           (layout & 2) != 0};
          Halves x = storedAs<uint16_t>(randomFloats(rows * columns, 3, 5.0));
          Floats largest(1, amaxOf(x)), scale(1);
          Cast got(call, x, largest[0], shift);
          size_t bytes = got.straight.size();
          Codes straight{codes, Bytes(bytes, 0x55)}, turned = straight;
          std::vector<Bound> outputs{scale};
          if (call.straight)
            outputs.push_back(straight);
          if (call.transposed)
            outputs.push_back(turned);
          Call{device::Kernel::CastFp8,
               {x, largest},
               outputs,
               {rows, columns, wide ? 1 : 0, layout},
               {}}
              .run(*cpu);
          EXPECT_EQ(got.scale, scale[0]);
          ASSERT_EQ(got.straight, straight.bytes);
          ASSERT_EQ(got.turned, turned.bytes);
          // Half a step of 3 or 2 bits of fraction, or of the lowest step.
          double fraction = wide ? 2 : 3, lowest = wide ? -14 : -6;
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c) {
              uint8_t code = call.straight
                                 ? got.straight[r * fp8Padded(columns) + c]
                                 : got.turned[c * fp8Padded(rows) + r];
              double value = widen(x[r * columns + c]);
              double back =
                  double(wide ? device::fromFp8<device::Fp8::E5M2>(code)
                              : device::fromFp8<device::Fp8::E4M3>(code)) *
                  got.scale;
              double step =
                  std::max(std::abs(value) / got.scale, std::exp2(lowest)) *
                  std::exp2(-fraction - 1);
              ASSERT_LE(std::abs(back - value), step * got.scale * 1.000001);
            }
        }
}

TEST(CastFp8Kernel, DoesNotDependOnTheOrderOfThreads) {
  const int64_t rows = 130, columns = 72;
  CastFp8Call call{rows, columns, DType::F8E4M3, true, true};
  Halves x = storedAs<uint16_t>(randomFloats(rows * columns, 4));
  Cast natural(call, x, 3.0f);
  for (uint64_t seed : threadSeeds)
    EXPECT_TRUE(Cast(call, x, 3.0f, 0, seed) == natural);
  // The comparison sees a difference.
  EXPECT_FALSE(Cast(call, x, 2.0f) == natural);
}

TEST(CastFp8Kernel, KeepsZerosAndNaN) {
  CastFp8Call call{16, 16, DType::F8E5M2, true, false};
  Cast zeros(call, Halves(256), 0.0f);
  EXPECT_EQ(zeros.scale, 1.0f);
  EXPECT_EQ(zeros.straight, Bytes(256));
  Cast nan(call, Halves(256, 0x3f80), std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(nan.scale));
  EXPECT_EQ(nan.straight, Bytes(256, 0x7f));
}

// The emulated device's products of codes; k is padded, m and n are not.
TEST(ReferenceMatmul, MultipliesCodesWithTheirScales) {
  const int64_t m = 5, n = 20, k = 48;
  std::unique_ptr<Matmul> matmul = makeReferenceMatmul();
  for (DType type : {DType::F8E4M3, DType::F8E5M2}) {
    auto valueOf = [](DType of, uint8_t code) -> double {
      return of == DType::F8E5M2 ? device::fromFp8<device::Fp8::E5M2>(code)
                                 : device::fromFp8<device::Fp8::E4M3>(code);
    };
    Bytes a(static_cast<size_t>(fp8Codes(m, k)));
    Bytes b(static_cast<size_t>(fp8Codes(n, k)));
    std::mt19937 engine(5);
    for (uint8_t &code : a) // finite codes of either sign
      code = static_cast<uint8_t>(engine() % 0x60 + (engine() % 2 ? 0x80 : 0));
    for (uint8_t &code : b)
      code = static_cast<uint8_t>(engine() % 0x40);
    OnDevice<uint8_t> gpuA(a), gpuB(b);
    OnDevice<float> scaleA(Floats(1, 0.5f)), scaleB(Floats(1, 0.25f));
    OnDevice<float> c(Floats(m * n, 1.0f));
    auto product = matmul->prepare({.m = m,
                                    .n = n,
                                    .k = k,
                                    .a = type,
                                    .b = DType::F8E4M3,
                                    .transposeB = true,
                                    .accumulate = true},
                                   0);
    ASSERT_TRUE(product.ok()) << product.error().message;
    runOnStream([&](cudaStream_t stream) {
      Status status = (*product)->run(
          {gpuA.data(), gpuB.data(), c.data(), scaleA.data(), scaleB.data()},
          stream);
      return status.ok() ? cudaSuccess : cudaErrorUnknown;
    });
    Doubles want(m * n, 1.0), unscaled(m * n, 1.0);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < k; ++j) {
          double term = valueOf(type, a[r * k + j]) *
                        valueOf(DType::F8E4M3, b[i * k + j]);
          want[r * n + i] += 0.125 * term;
          unscaled[r * n + i] += term;
        }
    EXPECT_LT(relative(c.read(), want), 1e-6);
    EXPECT_GT(relative(c.read(), unscaled), 0.1);
  }
}

} // namespace reckon::cuda::test
