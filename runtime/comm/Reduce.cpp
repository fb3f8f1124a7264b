//===- Reduce.cpp - the arithmetic of reductions --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace reckon::comm {
namespace {

// Storage types of the two half precisions: distinct, so that overloads and
// templates tell them apart.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

float toAcc(Bf16 x) { return fromBf16(x.bits); }
float toAcc(F16 x) { return fromF16(x.bits); }
template <typename T> T toAcc(T x) { return x; }

template <typename T, typename A> T fromAcc(A x) {
  if constexpr (std::is_same_v<T, Bf16>)
    return Bf16{toBf16(x)};
  else if constexpr (std::is_same_v<T, F16>)
    return F16{toF16(x)};
  else
    return x;
}

template <typename T> using AccOf = decltype(toAcc(std::declval<T>()));

template <typename A> A apply(A a, A b, Reduction reduction) {
  if (reduction == Reduction::Max) {
    // A NaN on either side wins, so that it is never lost on the way.
    if constexpr (std::is_floating_point_v<A>)
      return a > b || a != a ? a : b;
    return a > b ? a : b;
  }
  // Integer sums wrap; signed overflow would be undefined.
  if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

/// Calls f(T{}) with the storage type of `type`.
template <typename F> void dispatch(DType type, F &&f) {
  switch (type) {
  case DType::F32:
    return f(float{});
  case DType::BF16:
    return f(Bf16{});
  case DType::F16:
    return f(F16{});
  case DType::F64:
    return f(double{});
  case DType::I32:
    return f(int32_t{});
  case DType::I64:
    return f(int64_t{});
  case DType::U8:
    return f(uint8_t{});
  }
}

/// Fixes the reduction outside the loop, so that the loop vectorises.
template <typename F> void dispatch(Reduction reduction, F &&f) {
  if (reduction == Reduction::Sum)
    f(std::integral_constant<Reduction, Reduction::Sum>{});
  else
    f(std::integral_constant<Reduction, Reduction::Max>{});
}

bool isNarrow(DType type) { return type == DType::BF16 || type == DType::F16; }

} // namespace

size_t elementBytes(DType type) {
  size_t bytes = 0;
  dispatch(type, [&](auto t) { bytes = sizeof(t); });
  return bytes;
}

const char *name(DType type) {
  static const char *const names[] = {"f32", "bf16", "f16", "f64",
                                      "i32", "i64",  "u8"};
  auto index = static_cast<size_t>(type);
  return index < std::size(names) ? names[index] : "unknown type";
}

const char *name(Reduction reduction) {
  return reduction == Reduction::Sum   ? "sum"
         : reduction == Reduction::Max ? "max"
                                       : "unknown reduction";
}

DType accumulatorType(DType type, Reduction reduction) {
  // The maximum of half-precision values is one of them: nothing to widen.
  return isNarrow(type) && reduction == Reduction::Sum ? DType::F32 : type;
}

float fromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t toBf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float fromF16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t exponent = (bits >> 10) & 0x1fu;
  uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) // zero or subnormal: exact as a product with 2^-24
    return std::bit_cast<float>(
        sign |
        std::bit_cast<uint32_t>(static_cast<float>(mantissa) * 0x1p-24f));
  uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

uint16_t toF16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) // 65520 rounds to infinity
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) { // subnormal: the addition rounds at 2^-24
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

void widen(void *acc, const void *value, size_t n, DType type,
           Reduction reduction) {
  if (accumulatorType(type, reduction) == type) {
    if (n)
      std::memcpy(acc, value, n * elementBytes(type));
    return;
  }
  dispatch(type, [&](auto t) {
    using T = decltype(t);
    auto *a = static_cast<AccOf<T> *>(acc);
    auto *v = static_cast<const T *>(value);
    for (size_t i = 0; i < n; ++i)
      a[i] = toAcc(v[i]);
  });
}

void narrow(void *out, const void *acc, size_t n, DType type,
            Reduction reduction) {
  if (accumulatorType(type, reduction) == type) {
    if (n)
      std::memcpy(out, acc, n * elementBytes(type));
    return;
  }
  dispatch(type, [&](auto t) {
    using T = decltype(t);
    auto *o = static_cast<T *>(out);
    auto *a = static_cast<const AccOf<T> *>(acc);
    for (size_t i = 0; i < n; ++i)
      o[i] = fromAcc<T>(a[i]);
  });
}

void accumulate(void *acc, const void *value, size_t n, DType type,
                Reduction reduction) {
  if (accumulatorType(type, reduction) == type)
    return combine(acc, acc, value, n, type, reduction);
  dispatch(type, [&](auto t) {
    using T = decltype(t);
    auto *a = static_cast<AccOf<T> *>(acc);
    auto *v = static_cast<const T *>(value);
    for (size_t i = 0; i < n; ++i)
      a[i] = apply(a[i], toAcc(v[i]), Reduction::Sum);
  });
}

void accumulateInto(void *out, const void *acc, const void *value, size_t n,
                    DType type, Reduction reduction) {
  if (accumulatorType(type, reduction) == type)
    return combine(out, acc, value, n, type, reduction);
  dispatch(type, [&](auto t) {
    using T = decltype(t);
    auto *o = static_cast<T *>(out);
    auto *a = static_cast<const AccOf<T> *>(acc);
    auto *v = static_cast<const T *>(value);
    for (size_t i = 0; i < n; ++i)
      o[i] = fromAcc<T>(apply(a[i], toAcc(v[i]), Reduction::Sum));
  });
}

void combine(void *out, const void *first, const void *value, size_t n,
             DType type, Reduction reduction) {
  dispatch(type, [&](auto t) {
    dispatch(reduction, [&](auto r) {
      using T = decltype(t);
      auto *o = static_cast<T *>(out);
      auto *f = static_cast<const T *>(first);
      auto *v = static_cast<const T *>(value);
      // Operands are the same array or apart, never shifted; without the hint
      // an accumulation in place would run unvectorised.
#pragma GCC ivdep
      for (size_t i = 0; i < n; ++i)
        o[i] = fromAcc<T>(apply(toAcc(f[i]), toAcc(v[i]), r()));
    });
  });
}

size_t firstHopOffset(size_t n, DType type, Reduction reduction) {
  return n *
         (elementBytes(accumulatorType(type, reduction)) - elementBytes(type));
}

void expand(void *acc, const void *first, const void *value, size_t n,
            DType type, Reduction reduction) {
  if (accumulatorType(type, reduction) == type)
    return combine(acc, first, value, n, type, reduction);
  // Of N accumulators in all, the i-th ends at 4(i+1) bytes and the next unread
  // element starts at 2N + 2(i+1), which is never less: going up, no write
  // reaches what is still to be read, as long as a tile is read before it is
  // written.
  dispatch(type, [&](auto t) {
    using T = decltype(t);
    auto *a = static_cast<AccOf<T> *>(acc);
    auto *v = static_cast<const T *>(value);
    auto *raw = static_cast<const char *>(first);
    constexpr size_t kTile = 512;
    T tile[kTile];
    for (size_t i = 0; i < n; i += kTile) {
      size_t count = std::min(kTile, n - i);
      std::memcpy(tile, raw + i * sizeof(T), count * sizeof(T));
      for (size_t j = 0; j < count; ++j)
        a[i + j] = apply(toAcc(tile[j]), toAcc(v[i + j]), Reduction::Sum);
    }
  });
}

} // namespace reckon::comm
