//===- KernelCase.cpp - one call of a kernel with made-up operands --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/KernelCase.h"

#include <algorithm>
#include <cmath>

namespace reckon::selftest {

using device::DType;

std::string KernelCase::name() const {
  return std::string(device::kernelSignature(kernel)->name) + " " +
         std::string(device::dtypeName(dtype)) + " " + sizes;
}

Status runKernel(device::Device &device, device::Kernel kernel,
                 const device::KernelCall &call,
                 std::span<void *const> operands) {
  auto prepared = device.prepare(kernel, call);
  if (!prepared)
    return prepared.error();
  RECKON_TRY((*prepared)->run(operands));
  // The prepared kernel must live until it has run.
  return device.synchronize();
}

std::vector<KernelCase> kernelCases(Sizes sizes) {
  std::vector<KernelCase> cases;
  for (DType dtype : {DType::F32, DType::BF16}) {
    addRowCases(sizes, dtype, cases);
    addModelCases(sizes, dtype, cases);
    addLossCases(sizes, dtype, cases);
  }
  addFp8Cases(sizes, cases);
  std::stable_sort(cases.begin(), cases.end(),
                   [](const KernelCase &a, const KernelCase &b) {
                     return a.kernel < b.kernel;
                   });
  return cases;
}

// Two results in bf16 that come from almost the same number are equal or one
// unit in the last place apart, up to 2^-7 of the value. That happens only when
// the number lies near the middle between two, so the norm of the difference
// stays far below what another way of rounding would give (2^-9).
static constexpr double kBf16Step = 0x1p-7;
static constexpr double kBf16Norm = 0x1p-10;
// Operands are about 1.
static constexpr double kOrdinary = 0.05;

Tolerance pointwise(DType stored) {
  if (stored == DType::BF16)
    return {kBf16Step, 1e-5, kBf16Norm, kOrdinary};
  return {4e-6, 1e-6, 1e-6, kOrdinary};
}

Tolerance summed(DType stored, int64_t length) {
  // Rounding errors of a sum add up like a random walk.
  double walk =
      0x1p-23 * std::sqrt(static_cast<double>(std::max<int64_t>(length, 64)));
  if (stored == DType::BF16)
    return {kBf16Step, 8 * walk, kBf16Norm, kOrdinary};
  return {4e-6, 8 * walk, 2 * walk, kOrdinary};
}

std::string
sizesText(std::initializer_list<std::pair<const char *, int64_t>> sizes) {
  std::string text;
  for (const auto &[name, value] : sizes)
    text +=
        (text.empty() ? "" : " ") + std::string(name) + std::to_string(value);
  return text;
}

} // namespace reckon::selftest
