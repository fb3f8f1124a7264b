//===- CasesLoss.cpp - cases of loss, norm and optimizer kernels ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/KernelCase.h"

#include <array>

namespace reckon::selftest {

using device::DType;
using device::Kernel;

namespace {

device::Operand f32(int64_t n) { return {DType::F32, n}; }
device::Operand i32(int64_t n) { return {DType::I32, n}; }
device::Operand f64(int64_t n) { return {DType::F64, n}; }

constexpr Tolerance kSumInF64 = {1e-6, 1e-9, 1e-6};

class Loss {
public:
  Loss(DType dtype, std::vector<KernelCase> &cases)
      : dtype_(dtype), cases_(cases) {}

  /// v columns, of which `valid` are words, from word `offset` on; targets come
  /// from twice as many words.
  void crossEntropy(int64_t t, int64_t v, int64_t valid, int64_t offset) {
    std::string sizes =
        sizesText({{"T", t}, {"V", v}, {"valid ", valid}, {"offset ", offset}});
    Content targets = tokens(0, 2 * valid + 1);
    std::vector<CaseInput> inputs = {
        {x(t * v), normal(4)}, {i32(t), targets}, {f32(t), computed()}};
    add({Kernel::CrossEntropyMax,
         sizes,
         dtype_,
         {inputs[0]},
         {{f32(t), sameBits}},
         {v, valid}});
    KernelCase sum{Kernel::CrossEntropySum,
                   sizes,
                   dtype_,
                   inputs,
                   {{f32(2 * t), summed(DType::F32, 4 * v)}},
                   {v, valid, offset}};
    sum.compute = [=, dtype = dtype_](device::Device &cpu,
                                      std::span<void *const> p) {
      return rowMax(cpu, dtype, t, v, valid, p[0], p[2]);
    };
    add(std::move(sum));
    // The gradient's statistics are those of this shard alone.
    for (int inPlace : {-1, 0}) {
      KernelCase grad{Kernel::CrossEntropyGrad,
                      sizes + (inPlace == 0 ? " in place" : ""),
                      dtype_,
                      inputs,
                      {{x(t * v), pointwise(dtype_), normal(), inPlace}},
                      {v, valid, offset},
                      {0.125}};
      if (inPlace < 0)
        grad.outputs[0].before = {Content::Kind::Poison};
      grad.outputs[0].tolerance.ordinary = 0.0; // most probabilities are tiny
      grad.compute = [=, dtype = dtype_](device::Device &cpu,
                                         std::span<void *const> p) {
        return logSumExp(cpu, dtype, t, v, valid, offset, p);
      };
      add(std::move(grad));
    }
  }

  void loss(int64_t t, int owner) {
    // Sums are at least 1: the largest term is exp(0).
    KernelCase made{Kernel::CrossEntropyLoss,
                    sizesText({{"T", t}, {"owner ", owner}}),
                    dtype_,
                    {{f32(2 * t), computed()}, {f32(t), normal(4)}},
                    {{f32(t), pointwise(DType::F32)},
                     {f64(device::metricSlots), kSumInF64, positive(1)}},
                    {owner}};
    made.compute = [=](device::Device &, std::span<void *const> p) {
      auto *sums = static_cast<float *>(p[0]);
      for (int64_t i = 0; i < t; ++i) {
        sums[i] = 1.0f + static_cast<float>(i * 7919 % 1009);
        sums[t + i] = -static_cast<float>(i * 104729 % 1013) / 128;
      }
      return Status::success();
    };
    add(std::move(made));
  }

  void squares(int64_t n, int owner) {
    add({Kernel::SumSquares,
         sizesText({{"n", n}, {"owner ", owner}}),
         dtype_,
         {{f32(n), normal()}},
         {{f64(device::metricSlots), kSumInF64, positive(1)}},
         {owner}});
  }

  void clip(double at) {
    add({Kernel::ClipFactor,
         "clip " + std::to_string(at).substr(0, 4),
         dtype_,
         {},
         {{f64(device::metricSlots), kSumInF64, positive(1)}},
         {},
         {at}});
  }

