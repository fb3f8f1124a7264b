//===- KernelBench.cpp - how fast the CPU kernels are ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// reckon-kernel-bench [ISA [THREADS [FILTER [bf16]]]]
//
// With bf16, activations and parameters are stored as that, and the yardstick
// is the best bf16 matmul.
//
// Prints the best time of each kernel on sizes of a small Llama, GFLOP/s for
// the compute-bound ones, and GB/s of operands read and written once for the
// others. The yardsticks come first: the best square matmul and a copy. Only
// the causal half of attention's scores is counted as work. With one thread
// its processor time counts, so that other programs do little harm; with more
// it is wall time, and the machine should be idle.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CpuDevice.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <vector>

using namespace reckon;
using namespace reckon::device;

namespace {

constexpr double budgetSeconds = 0.4;

struct Bench {
  Device &device;
  const char *filter;
  DType stored;      // of activations and parameters
  double peak = 0.0; // GFLOP/s of the best square matmul

  /// An operand that is stored as bf16 or f32.
  Operand x(int64_t elements) const { return {stored, elements}; }

  double now() const {
    timespec time;
    clock_gettime(device.threads() == 1 ? CLOCK_THREAD_CPUTIME_ID
                                        : CLOCK_MONOTONIC,
                  &time);
    return static_cast<double>(time.tv_sec) +
           1e-9 * static_cast<double>(time.tv_nsec);
  }

  /// Least seconds of a call on freshly allocated operands.
  double time(Kernel kernel, std::vector<Operand> inputs,
              std::vector<Operand> outputs, std::vector<int64_t> args,
              std::vector<double> floats = {}) {
    auto prepared = device.prepare(kernel, {inputs, outputs, args, floats});
    if (!prepared) {
      std::fprintf(stderr, "%s\n", prepared.error().message.c_str());
      std::exit(1);
    }
    std::vector<std::vector<float>> memory;
    std::vector<void *> pointers;
    for (auto *operands : {&inputs, &outputs})
      for (const Operand &operand : *operands) {
        int64_t bytes = operand.elements * dtypeBytes(operand.dtype);
        std::vector<float> block((bytes + 3) / 4);
        for (size_t i = 0; i < block.size(); ++i)
          block[i] = operand.dtype == DType::F32
                         ? static_cast<float>((i * 7919) % 1009) / 1009 - 0.5f
                         : 0.0f;
        if (operand.dtype == DType::BF16)
          for (int64_t i = 0; i < operand.elements; ++i)
            reinterpret_cast<uint16_t *>(block.data())[i] =
                static_cast<uint16_t>(0x3e00 + i * 7919 % 256); // near 1/4
        if (operand.dtype == DType::I32)
          for (int64_t i = 0; i < operand.elements; ++i)
            reinterpret_cast<int32_t *>(block.data())[i] =
                static_cast<int32_t>(i * 7919 % 32000);
        memory.push_back(std::move(block));
        pointers.push_back(memory.back().data());
      }
    double best = 1e300, total = 0.0;
    for (int runs = 0; runs < 3 || total < budgetSeconds; ++runs) {
      double begin = now();
      Status status = (*prepared)->run(pointers);
      double spent = now() - begin;
      if (!status) {
        std::fprintf(stderr, "%s\n", status.error().message.c_str());
        std::exit(1);
      }
      best = std::min(best, spent);
      total += spent;
    }
    return best;
  }

