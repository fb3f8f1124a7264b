//===- CounterRng.h - random numbers that depend on nothing but their name ===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Initial weights must be the same bits in every layout and on every device.
// So a value is a function of (seed, global tensor name, element index in the
// flattened global tensor) alone, computed with integer operations and one
// float multiplication: no state, no libm, nothing a compiler may contract.
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy
// as 1, 2, 3; SC'11). Key: the seed. Counter: 2 * element + block, then the
// name's hash.
//
// A normal value is the centred sum of 16 uniform 16-bit integers (Irwin-Hall),
// scaled to the wanted deviation. Mean 0 and variance are exact; the excess
// kurtosis is -6/(5*16) = -0.075 and values end at 6.93 deviations.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_COUNTERRNG_H
#define RECKON_RUNTIME_DEVICE_KERNELS_COUNTERRNG_H

#include <bit>
#include <cstdint>
#include <string_view>

#ifdef __CUDACC__
#define RECKON_BOTH __host__ __device__
#else
#define RECKON_BOTH
#endif

namespace reckon::device {

/// Four 32-bit words.
struct Philox4 {
  uint32_t w[4];
};

/// Philox4x32 with 10 rounds.
RECKON_BOTH inline Philox4 philox(Philox4 counter, uint32_t key0,
                                  uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t{0xD2511F53u} * counter.w[0];
    uint64_t product1 = uint64_t{0xCD9E8D57u} * counter.w[2];
    counter = {{static_cast<uint32_t>(product1 >> 32) ^ counter.w[1] ^ key0,
                static_cast<uint32_t>(product1),
                static_cast<uint32_t>(product0 >> 32) ^ counter.w[3] ^ key1,
                static_cast<uint32_t>(product0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// FNV-1a, 64 bits.
inline uint64_t hashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// The normal values of one tensor. Trivially copyable, for kernel arguments.
struct NormalStream {
  uint64_t seed;
  uint64_t name;
  float scale;

  /// Value of one element of the flattened global tensor.
  RECKON_BOTH float at(int64_t element) const {
    int32_t sum = 0;
    for (uint32_t block = 0; block < 2; ++block) {
      uint64_t index = 2 * static_cast<uint64_t>(element) + block;
      Philox4 r = philox(
          {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
            static_cast<uint32_t>(name), static_cast<uint32_t>(name >> 32)}},
          static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
      for (uint32_t word : r.w)
        sum += static_cast<int32_t>((word & 0xffffu) + (word >> 16));
    }
    // Twice the centred sum is an integer below 2^21, hence exact in f32.
    return static_cast<float>(2 * sum - 16 * 65535) * scale;
  }
};

inline NormalStream normalStream(uint64_t seed, std::string_view name,
                                 double deviation) {
  // 1 / (2 * sqrt(16 * (65536^2 - 1) / 12)): deviation of twice the sum.
  constexpr double unit = 6.6072494803257536e-06;
  return {seed, hashName(name), static_cast<float>(deviation * unit)};
}

/// Fills out[0, count) with elements [first, first + count) of the flattened
/// global tensor `name`, normal with mean 0 and the given deviation.
inline void fillNormal(float *out, uint64_t seed, std::string_view name,
                       int64_t first, int64_t count, double deviation) {
  NormalStream stream = normalStream(seed, name, deviation);
  for (int64_t i = 0; i < count; ++i)
    out[i] = stream.at(first + i);
}

/// The same elements stored as f32, or as bf16 rounded to nearest even.
inline void writeNormal(void *out, bool bf16, const NormalStream &stream,
                        int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float value = stream.at(first + i);
    if (!bf16) {
      static_cast<float *>(out)[i] = value;
      continue;
    }
    auto bits = std::bit_cast<uint32_t>(value); // never NaN
    static_cast<uint16_t *>(out)[i] =
        static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
  }
}

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_COUNTERRNG_H
