//===- OnDevice.h - arrays on a CUDA device, for tests --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_CUDA_ONDEVICE_H
#define RECKON_TESTS_UNIT_CUDA_ONDEVICE_H

#include "runtime/cuda/Cuda.h"
#include "tests/unit/device/Support.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

namespace reckon::cuda::test {

/// A device array between two guards that a kernel must leave alone; `shift`
/// elements past a 16-byte boundary.
template <typename T> class OnDevice {
public:
  explicit OnDevice(const std::vector<T> &values, int shift = 0)
      : size_(values.size()), shift_(static_cast<size_t>(shift)) {
    std::vector<T> all = guarded(values);
    EXPECT_EQ(cudaMalloc(&memory_, all.size() * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, all.data(), all.size() * sizeof(T),
                         cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;
  ~OnDevice() { EXPECT_EQ(cudaFree(memory_), cudaSuccess); }

  T *data() const { return memory_ + before(); }

  std::vector<T> read() const {
    std::vector<T> all(size_ + 2 * guard + shift_);
    EXPECT_EQ(cudaMemcpy(all.data(), memory_, all.size() * sizeof(T),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    std::vector<T> values(all.begin() + before(),
                          all.begin() + before() + size_);
    std::vector<T> want = guarded(values);
    EXPECT_EQ(std::memcmp(all.data(), want.data(), all.size() * sizeof(T)), 0)
        << "something was written before or behind an array";
    return values;
  }

private:
  static constexpr size_t guard = 16;
  size_t before() const { return guard + shift_; }
  std::vector<T> guarded(const std::vector<T> &values) const {
    std::vector<T> all(size_ + 2 * guard + shift_, T(77));
    std::copy(values.begin(), values.end(), all.begin() + before());
    return all;
  }

  size_t size_, shift_;
  T *memory_ = nullptr;
};

/// Runs what `enqueue` issues to a stream, with threads in the order that a
/// seed chooses, or in their natural order.
inline void runOnStream(const std::function<cudaError_t(cudaStream_t)> &enqueue,
                        std::optional<uint64_t> seed = std::nullopt) {
  if (seed)
    setSeed(*seed);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
            cudaSuccess);
  cudaError_t issued = enqueue(stream);
  cudaError_t ran = cudaStreamSynchronize(stream);
  clearSeed();
  ASSERT_EQ(issued, cudaSuccess) << cudaGetErrorString(issued);
  ASSERT_EQ(ran, cudaSuccess) << cudaGetErrorString(ran);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

/// Orders of threads that every kernel is run in; results must be the same
/// bits as in the natural order.
inline constexpr uint64_t threadSeeds[] = {1, 2, 3};

/// bf16 by its bits, to nearest even, and back; finite values only.
inline uint16_t roundHalf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
inline float widen(float x) { return x; }
inline float widen(uint16_t half) {
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

/// Values as they are stored: T is float, or uint16_t for bf16.
template <typename T>
std::vector<T> stored(const device::test::Floats &values) {
  std::vector<T> all(values.size());
  for (size_t i = 0; i < all.size(); ++i)
    if constexpr (sizeof(T) == 2)
      all[i] = roundHalf(values[i]);
    else
      all[i] = values[i];
  return all;
}
template <typename T> device::test::Floats widened(const std::vector<T> &all) {
  device::test::Floats values(all.size());
  for (size_t i = 0; i < all.size(); ++i)
    values[i] = widen(all[i]);
  return values;
}
template <typename T>
constexpr device::DType dtypeOf =
    sizeof(T) == 2 ? device::DType::BF16 : device::DType::F32;

} // namespace reckon::cuda::test

#endif // RECKON_TESTS_UNIT_CUDA_ONDEVICE_H
