//===- Support.h - calling kernels in tests -------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_DEVICE_SUPPORT_H
#define RECKON_TESTS_UNIT_DEVICE_SUPPORT_H

#include "runtime/device/CpuDevice.h"
#include "runtime/device/kernels/RowKernels.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace reckon::device::test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;
using Halves = std::vector<uint16_t>; // bf16

/// A matrix of fp8 codes.
struct Codes {
  DType dtype;
  std::vector<uint8_t> bytes;
};

inline Floats random(int64_t n, uint32_t seed, double scale = 1.0) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0.0, scale);
  Floats values(n);
  for (float &value : values)
    value = static_cast<float>(normal(engine));
  return values;
}

inline Ints randomTokens(int64_t n, int32_t vocabulary, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int32_t> uniform(0, vocabulary - 1);
  Ints values(n);
  for (int32_t &value : values)
    value = uniform(engine);
  return values;
}

inline Doubles wide(const Floats &values) {
  return Doubles(values.begin(), values.end());
}

/// A view of any vector as an operand and its address.
struct Bound {
  Operand operand;
  void *data;
  Bound(Floats &v)
      : operand{DType::F32, static_cast<int64_t>(v.size())}, data(v.data()) {}
  Bound(Doubles &v)
      : operand{DType::F64, static_cast<int64_t>(v.size())}, data(v.data()) {}
  Bound(Ints &v)
      : operand{DType::I32, static_cast<int64_t>(v.size())}, data(v.data()) {}
  Bound(Halves &v)
      : operand{DType::BF16, static_cast<int64_t>(v.size())}, data(v.data()) {}
  Bound(Codes &v)
      : operand{v.dtype, static_cast<int64_t>(v.bytes.size())},
        data(v.bytes.data()) {}
};

/// One call with its operands bound, to be prepared and run.
struct Call {
  Kernel kernel;
  std::vector<Bound> inputs, outputs;
  std::vector<int64_t> args;
  std::vector<double> floats;

  Result<std::unique_ptr<PreparedKernel>> prepare(Device &device) const {
    std::vector<Operand> in, out;
    for (const Bound &bound : inputs)
      in.push_back(bound.operand);
    for (const Bound &bound : outputs)
      out.push_back(bound.operand);
    return device.prepare(kernel, {in, out, args, floats});
  }
  std::vector<void *> pointers() const {
    std::vector<void *> all;
    for (const Bound &bound : inputs)
      all.push_back(bound.data);
    for (const Bound &bound : outputs)
      all.push_back(bound.data);
    return all;
  }
  void run(Device &device) const {
    auto prepared = prepare(device);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    Status status = (*prepared)->run(pointers());
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
};

/// Norm of the difference over the norm of the reference; elementwise errors
/// drown in it only if they are harmless.
template <typename Got> double relative(const Got &got, const Doubles &want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0.0, norm = 0.0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), 1e-30);
}

/// Largest difference of any element.
template <typename Got> double largest(const Got &got, const Doubles &want) {
  EXPECT_EQ(got.size(), want.size());
  double most = 0.0;
  for (size_t i = 0; i < want.size(); ++i)
    most = std::max(most, std::abs(got[i] - want[i]));
  return most;
}

/// Runs a test for each instruction set that the machine has, with 1 and with
/// 3 threads (an odd number, to cut unevenly).
class Variants : public testing::TestWithParam<std::tuple<std::string, int>> {
protected:
  void SetUp() override {
    auto [isa, threads] = GetParam();
    auto made = makeCpuDevice({.threads = threads, .isa = isa});
    if (!made && made.error().code == ExitCode::Environment)
      GTEST_SKIP() << made.error().message;
    ASSERT_TRUE(made.ok()) << made.error().message;
    device = std::move(*made);
  }
  std::unique_ptr<Device> device;
};

inline std::string
variantName(const testing::TestParamInfo<Variants::ParamType> &info) {
  return std::get<0>(info.param) + "_" +
         std::to_string(std::get<1>(info.param));
}

#define RECKON_VARIANTS(suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      All, suite,                                                              \
      testing::Combine(testing::Values("baseline", "avx2", "avx512"),          \
                       testing::Values(1, 3)),                                 \
      variantName)

} // namespace reckon::device::test

#endif // RECKON_TESTS_UNIT_DEVICE_SUPPORT_H
