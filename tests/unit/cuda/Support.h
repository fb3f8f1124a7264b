//===- Support.h - operands and comparisons for tests of CUDA kernels -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_CUDA_SUPPORT_H
#define RECKON_TESTS_UNIT_CUDA_SUPPORT_H

#include "runtime/cuda/kernels/Kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace reckon::cuda::test {

using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;

inline Doubles random(int64_t n, uint32_t seed, double scale = 1.0) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0.0, scale);
  Doubles values(static_cast<size_t>(n));
  for (double &value : values)
    value = normal(engine);
  return values;
}

/// One stream for everything.
inline cudaStream_t queue() {
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking),
              cudaSuccess);
    return made;
  }();
  return stream;
}

inline size_t bytesOf(Storage storage) {
  return storage == Storage::Bf16 ? 2 : 4;
}

/// The bf16 nearest to x (even on ties), as its bits; x is finite.
inline uint16_t bf16Bits(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline double fromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
/// What a value becomes when it is stored.
inline double stored(Storage storage, double x) {
  auto single = static_cast<float>(x);
  return storage == Storage::Bf16 ? fromBf16(bf16Bits(single)) : single;
}
inline Doubles stored(Storage storage, Doubles values) {
  for (double &value : values)
    value = stored(storage, value);
  return values;
}

/// Memory on the emulated device, `shift` bytes behind a 256-byte boundary,
/// with guards on both sides that nobody may overwrite.
class Memory {
public:
  Memory(const void *data, size_t bytes, size_t shift)
      : bytes_(bytes), front_(guard + shift) {
    EXPECT_EQ(cudaMalloc(&base_, front_ + bytes + guard), cudaSuccess);
    std::vector<unsigned char> all(front_ + bytes + guard, mark);
    if (bytes > 0)
      std::memcpy(all.data() + front_, data, bytes);
    EXPECT_EQ(cudaMemcpy(base_, all.data(), all.size(), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() { (void)cudaFree(base_); }

  void *data() const { return static_cast<char *>(base_) + front_; }

  /// The bytes, once everything has run; checks the guards.
  std::vector<unsigned char> bytes() const {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess)
        << cudaGetErrorString(cudaGetLastError());
    std::vector<unsigned char> all(front_ + bytes_ + guard);
    EXPECT_EQ(cudaMemcpy(all.data(), base_, all.size(), cudaMemcpyDeviceToHost),
              cudaSuccess);
    auto own = all.begin() + static_cast<int64_t>(front_);
    auto end = own + static_cast<int64_t>(bytes_);
    auto marked = [](unsigned char byte) { return byte == mark; };
    EXPECT_TRUE(std::all_of(all.begin(), own, marked)) << "before the operand";
    EXPECT_TRUE(std::all_of(end, all.end(), marked)) << "behind the operand";
    return {own, end};
  }

private:
  static constexpr size_t guard = 256;
  static constexpr unsigned char mark = 0xa5;
  void *base_ = nullptr;
  size_t bytes_;
  size_t front_;
};

inline std::vector<unsigned char> encoded(Storage storage,
                                          const Doubles &values) {
  std::vector<unsigned char> bytes(values.size() * bytesOf(storage));
  for (size_t i = 0; i < values.size(); ++i) {
    auto single = static_cast<float>(values[i]);
    uint16_t half = bf16Bits(single);
    if (storage == Storage::Bf16)
      std::memcpy(bytes.data() + 2 * i, &half, 2);
    else
      std::memcpy(bytes.data() + 4 * i, &single, 4);
  }
  return bytes;
}

/// Numbers of a storage type. `shift` counts elements.
class Operand {
public:
  Operand(Storage storage, const Doubles &values, int shift = 0)
      : storage_(storage),
        memory_(encoded(storage, values).data(),
                values.size() * bytesOf(storage),
                static_cast<size_t>(shift) * bytesOf(storage)) {}
  /// For outputs: nothing that was not written may look right.
  Operand(Storage storage, int64_t n, int shift = 0)
      : Operand(storage, Doubles(static_cast<size_t>(n), 1.5e30), shift) {}

  void *data() const { return memory_.data(); }
  float *floats() const { return static_cast<float *>(memory_.data()); }
  Doubles read() const {
    std::vector<unsigned char> bytes = memory_.bytes();
    Doubles values(bytes.size() / bytesOf(storage_));
    for (size_t i = 0; i < values.size(); ++i) {
      float single;
      uint16_t half;
      if (storage_ == Storage::Bf16) {
        std::memcpy(&half, bytes.data() + 2 * i, 2);
        values[i] = fromBf16(half);
      } else {
        std::memcpy(&single, bytes.data() + 4 * i, 4);
        values[i] = single;
      }
    }
    return values;
  }

private:
  Storage storage_;
  Memory memory_;
};

class IntOperand {
public:
  explicit IntOperand(const Ints &values)
      : memory_(values.data(), values.size() * 4, 0) {}
  int32_t *data() const { return static_cast<int32_t *>(memory_.data()); }

private:
  Memory memory_;
};

/// Scratch, poisoned.
class Scratch {
public:
  explicit Scratch(int64_t bytes)
      : memory_(
            std::vector<unsigned char>(static_cast<size_t>(bytes), 0xff).data(),
            static_cast<size_t>(bytes), 0) {}
  void *data() const { return memory_.data(); }

private:
  Memory memory_;
};

/// What a result may differ by: a share of its size, and something that does
/// not depend on it.
struct Tolerance {
  double relative = 0.0, absolute = 0.0;
};

/// Of an f32 computation whose result is then stored.
inline Tolerance toleranceOf(Storage storage, double relative,
                             double absolute) {
  // Half a unit in the last place of bf16 is 2^-9 of its size at most, and
  // an f32 result beside a tie may go to the other side.
  return {relative + (storage == Storage::Bf16 ? 0x1p-8 : 0.0), absolute};
}

/// The largest difference over what is allowed. NaN counts as infinite.
inline double worst(const Doubles &got, const Doubles &want,
                    const Tolerance &tolerance) {
  EXPECT_EQ(got.size(), want.size());
  double most = 0.0;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    double allowed =
        tolerance.absolute + tolerance.relative * std::abs(want[i]);
    double ratio = std::abs(got[i] - want[i]) / allowed;
    most = std::isnan(ratio) && got[i] != want[i] ? INFINITY
                                                  : std::max(most, ratio);
  }
  return most;
}

/// got is within the tolerance of want, and every element counts: one that is
/// off by three tolerances, the first, the last and one in between, is seen.
inline void expectClose(const Doubles &got, const Doubles &want,
                        const Tolerance &tolerance) {
  EXPECT_LE(worst(got, want, tolerance), 1.0);
  if (want.empty())
    return;
  for (size_t i : {size_t{0}, want.size() / 2, want.size() - 1}) {
    Doubles off = got;
    off[i] +=
        3.0 * (tolerance.absolute + tolerance.relative * std::abs(want[i]));
    EXPECT_GT(worst(off, want, tolerance), 1.0);
  }
}

/// run() under threads in their natural order and in three orders by seed; all
/// must give the same bits.
template <typename Run> auto underSeeds(Run run) {
  clearSeed();
  auto first = run();
  for (uint64_t seed : {1, 2, 3}) {
    setSeed(seed);
    EXPECT_TRUE(run() == first) << "thread order " << seed << " shows";
  }
  clearSeed();
  return first;
}

inline std::string nameOf(Storage storage) {
  return storage == Storage::Bf16 ? "bf16" : "f32";
}

/// A test for each storage type.
class Stored : public testing::TestWithParam<Storage> {
protected:
  Storage storage = GetParam();
};
#define RECKON_STORED(suite)                                                   \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      All, suite, testing::Values(Storage::F32, Storage::Bf16),                \
      [](const auto &info) { return nameOf(info.param); })

} // namespace reckon::cuda::test

#endif // RECKON_TESTS_UNIT_CUDA_SUPPORT_H
