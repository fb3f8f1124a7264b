//===- CasesFp8.cpp - cases of the fp8 kernels ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Maxima, scales and codes are the same bits on every device. Products are not:
// tensor cores of Hopper keep fewer bits of a sum of fp8 products than f32 has.
//
//===----------------------------------------------------------------------===//
#include "runtime/base/Fp8Layout.h"
#include "runtime/selftest/KernelCase.h"

#include <cstring>

namespace reckon::selftest {

using device::DType;
using device::Kernel;

namespace {

device::Operand bf16(int64_t n) { return {DType::BF16, n}; }
const device::Operand kOne = {DType::F32, 1};

KernelCase amaxCase(int64_t n) {
  return {Kernel::Amax,
          sizesText({{"n", n}}),
          DType::BF16,
          {{bf16(n), normal()}},
          {{kOne, sameBits}}};
}

KernelCase castCase(int64_t rows, int64_t columns, DType codes, int layout) {
  int64_t n = rows * columns;
  device::Operand matrix = {codes, fp8Codes(rows, columns)};
  KernelCase made{Kernel::CastFp8,
                  sizesText({{"R", rows}, {"C", columns}}) + " " +
                      std::string(device::dtypeName(codes)) + " layout " +
                      std::to_string(layout),
                  DType::BF16,
                  {{bf16(n), normal()}, {kOne, computed()}},
                  {{kOne, sameBits}, {matrix, sameBits}},
                  {rows, columns, codes == DType::F8E5M2, layout}};
  if (layout == 3)
    made.outputs.push_back({matrix, sameBits});
  made.compute = [=](device::Device &cpu, std::span<void *const> p) {
    device::Operand in[] = {bf16(n)}, out[] = {kOne};
    return runKernel(cpu, Kernel::Amax, {in, out, {}, {}}, p.first(2));
  };
  return made;
}

/// Zeros where a matrix of codes is padded to a whole number of columns.
void clearPadding(void *codes, int64_t rows, int64_t columns) {
  int64_t width = fp8Padded(columns);
  for (int64_t r = 0; r < fp8Padded(rows); ++r)
    std::memset(static_cast<uint8_t *>(codes) + r * width + columns, 0,
                static_cast<size_t>(width - columns));
}

KernelCase linearCase(int64_t m, int64_t n, int64_t k, DType a, DType to,
                      bool accumulate) {
  // Of the terms of a sum; f32 results show it whole.
  Tolerance tolerance =
      to == DType::BF16 ? summed(to, k) : Tolerance{2e-3, 2e-3, 1e-3, 0.05};
  KernelCase made{Kernel::LinearFp8,
                  sizesText({{"M", m}, {"N", n}, {"K", k}}) + " " +
                      std::string(device::dtypeName(a)) + " to " +
                      std::string(device::dtypeName(to)) +
                      (accumulate ? " accumulated" : ""),
                  DType::BF16,
                  {{{a, fp8Codes(m, k)}, normal()},
                   {kOne, positive(1.0)},
                   {{DType::F8E4M3, fp8Codes(n, k)}, normal()},
                   {kOne, positive(1.0)}},
                  {{{to, m * n},
                    tolerance,
                    accumulate ? normal() : Content{Content::Kind::Poison}}},
                  {m, n, k, accumulate}};
  made.compute = [=](device::Device &, std::span<void *const> p) {
    clearPadding(p[0], m, k);
    clearPadding(p[2], n, k);
    return Status::success();
  };
  return made;
}

} // namespace

void addFp8Cases(Sizes sizes, std::vector<KernelCase> &cases) {
  struct Shape {
    int64_t m, n, k;
  };
  // Libraries take results of whole blocks of 16 only; sums may be padded.
  std::vector<Shape> shapes = {{16, 16, 16}, {32, 80, 48}, {48, 32, 17}};
  if (sizes == Sizes::Full)
    shapes.push_back({2048, 4096, 4096});
  for (auto [m, n, k] : shapes) {
    cases.push_back(amaxCase(m * k));
    for (DType codes : {DType::F8E4M3, DType::F8E5M2}) {
      for (int layout : {1, 2, 3})
        cases.push_back(castCase(m, k, codes, layout));
      cases.push_back(linearCase(m, n, k, codes, DType::BF16, false));
      for (bool accumulate : {false, true})
        cases.push_back(linearCase(m, n, k, codes, DType::F32, accumulate));
    }
  }
  cases.push_back(amaxCase(1));
  for (DType codes : {DType::F8E4M3, DType::F8E5M2})
    cases.push_back(castCase(33, 17, codes, 3));
}

} // namespace reckon::selftest
