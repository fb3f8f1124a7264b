//===- CasesModel.cpp - cases of linear, rotary and attention kernels -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/RopeTable.h"
#include "runtime/selftest/KernelCase.h"

namespace reckon::selftest {

using device::DType;
using device::Kernel;

namespace {

device::Operand f32(int64_t n) { return {DType::F32, n}; }

/// Products and outputs in bf16 hold probabilities that were rounded to bf16
/// on some devices and not on others: noise of 2^-9 of each term, of which the
/// largest of millions of elements may be five deviations away.
Tolerance attentionTolerance(DType dtype, int64_t length, bool gradient) {
  if (dtype == DType::F32) {
    Tolerance tolerance = summed(dtype, 4 * length);
    // A token that sees only itself has no gradient in q and k: what remains
    // is the rounding of two equal terms of ordinary size.
    if (gradient)
      tolerance.ordinary = 1.0;
    return tolerance;
  }
  double noise = gradient ? 0x1p-5 : 0x1p-6;
  return {0x1p-7, noise, noise / 4, 0.05};
}

struct Heads {
  int64_t batch, hq, hkv, d, s;
};

class Model {
public:
  Model(DType dtype, std::vector<KernelCase> &cases)
      : dtype_(dtype), cases_(cases) {}

  void linear(int64_t t, int64_t n, int64_t k) {
    std::string sizes = sizesText({{"T", t}, {"N", n}, {"K", k}});
    add({Kernel::Linear,
         sizes,
         dtype_,
         {{x(t * k), normal()}, {x(n * k), normal()}},
         {{x(t * n), summed(dtype_, k)}},
         {n, k}});
    add({Kernel::LinearGradInput,
         sizes,
         dtype_,
         {{x(t * n), normal()}, {x(n * k), normal()}},
         {{x(t * k), summed(dtype_, n)}},
         {n, k}});
    for (int accumulate : {0, 1})
      add({Kernel::LinearGradWeight,
           sizes + (accumulate ? " accumulated" : ""),
           dtype_,
           {{x(t * n), normal()}, {x(t * k), normal()}},
           {{f32(n * k), summed(DType::F32, t),
             accumulate ? normal() : Content{Content::Kind::Poison}}},
           {n, k, accumulate}});
  }

  void rope(int64_t batch, int64_t heads, int64_t d, int64_t s) {
    int64_t n = batch * s * heads * d;
    for (int inverse : {0, 1})
      for (int inPlace : {-1, 0}) {
        KernelCase made{
            Kernel::Rope,
            sizesText({{"b", batch}, {"h", heads}, {"D", d}, {"S", s}}),
            dtype_,
            {{x(n), normal()}, {f32(s * d), computed()}},
            {{x(n), pointwise(dtype_), normal(), inPlace}},
            {heads, d, s, inverse}};
        made.sizes += inverse ? " inverse" : "";
        made.sizes += inPlace == 0 ? " in place" : "";
        made.compute = [=](device::Device &, std::span<void *const> p) {
          device::ropeTable(static_cast<float *>(p[1]), s, d, {});
          return Status::success();
        };
        if (inPlace < 0)
          made.outputs[0].before = {Content::Kind::Poison};
        add(std::move(made));
      }
  }

  void attention(const Heads &h) {
    int64_t q = h.batch * h.s * h.hq * h.d, k = h.batch * h.s * h.hkv * h.d;
    int64_t rows = h.batch * h.hq * h.s;
    std::string sizes = sizesText(
        {{"b", h.batch}, {"h", h.hq}, {"/", h.hkv}, {"D", h.d}, {"S", h.s}});
    std::vector<int64_t> args = {h.hq, h.hkv, h.d, h.s};
    add({Kernel::Attention,
         sizes,
         dtype_,
         {{x(q), normal()}, {x(k), normal()}, {x(k), normal()}},
         {{x(q), attentionTolerance(dtype_, h.s, false)},
          {f32(rows), summed(DType::F32, 4 * (h.d + h.s))}},
         args});
    Tolerance t = attentionTolerance(dtype_, h.s + h.d, true);
    KernelCase grad{
        Kernel::AttentionGrad,
        sizes,
        dtype_,
        {{x(q), normal()},
         {x(q), normal()},
         {x(k), normal()},
         {x(k), normal()},
         {x(q), computed()},
         {f32(rows), computed()}},
        {{x(q), t}, {x(k), t}, {x(k), t}, {f32(rows), {.scratch = true}}},
        args};
    DType dtype = dtype_;
    grad.compute = [=](device::Device &cpu, std::span<void *const> p) {
      device::Operand in[] = {{dtype, q}, {dtype, k}, {dtype, k}};
      device::Operand out[] = {{dtype, q}, {DType::F32, rows}};
      void *const pointers[] = {p[1], p[2], p[3], p[4], p[5]};
      return runKernel(cpu, Kernel::Attention, {in, out, args, {}}, pointers);
    };
    add(std::move(grad));
  }

private:
  device::Operand x(int64_t n) const { return {dtype_, n}; }
  void add(KernelCase made) { cases_.push_back(std::move(made)); }

  DType dtype_;
  std::vector<KernelCase> &cases_;
};

} // namespace

void addModelCases(Sizes sizes, DType dtype, std::vector<KernelCase> &cases) {
  Model model(dtype, cases);
  bool full = sizes == Sizes::Full;
  model.linear(1, 8, 8);
  model.linear(33, 72, 40);
  model.linear(19, 65, 17);
  if (full) {
    model.linear(1000, 1024, 2816);
    model.linear(2048, 4096, 4096);
  }
  model.rope(1, 1, 2, 1);
  model.rope(2, 3, 10, 17);
  model.rope(1, 2, 64, 33);
  if (full)
    model.rope(1, 32, 128, 2048);
  model.attention({1, 1, 1, 8, 1});
  model.attention({2, 4, 2, 16, 17});
  model.attention({1, 2, 1, 64, 65});
  if (full) {
    model.attention({2, 8, 8, 80, 130});
    model.attention({2, 16, 4, 64, 512});
    model.attention({1, 32, 8, 128, 2048});
  }
}

} // namespace reckon::selftest
