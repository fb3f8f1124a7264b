//===- Fp8.h - eight-bit floating point, as the hardware rounds it --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The two formats of Micikevicius et al., "FP8 formats for deep learning"
// (arXiv 2209.05433), and the conversion of the GPU's cvt.rn.satfinite: to
// nearest even, what is too large becomes the largest finite value, NaN becomes
// 0x7f. Integer operations and one exact addition, so that every compiler and
// device gives the same bits.
//
//   E4M3  sign, 4 exponent bits (bias 7), 3 of fraction; up to 448, no
//         infinity, one NaN of each sign (all other bits set)
//   E5M2  sign, 5 exponent bits (bias 15), 2 of fraction; up to 57344, an
//         infinity and three NaN of each sign
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_FP8_H
#define RECKON_RUNTIME_DEVICE_KERNELS_FP8_H

#include "runtime/base/Fp8Layout.h"

#include <cstdint>
#include <cstring>

#ifndef RECKON_BOTH
#ifdef __CUDACC__
#define RECKON_BOTH __host__ __device__
#else
#define RECKON_BOTH
#endif
#endif

namespace reckon::device {

/// The numbers are those of the argument FORMAT of cast_fp8.
enum class Fp8 : uint8_t { E4M3 = 0, E5M2 = 1 };

/// Bits of the fraction, the exponent's bias, the largest finite value and its
/// code, the smallest normal value.
template <Fp8 format> struct Fp8Traits;
template <> struct Fp8Traits<Fp8::E4M3> {
  static constexpr int fraction = 3, bias = 7;
  static constexpr float largest = 448.0f, smallestNormal = 0x1p-6f;
  static constexpr uint32_t largestCode = 0x7e;
};
template <> struct Fp8Traits<Fp8::E5M2> {
  static constexpr int fraction = 2, bias = 15;
  static constexpr float largest = 57344.0f, smallestNormal = 0x1p-14f;
  static constexpr uint32_t largestCode = 0x7b;
};

RECKON_BOTH inline uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

RECKON_BOTH inline float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// The code nearest to a value, as described above.
template <Fp8 format> RECKON_BOTH inline uint8_t toFp8(float value) {
  using Traits = Fp8Traits<format>;
  constexpr int cut = 23 - Traits::fraction; // bits that are rounded off
  uint32_t bits = bitsOf(value), sign = bits >> 24 & 0x80u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return 0x7f;
  if (magnitude >= bitsOf(Traits::largest))
    return static_cast<uint8_t>(sign | Traits::largestCode);
  if (magnitude < bitsOf(Traits::smallestNormal)) {
    // Below the normal values codes are as far apart as the floats from here
    // on: the addition rounds to one of them.
    constexpr float base = Traits::smallestNormal * float(1u << cut);
    uint32_t code = bitsOf(floatOf(magnitude) + base) - bitsOf(base);
    return static_cast<uint8_t>(sign | code);
  }
  uint32_t even = magnitude >> cut & 1u;
  uint32_t rounded = magnitude + (1u << (cut - 1)) - 1u + even;
  uint32_t rebias = static_cast<uint32_t>(127 - Traits::bias)
                    << Traits::fraction;
  return static_cast<uint8_t>(sign | ((rounded >> cut) - rebias));
}

/// The value of a code, exactly.
template <Fp8 format> RECKON_BOTH inline float fromFp8(uint8_t code) {
  using Traits = Fp8Traits<format>;
  constexpr int cut = 23 - Traits::fraction;
  constexpr uint32_t fractions = (1u << Traits::fraction) - 1u;
  uint32_t sign = (code & 0x80u) << 24, low = code & 0x7fu;
  uint32_t exponent = low >> Traits::fraction, fraction = low & fractions;
  if (low > Traits::largestCode) {
    bool infinite = format == Fp8::E5M2 && fraction == 0;
    return floatOf(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
  }
  if (exponent == 0) {
    constexpr float step =
        Traits::smallestNormal / float(1u << Traits::fraction);
    return floatOf(sign | bitsOf(static_cast<float>(fraction) * step));
  }
  uint32_t rebias = static_cast<uint32_t>(127 - Traits::bias);
  return floatOf(sign | (exponent + rebias) << 23 | fraction << cut);
}

/// What a code stands for is multiplied by this: the largest magnitude of a
/// tensor over the largest code, 1 for a tensor of zeros. Never so small that
/// its reciprocal overflows; NaN and infinity stay.
template <Fp8 format> RECKON_BOTH inline float fp8Scale(float amax) {
  if (amax == 0.0f)
    return 1.0f;
  float scale = amax / Fp8Traits<format>::largest;
  return scale < 0x1p-126f ? 0x1p-126f : scale;
}

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_FP8_H
