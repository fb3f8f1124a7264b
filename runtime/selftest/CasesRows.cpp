//===- CasesRows.cpp - cases of memory, embedding and row kernels ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/KernelCase.h"

namespace reckon::selftest {

using device::DType;
using device::Kernel;

namespace {

constexpr double kEps = 1e-5;

/// Rows and columns; the odd ones are multiples of nothing.
struct Shape {
  int64_t t, h;
};

std::vector<Shape> shapes(Sizes sizes) {
  std::vector<Shape> all = {{1, 1}, {3, 8}, {7, 65}, {33, 136}};
  if (sizes == Sizes::Full)
    all.insert(all.end(), {{129, 1000}, {1000, 2047}, {2048, 4096}});
  return all;
}

class Rows {
public:
  Rows(DType dtype, std::vector<KernelCase> &cases)
      : dtype_(dtype), cases_(cases) {}

  void memory(int64_t n) {
    add({Kernel::FillZero,
         sizesText({{"n", n}}),
         dtype_,
         {},
         {{x(n), sameBits}}});
    add({Kernel::Copy,
         sizesText({{"n", n}}),
         dtype_,
         {{x(n), normal()}},
         {{x(n), sameBits}}});
    add({Kernel::Add,
         sizesText({{"n", n}}),
         dtype_,
         {{x(n), normal()}, {x(n), normal()}},
         {{x(n), sameBits}}});
    for (int input : {0, 1})
      add({Kernel::Add,
           sizesText({{"n", n}, {"in place ", input}}),
           dtype_,
           {{x(n), normal()}, {x(n), normal()}},
           {{x(n), sameBits, normal(), input}}});
  }

  /// A table of v words from word `offset` on; tokens come from twice as many,
  /// so that some rows belong to other ranks.
  void embedding(Shape s, int64_t v, int64_t offset) {
    std::string sizes =
        sizesText({{"T", s.t}, {"V", v}, {"H", s.h}, {"offset ", offset}});
    device::Operand words{DType::I32, s.t};
    add({Kernel::Embedding,
         sizes,
         dtype_,
         {{words, tokens(0, 2 * v)}, {x(v * s.h), normal()}},
         {{x(s.t * s.h), sameBits}},
         {v, s.h, offset}});
    for (int accumulate : {0, 1})
      add({Kernel::EmbeddingGrad,
           sizes + acc(accumulate),
           dtype_,
           {{x(s.t * s.h), normal()}, {words, tokens(0, 2 * v)}},
           {{f32(v * s.h), summed(DType::F32, s.t), before(accumulate)}},
           {v, s.h, offset, accumulate}});
  }

  void norms(Shape s) {
    std::string sizes = sizesText({{"T", s.t}, {"H", s.h}});
    int64_t n = s.t * s.h;
    add({Kernel::RmsNorm,
         sizes,
         dtype_,
         {{x(n), normal()}, {x(s.h), normal()}},
         {{x(n), pointwise(dtype_)}},
         {s.h},
         {kEps}});
    // Along one column the gradient is 0 but for eps, along a few it may almost
    // cancel: only rounding would be compared.
    for (bool inPlace : {false, true}) {
      if (s.h < 8)
        break;
      CaseOutput dx{x(n), summed(dtype_, s.h)};
      if (inPlace)
        dx = {x(n), summed(dtype_, s.h), normal(), 0};
      add({Kernel::RmsNormGradInput,
           sizes + (inPlace ? " in place" : ""),
           dtype_,
           {{x(n), normal()}, {x(n), normal()}, {x(s.h), normal()}},
           {dx},
           {s.h},
           {kEps}});
    }
    for (int accumulate : {0, 1})
      add({Kernel::RmsNormGradWeight,
           sizes + acc(accumulate),
           dtype_,
           {{x(n), normal()}, {x(n), normal()}},
           {{f32(s.h), summed(DType::F32, s.t), before(accumulate)}},
           {s.h, accumulate},
           {kEps}});
  }

