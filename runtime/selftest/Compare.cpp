//===- Compare.cpp - how far two results are apart ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/Compare.h"

#include "runtime/device/kernels/Fp8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace reckon::selftest {

using device::DType;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double number(float value) { return value; }
double number(double value) { return value; }
double number(int32_t value) { return value; }
double number(uint16_t bf16) {
  return std::bit_cast<float>(uint32_t(bf16) << 16);
}

/// A code of fp8.
template <device::Fp8 format> struct Code {
  uint8_t bits;
};
template <device::Fp8 format> double number(Code<format> code) {
  return device::fromFp8<format>(code.bits);
}

template <typename T>
Difference compareAs(int64_t n, const Tolerance &tolerance, const T *got,
                     const T *want) {
  Difference found;
  double squares = 0.0, differences = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    double value = number(want[i]);
    squares += std::isfinite(value) ? value * value : 0.0;
  }
  auto count = static_cast<double>(std::max<int64_t>(n, 1));
  double rms = std::max(std::sqrt(squares / count), tolerance.ordinary);
  auto at = [&](int64_t i, double error) {
    if (error > found.worst)
      found = {error, 0.0, i, number(got[i]), number(want[i])};
  };
  for (int64_t i = 0; i < n; ++i) {
    double a = number(got[i]), b = number(want[i]);
    bool same = std::memcmp(got + i, want + i, sizeof(T)) == 0;
    // What was never written is NaN on both sides.
    if (same && !std::isnan(b))
      continue;
    double difference = std::abs(a - b);
    if (tolerance.exact() || !std::isfinite(difference)) {
      at(i, kInfinity);
      continue;
    }
    differences += difference * difference;
    if (difference > 0.0) // else zeroes of both signs
      at(i, difference /
                (tolerance.relative * std::abs(b) + tolerance.absolute * rms));
  }
  if (differences > 0.0)
    found.norm =
        std::sqrt(differences) / (tolerance.norm * std::sqrt(count) * rms);
  return found;
}

template <typename T>
Difference compareAs(int64_t n, const Tolerance &tolerance, const void *got,
                     const void *want) {
  return compareAs(n, tolerance, static_cast<const T *>(got),
                   static_cast<const T *>(want));
}

} // namespace

Difference compare(const device::Operand &operand, const Tolerance &tolerance,
                   const void *got, const void *want) {
  int64_t n = operand.elements;
  if (tolerance.scratch)
    return {};
  switch (operand.dtype) {
  case DType::F32:
    return compareAs<float>(n, tolerance, got, want);
  case DType::F64:
    return compareAs<double>(n, tolerance, got, want);
  case DType::BF16:
    return compareAs<uint16_t>(n, tolerance, got, want);
  case DType::I32:
    return compareAs<int32_t>(n, tolerance, got, want);
  case DType::F8E4M3:
    return compareAs<Code<device::Fp8::E4M3>>(n, tolerance, got, want);
  case DType::F8E5M2:
    return compareAs<Code<device::Fp8::E5M2>>(n, tolerance, got, want);
  default:
    break;
  }
  RECKON_CHECK(!"a kernel's output has one of these types");
  return {};
}

} // namespace reckon::selftest
