//===- CalibrateKernels.cpp - rates of the runtime's kernels --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Calibrate.h"
#include "runtime/device/CpuDevice.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace reckon;
using namespace reckon::calibrate;
using namespace reckon::device;

namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Operand f32(int64_t elements) { return {DType::F32, elements}; }

/// Least seconds of a call on fp32 operands of its own.
Result<double> time(Device &device, Kernel kernel,
                    const std::vector<Operand> &inputs,
                    const std::vector<Operand> &outputs,
                    const std::vector<int64_t> &args, double budget,
                    const std::vector<double> &floats = {}) {
  auto prepared = device.prepare(kernel, {inputs, outputs, args, floats});
  RECKON_TRY(prepared.status());
  std::vector<std::vector<float>> memory;
  std::vector<void *> pointers;
  for (const auto *operands : {&inputs, &outputs})
    for (const Operand &operand : *operands) {
      std::vector<float> block(static_cast<size_t>(operand.elements));
      for (size_t i = 0; i < block.size(); ++i)
        block[i] = static_cast<float>(i * 7919 % 1009) / 1009 - 0.5f;
      memory.push_back(std::move(block));
      pointers.push_back(memory.back().data());
    }
  double best = 1e300, begin = now();
  for (int runs = 0; runs < 3 || now() - begin < budget; ++runs) {
    double start = now();
    RECKON_TRY((*prepared)->run(pointers));
    best = std::min(best, now() - start);
  }
  return best;
}

} // namespace

Status calibrate::measureKernels(const Accelerator &nominal, int threads,
                                 double seconds, Calibration &result) {
  CpuDeviceOptions options;
  options.threads = threads;
  auto made = makeCpuDevice(options);
  RECKON_TRY(made.status());
  Device &device = **made;
  result.device = device.name();
  result.accelerator = nominal.name;
  double peak = nominal.fp32Tflops * 1e12;

  // Square products of growing size; the best one is the ceiling.
  double ceiling = 0;
  for (int64_t n : {128, 256, 512, 1024}) {
    Result<double> t = time(device, Kernel::Linear, {f32(n * n), f32(n * n)},
                            {f32(n * n)}, {n, n}, seconds);
    RECKON_TRY(t.status());
    auto size = static_cast<double>(n);
    double rate = 2 * size * size * size / *t;
    ceiling = std::max(ceiling, rate);
    result.measurements.push_back(
        {"linear fp32 " + std::to_string(n) + "^3", rate / 1e9, "GFLOP/s"});
  }
  result.constants.emplace_back("eta", 1.0); // the rates are sustained ones
  result.constants.emplace_back("matmul_fraction", ceiling / peak);

  // One sequence of 512, 8 heads of 64; half of the square is work.
  constexpr int64_t kSequence = 512, kHeads = 8, kWidth = 64;
  int64_t q = kSequence * kHeads * kWidth, rows = kHeads * kSequence;
  double flops = 2.0 * kSequence * static_cast<double>(q);
  std::vector<int64_t> args = {kHeads, kHeads, kWidth, kSequence};
  Result<double> forward =
      time(device, Kernel::Attention, {f32(q), f32(q), f32(q)},
           {f32(q), f32(rows)}, args, seconds);
  RECKON_TRY(forward.status());
  Result<double> backward =
      time(device, Kernel::AttentionGrad,
           {f32(q), f32(q), f32(q), f32(q), f32(q), f32(rows)},
           {f32(q), f32(q), f32(q), f32(rows)}, args, seconds);
  RECKON_TRY(backward.status());
  result.measurements.push_back(
      {"attention fp32, 512 tokens", flops / *forward / 1e9, "GFLOP/s"});
  result.measurements.push_back({"attention_grad fp32, 512 tokens",
                                 2.5 * flops / *backward / 1e9, "GFLOP/s"});
  // Blocks are small enough that short sequences run as well as long ones.
  result.constants.emplace_back("attention_kernel", 3.0);
  result.constants.emplace_back("attention_half", 0.0);
  result.constants.emplace_back("small_head", 1.0);
  result.constants.emplace_back("flash3_forward", flops / *forward / peak);
  result.constants.emplace_back("flash3_backward",
                                2.5 * flops / *backward / peak);

  // 32 MiB in, 32 MiB out: beyond the caches.
  constexpr int64_t kElements = 8 << 20;
  Result<double> add = time(device, Kernel::Copy, {f32(kElements)},
                            {f32(kElements)}, {}, seconds);
  RECKON_TRY(add.status());
  double bandwidth = 8.0 * kElements / *add;
  result.measurements.push_back({"copy 32 MiB", bandwidth / 1e9, "GB/s"});
  double share = bandwidth / (nominal.memBwGbs * 1e9);
  result.constants.emplace_back("memory", share);
  result.constants.emplace_back("matmul_memory", share);

  Result<double> launch = time(device, Kernel::Add, {f32(16), f32(16)},
                               {f32(16)}, {}, seconds / 10);
  RECKON_TRY(launch.status());
  result.measurements.push_back({"add of 16 elements", 1e6 * *launch, "us"});
  result.constants.emplace_back("kernel_latency", *launch);
  result.constants.emplace_back("factor", 1.0);
  return Status();
}

std::string calibrate::toYaml(const Calibration &calibration,
                              const std::string &date) {
  std::string text = "# Measured by reckon calibrate; cluster.calibration "
                     "names this file. Shares are of the\n# catalogue's "
                     "figures for the accelerator, latencies are seconds.\n";
  text += "accelerator: " + calibration.accelerator + "\n";
  text += "device: \"" + calibration.device + "\"\n";
  text += "date: \"" + date + "\"\n";
  char number[64];
  text += "constants:\n";
  for (const auto &[name, value] : calibration.constants) {
    std::snprintf(number, sizeof number, "%.6g", value);
    text += "  " + name + ": " + number + "\n";
  }
  text += "measurements:\n";
  for (const Measurement &m : calibration.measurements) {
    std::snprintf(number, sizeof number, "%.6g", m.value);
    text += "  - {what: \"" + m.what + "\", value: " + number +
            ", unit: " + m.unit + "}\n";
  }
  return text;
}