  /// Prints one line; flops 0 means that bytes are what counts: those of all
  /// operands, unless `touched` says otherwise.
  void line(Kernel kernel, const char *sizes, double flops,
            std::vector<Operand> inputs, std::vector<Operand> outputs,
            std::vector<int64_t> args, std::vector<double> floats = {},
            double touched = 0.0) {
    const char *name = kernelSignature(kernel)->name.data();
    if (filter && !std::strstr(name, filter))
      return;
    double seconds = time(kernel, inputs, outputs, args, floats);
    double bytes = touched;
    for (auto *operands : {&inputs, &outputs})
      for (const Operand &operand : *operands)
        bytes += touched > 0.0 ? 0.0
                               : static_cast<double>(operand.elements *
                                                     dtypeBytes(operand.dtype));
    std::printf("%-21s %-26s %10.1f us", name, sizes, 1e6 * seconds);
    if (flops > 0.0)
      std::printf(" %8.1f GFLOP/s %5.1f %% of peak\n", 1e-9 * flops / seconds,
                  100e-9 * flops / seconds / peak);
    else
      std::printf(" %8.1f GB/s\n", 1e-9 * bytes / seconds);
  }
};

Operand f32(int64_t elements) { return {DType::F32, elements}; }
Operand f64(int64_t elements) { return {DType::F64, elements}; }
Operand i32(int64_t elements) { return {DType::I32, elements}; }

void attention(Bench &bench, int64_t batch, int64_t hq, int64_t hkv, int64_t d,
               int64_t s) {
  char sizes[64];
  std::snprintf(sizes, sizeof sizes, "b%ld h%ld/%ld d%ld s%ld", batch, hq, hkv,
                d, s);
  int64_t q = batch * s * hq * d, k = batch * s * hkv * d, r = batch * s * hq;
  double pairs = 0.5 * static_cast<double>(s) * static_cast<double>(s + 1) *
                 static_cast<double>(batch * hq);
  double product = 2.0 * pairs * static_cast<double>(d);
  bench.line(Kernel::Attention, sizes, 2 * product,
             {bench.x(q), bench.x(k), bench.x(k)}, {bench.x(q), f32(r)},
             {hq, hkv, d, s});
  bench.line(
      Kernel::AttentionGrad, sizes, 5 * product,
      {bench.x(q), bench.x(q), bench.x(k), bench.x(k), bench.x(q), f32(r)},
      {bench.x(q), bench.x(k), bench.x(k), f32(r)}, {hq, hkv, d, s});
}

void linear(Bench &bench, int64_t t, int64_t n, int64_t k) {
  char sizes[64];
  std::snprintf(sizes, sizeof sizes, "T%ld N%ld K%ld", t, n, k);
  double flops = 2.0 * static_cast<double>(t) * static_cast<double>(n * k);
  bench.line(Kernel::Linear, sizes, flops, {bench.x(t * k), bench.x(n * k)},
             {bench.x(t * n)}, {n, k});
  bench.line(Kernel::LinearGradInput, sizes, flops,
             {bench.x(t * n), bench.x(n * k)}, {bench.x(t * k)}, {n, k});
  bench.line(Kernel::LinearGradWeight, sizes, flops,
             {bench.x(t * n), bench.x(t * k)}, {f32(n * k)}, {n, k, 1});
}

} // namespace

