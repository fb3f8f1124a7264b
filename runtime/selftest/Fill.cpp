//===- Fill.cpp - random operands -----------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Fp8.h"
#include "runtime/selftest/KernelCheck.h"

#include <bit>
#include <cstring>

namespace reckon::selftest {

using device::DType;

namespace {

/// The finaliser of splitmix64: 64 random bits for each (seed, index).
uint64_t randomBits(uint64_t seed, int64_t index) {
  uint64_t x = seed + static_cast<uint64_t>(index + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// In [0, 1).
double uniform(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// The sum of four even numbers: mean 0, deviation 1, within 2 sqrt(3). Close
/// enough to a normal distribution, and cheap.
double bell(uint64_t bits) {
  double sum = 0.0;
  for (int piece = 0; piece < 4; ++piece)
    sum += static_cast<double>(bits >> (16 * piece) & 0xffff);
  constexpr double root3 = 1.7320508075688772;
  return (sum * 0x1p-16 - 2.0 + 0x1p-15) * root3;
}

uint16_t toBf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename T, typename Make>
void each(void *values, int64_t n, Make make) {
  auto *out = static_cast<T *>(values);
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(make(i));
}

} // namespace

void fillOperand(const device::Operand &operand, const Content &content,
                 uint64_t seed, void *values) {
  int64_t n = operand.elements;
  size_t bytes = static_cast<size_t>(n * device::dtypeBytes(operand.dtype));
  using Kind = Content::Kind;
  // All bits set: NaN in every floating-point type, -1 in the others.
  if (content.kind == Kind::Poison)
    std::memset(values, 0xff, bytes);
  if (content.kind == Kind::Zero)
    std::memset(values, 0, bytes);
  if (content.kind == Kind::Tokens) {
    RECKON_CHECK(operand.dtype == DType::I32 && content.count > 0);
    each<int32_t>(values, n, [&](int64_t i) {
      return content.first +
             static_cast<int64_t>(randomBits(seed, i) %
                                  static_cast<uint64_t>(content.count));
    });
  }
  if (content.kind != Kind::Normal && content.kind != Kind::Positive)
    return;
  auto number = [&](int64_t i) {
    uint64_t bits = randomBits(seed, i);
    return content.scale *
           (content.kind == Kind::Normal ? bell(bits) : uniform(bits));
  };
  if (operand.dtype == DType::F32)
    each<float>(values, n, number);
  else if (operand.dtype == DType::F64)
    each<double>(values, n, number);
  else if (operand.dtype == DType::F8E4M3)
    each<uint8_t>(values, n, [&](int64_t i) {
      return device::toFp8<device::Fp8::E4M3>(static_cast<float>(number(i)));
    });
  else if (operand.dtype == DType::F8E5M2)
    each<uint8_t>(values, n, [&](int64_t i) {
      return device::toFp8<device::Fp8::E5M2>(static_cast<float>(number(i)));
    });
  else {
    RECKON_CHECK(operand.dtype == DType::BF16);
    each<uint16_t>(values, n, [&](int64_t i) {
      return toBf16(static_cast<float>(number(i)));
    });
  }
}

} // namespace reckon::selftest
