//===- OnDevice.h - typed arrays on a CUDA device, for tests --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_CUDA_ONDEVICE_H
#define RECKON_TESTS_UNIT_CUDA_ONDEVICE_H

#include "tests/unit/cuda/Support.h"
#include "tests/unit/device/Support.h"

#include <functional>
#include <optional>

namespace reckon::cuda::test {

using device::test::Floats;
using device::test::Halves;
using device::test::largest;
using device::test::randomTokens;
using device::test::relative;

inline Floats randomFloats(int64_t n, uint32_t seed, double scale = 1.0) {
  return device::test::random(n, seed, scale);
}

/// A device array between guards, `shift` elements past a 16-byte boundary.
template <typename T> class OnDevice {
public:
  explicit OnDevice(const std::vector<T> &values, int shift = 0)
      : memory_(values.data(), values.size() * sizeof(T),
                static_cast<size_t>(shift) * sizeof(T)) {}

  T *data() const { return static_cast<T *>(memory_.data()); }

  std::vector<T> read() const {
    std::vector<unsigned char> bytes = memory_.bytes();
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty())
      std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

private:
  Memory memory_;
};

/// Runs what `enqueue` issues to a stream, with threads in the order that a
/// seed chooses, or in their natural order.
inline void runOnStream(const std::function<cudaError_t(cudaStream_t)> &enqueue,
                        std::optional<uint64_t> seed = std::nullopt) {
  if (seed)
    setSeed(*seed);
  cudaError_t issued = enqueue(queue());
  cudaError_t ran = cudaStreamSynchronize(queue());
  clearSeed();
  ASSERT_EQ(issued, cudaSuccess) << cudaGetErrorString(issued);
  ASSERT_EQ(ran, cudaSuccess) << cudaGetErrorString(ran);
}

/// Orders of threads that every kernel is run in; results must be the same
/// bits as in the natural order.
inline constexpr uint64_t threadSeeds[] = {1, 2, 3};

inline float widen(float x) { return x; }
inline float widen(uint16_t half) { return static_cast<float>(fromBf16(half)); }

/// Values as they are stored: T is float, or uint16_t for bf16.
template <typename T> std::vector<T> storedAs(const Floats &values) {
  std::vector<T> all(values.size());
  for (size_t i = 0; i < all.size(); ++i)
    if constexpr (sizeof(T) == 2)
      all[i] = bf16Bits(values[i]);
    else
      all[i] = values[i];
  return all;
}
template <typename T> Floats widened(const std::vector<T> &all) {
  Floats values(all.size());
  for (size_t i = 0; i < all.size(); ++i)
    values[i] = widen(all[i]);
  return values;
}
template <typename T>
constexpr device::DType dtypeOf =
    sizeof(T) == 2 ? device::DType::BF16 : device::DType::F32;

} // namespace reckon::cuda::test

#endif // RECKON_TESTS_UNIT_CUDA_ONDEVICE_H