  /// bf16: the rounded main weights are an output too.
  void adamw(int64_t n) {
    Tolerance t = pointwise(DType::F32);
    KernelCase made{Kernel::Adamw,
                    sizesText({{"n", n}}),
                    dtype_,
                    {{f32(n), normal()},
                     {f64(device::metricSlots), positive(1)},
                     {f64(device::scalarSlots), computed()}},
                    {{f32(n), t, normal()},
                     {f32(n), t, normal(0.1)},
                     {f32(n), t, positive(0.1)}},
                    {},
                    {0.9, 0.95, 1e-8, 0.1}};
    if (dtype_ == DType::BF16)
      made.outputs.push_back({x(n), pointwise(dtype_)});
    made.compute = [](device::Device &, std::span<void *const> p) {
      auto *scalars = static_cast<double *>(p[2]);
      scalars[device::ScalarLearningRate] = 1e-2;
      scalars[device::ScalarBias1] = 0.271; // after step 3
      scalars[device::ScalarBias2] = 0.142625;
      return Status::success();
    };
    add(std::move(made));
  }

private:
  static Status rowMax(device::Device &cpu, DType dtype, int64_t t, int64_t v,
                       int64_t valid, void *logits, void *max) {
    device::Operand in[] = {{dtype, t * v}}, out[] = {f32(t)};
    int64_t args[] = {v, valid};
    void *const pointers[] = {logits, max};
    return runKernel(cpu, Kernel::CrossEntropyMax, {in, out, args, {}},
                     pointers);
  }

  /// Operands of the gradient: logits, targets, lse.
  static Status logSumExp(device::Device &cpu, DType dtype, int64_t t,
                          int64_t v, int64_t valid, int64_t offset,
                          std::span<void *const> p) {
    std::vector<float> max(t), sums(2 * t);
    RECKON_TRY(rowMax(cpu, dtype, t, v, valid, p[0], max.data()));
    device::Operand in[] = {{dtype, t * v}, i32(t), f32(t)};
    device::Operand out[] = {f32(2 * t)};
    int64_t args[] = {v, valid, offset};
    void *const pointers[] = {p[0], p[1], max.data(), sums.data()};
    RECKON_TRY(
        runKernel(cpu, Kernel::CrossEntropySum, {in, out, args, {}}, pointers));
    device::Operand in2[] = {f32(2 * t), f32(t)};
    device::Operand out2[] = {f32(t), f64(device::metricSlots)};
    int64_t owner[] = {0};
    std::array<double, device::metricSlots> metrics = {};
    void *const pointers2[] = {sums.data(), max.data(), p[2], metrics.data()};
    return runKernel(cpu, Kernel::CrossEntropyLoss, {in2, out2, owner, {}},
                     pointers2);
  }

  device::Operand x(int64_t n) const { return {dtype_, n}; }
  void add(KernelCase made) { cases_.push_back(std::move(made)); }

  DType dtype_;
  std::vector<KernelCase> &cases_;
};

} // namespace

void addLossCases(Sizes sizes, DType dtype, std::vector<KernelCase> &cases) {
  Loss loss(dtype, cases);
  bool full = sizes == Sizes::Full;
  loss.crossEntropy(1, 1, 1, 0);
  loss.crossEntropy(5, 65, 63, 0);
  loss.crossEntropy(17, 1000, 1000, 1000);
  if (full) {
    loss.crossEntropy(1000, 32001, 31999, 0);
    loss.crossEntropy(256, 128256, 128256, 0);
  }
  loss.adamw(1);
  loss.adamw(1021);
  if (full)
    loss.adamw((int64_t{16} << 20) + 3);
  if (dtype != DType::F32)
    return; // these have no operand of the storage type
  for (int owner : {0, 1}) {
    loss.loss(1, owner);
    loss.loss(full ? 8191 : 515, owner);
    loss.squares(1, owner);
    loss.squares(full ? (int64_t{32} << 20) + 1 : 40001, owner);
  }
  for (double at : {0.0, 0.25, 4.0})
    loss.clip(at);
}

} // namespace reckon::selftest