int main(int argc, char **argv) {
  CpuDeviceOptions options;
  if (argc > 1 && std::strcmp(argv[1], "best") != 0)
    options.isa = argv[1];
  if (argc > 2)
    options.threads = std::atoi(argv[2]);
  auto device = makeCpuDevice(options);
  if (!device) {
    std::fprintf(stderr, "reckon-kernel-bench: %s\n",
                 device.error().message.c_str());
    return static_cast<int>(device.error().code);
  }
  bool bf16 = argc > 4 && std::strcmp(argv[4], "bf16") == 0;
  Bench bench{**device, argc > 3 ? argv[3] : nullptr,
              bf16 ? DType::BF16 : DType::F32};
  std::printf("%s\n", (*device)->name().c_str());
  for (int64_t n : {512, 1024, 2048}) {
    double seconds =
        bench.time(Kernel::Linear, {bench.x(n * n), bench.x(n * n)},
                   {bench.x(n * n)}, {n, n});
    double rate = 2e-9 * static_cast<double>(n * n * n) / seconds;
    bench.peak = std::max(bench.peak, rate);
  }
  std::printf("best square matmul %.1f GFLOP/s\n", bench.peak);

  const int64_t t = 1024, h = 1024, v = 32000, f = 2816, n = 8 << 20;
  const auto size = static_cast<double>(dtypeBytes(bench.stored));
  bench.line(Kernel::Copy, "32 MiB", 0, {f32(n)}, {f32(n)}, {});
  bench.line(Kernel::FillZero, "32 MiB", 0, {}, {f32(n)}, {});
  linear(bench, 512, 256, 256);
  linear(bench, t, h, h);
  linear(bench, t, f, h);
  attention(bench, 4, 4, 2, 64, 128);
  attention(bench, 2, 8, 4, 32, 256);
  attention(bench, 1, 8, 2, 64, 512);
  attention(bench, 1, 8, 2, 64, 1024);
  attention(bench, 1, 8, 2, 128, 1024);
  attention(bench, 1, 4, 1, 128, 4096);
  bench.line(Kernel::Add, "T1024 H1024", 0, {bench.x(t * h), bench.x(t * h)},
             {bench.x(t * h)}, {});
  bench.line(Kernel::Embedding, "T1024 H1024", 0, {i32(t), bench.x(v * h)},
             {bench.x(t * h)}, {v, h, 0}, {}, 2.0 * size * t * h);
  bench.line(Kernel::EmbeddingGrad, "T1024 H1024", 0, {bench.x(t * h), i32(t)},
             {f32(v * h)}, {v, h, 0, 1}, {}, (8.0 + size) * t * h);
  bench.line(Kernel::RmsNorm, "T1024 H1024", 0, {bench.x(t * h), bench.x(h)},
             {bench.x(t * h)}, {h}, {1e-5});
  bench.line(Kernel::RmsNormGradInput, "T1024 H1024", 0,
             {bench.x(t * h), bench.x(t * h), bench.x(h)}, {bench.x(t * h)},
             {h}, {1e-5});
  bench.line(Kernel::RmsNormGradWeight, "T1024 H1024", 0,
             {bench.x(t * h), bench.x(t * h)}, {f32(h)}, {h, 0}, {1e-5});
  bench.line(Kernel::Rope, "T1024 16 x 64", 0, {bench.x(t * h), f32(t * 64)},
             {bench.x(t * h)}, {16, 64, t, 0});
  bench.line(Kernel::Swiglu, "T1024 F2816", 0, {bench.x(t * f), bench.x(t * f)},
             {bench.x(t * f)}, {f});
  bench.line(Kernel::SwigluGrad, "T1024 F2816", 0,
             {bench.x(t * f), bench.x(t * f), bench.x(t * f)},
             {bench.x(t * f), bench.x(t * f)}, {f});
  bench.line(Kernel::CrossEntropyMax, "T1024 V32000", 0, {bench.x(t * v)},
             {f32(t)}, {v, v});
  bench.line(Kernel::CrossEntropySum, "T1024 V32000", 0,
             {bench.x(t * v), i32(t), f32(t)}, {f32(2 * t)}, {v, v, 0});
  bench.line(Kernel::CrossEntropyLoss, "T1024", 0, {f32(2 * t), f32(t)},
             {f32(t), f64(8)}, {1});
  bench.line(Kernel::CrossEntropyGrad, "T1024 V32000", 0,
             {bench.x(t * v), i32(t), f32(t)}, {bench.x(t * v)}, {v, v, 0},
             {1e-3});
  bench.line(Kernel::SumSquares, "32 MiB", 0, {f32(n)}, {f64(8)}, {1});
  bench.line(Kernel::Adamw, "32 MiB", 0, {f32(n), f64(8), f64(8)},
             {f32(n), f32(n), f32(n)}, {}, {0.9, 0.95, 1e-8, 0.1});
  return 0;
}