  void swiglu(Shape s) {
    std::string sizes = sizesText({{"T", s.t}, {"F", s.h}});
    int64_t n = s.t * s.h;
    add({Kernel::Swiglu,
         sizes,
         dtype_,
         {{x(n), normal(3)}, {x(n), normal()}},
         {{x(n), pointwise(dtype_)}},
         {s.h}});
    Tolerance t = pointwise(dtype_);
    std::vector<CaseInput> inputs = {
        {x(n), normal()}, {x(n), normal(3)}, {x(n), normal()}};
    add({Kernel::SwigluGrad,
         sizes,
         dtype_,
         inputs,
         {{x(n), t}, {x(n), t}},
         {s.h}});
    add({Kernel::SwigluGrad,
         sizes + " in place",
         dtype_,
         inputs,
         {{x(n), t, normal(), 1}, {x(n), t, normal(), 2}},
         {s.h}});
  }

  void layerNorms(Shape s) {
    std::string sizes = sizesText({{"T", s.t}, {"H", s.h}});
    int64_t n = s.t * s.h;
    add({Kernel::LayerNorm,
         sizes,
         dtype_,
         {{x(n), normal()}, {x(s.h), normal()}, {x(s.h), normal()}},
         {{x(n), summed(dtype_, s.h)}},
         {s.h},
         {kEps}});
    for (bool inPlace : {false, true}) {
      if (s.h < 8) // as for RMSNorm
        break;
      CaseOutput dx{x(n), summed(dtype_, s.h)};
      if (inPlace)
        dx = {x(n), summed(dtype_, s.h), normal(), 0};
      add({Kernel::LayerNormGradInput,
           sizes + (inPlace ? " in place" : ""),
           dtype_,
           {{x(n), normal()}, {x(n), normal()}, {x(s.h), normal()}},
           {dx},
           {s.h},
           {kEps}});
    }
    for (int accumulate : {0, 1}) {
      CaseOutput sum{f32(s.h), summed(DType::F32, s.t), before(accumulate)};
      add({Kernel::LayerNormGradWeight,
           sizes + acc(accumulate),
           dtype_,
           {{x(n), normal()}, {x(n), normal()}},
           {sum, sum},
           {s.h, accumulate},
           {kEps}});
    }
  }

  void gelu(Shape s) {
    std::string sizes = sizesText({{"T", s.t}, {"F", s.h}});
    int64_t n = s.t * s.h;
    Tolerance t = pointwise(dtype_);
    add({Kernel::Gelu, sizes, dtype_, {{x(n), normal(3)}}, {{x(n), t}}, {s.h}});
    std::vector<CaseInput> inputs = {{x(n), normal()}, {x(n), normal(3)}};
    add({Kernel::GeluGrad, sizes, dtype_, inputs, {{x(n), t}}, {s.h}});
    add({Kernel::GeluGrad,
         sizes + " in place",
         dtype_,
         inputs,
         {{x(n), t, normal(), 0}},
         {s.h}});
  }

private:
  device::Operand x(int64_t n) const { return {dtype_, n}; }
  static device::Operand f32(int64_t n) { return {DType::F32, n}; }
  static std::string acc(int accumulate) {
    return accumulate ? " accumulated" : "";
  }
  static Content before(int accumulate) {
    return accumulate ? normal() : Content{Content::Kind::Poison};
  }
  void add(KernelCase made) { cases_.push_back(std::move(made)); }

  DType dtype_;
  std::vector<KernelCase> &cases_;
};

} // namespace

void addRowCases(Sizes sizes, DType dtype, std::vector<KernelCase> &cases) {
  Rows rows(dtype, cases);
  bool full = sizes == Sizes::Full;
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{1023}, int64_t{4096}})
    rows.memory(n);
  if (full)
    rows.memory((int64_t{16} << 20) + 5);
  rows.embedding({1, 8}, 3, 0);
  rows.embedding({37, 65}, 50, 50);
  if (full) {
    rows.embedding({1000, 1023}, 32000, 0);
    rows.embedding({2048, 4096}, 32064, 32064);
  }
  for (Shape shape : shapes(sizes)) {
    rows.norms(shape);
    rows.swiglu(shape);
    rows.layerNorms(shape);
    rows.gelu(shape);
  }
  if (full)
    rows.swiglu({1024, 14336});
}

} // namespace reckon::selftest
