//===- Matmul.cpp - time of a matrix product ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Output tiles are dealt out to multiprocessors in waves; the last wave is as
// long as a full one, a tile wastes what lies beyond the matrix, and start and
// end of the K loop cost some columns of it. The best of a few tile shapes and
// splits of K is taken, as a tuned library does. Checked against measured
// shapes of one H100: tests/unit/time.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

namespace {

struct Tile {
  double m, n;
  double rate; ///< against the best tile
};

// Larger tiles reuse more of what they load.
constexpr Tile tiles[] = {{256, 128, 1},  {128, 256, 1},  {128, 128, .95},
                          {128, 64, .82}, {64, 128, .82}, {64, 64, .6}};

constexpr double kMinSplitK = 1024;

} // namespace

Kernels::Kernels(const Job &job, const Efficiency &efficiency) : e(efficiency) {
  const Accelerator &device = job.device;
  bool fp32 = job.precision == Precision::Fp32;
  width = fp32 ? 4 : 2;
  double peak = (fp32 ? device.fp32Tflops : device.bf16DenseTflops) * 1e12;
  double best = e.power * e.matmulFraction * peak;
  if (!fp32 && e.matmulBf16Tflops > 0)
    best = e.power * e.matmulBf16Tflops * 1e12;
  bf16Rate = e.eta * best;
  if (job.precision == Precision::Fp8) {
    double fp8 = e.matmulFp8Tflops > 0
                     ? e.matmulFp8Tflops
                     : e.matmulFraction * device.fp8DenseTflops;
    fp8Rate = e.eta * e.power * fp8 * 1e12;
  }
  attentionPeak = e.eta * e.power * peak;
  memoryRate = e.memory * job.memoryBandwidth;
  matmulMemoryRate = e.matmulMemory * job.memoryBandwidth;
  tiled = e.multiprocessors > 1;
}

double Kernels::matmul(double m, double n, double k, bool fp8, double batch,
                       double outputBytes) const {
  auto bits = [](double size) { return std::bit_cast<int64_t>(size); };
  // Sizes are positive, so that the sign is free for the precision.
  return known_.get({bits(m), bits(n), bits(k), bits(fp8 ? -batch : batch),
                     bits(outputBytes)},
                    [&] { return price(m, n, k, fp8, batch, outputBytes); });
}

double Kernels::price(double m, double n, double k, bool fp8, double batch,
                      double outputBytes) const {
  bool low = fp8 && fp8Rate > 0;
  double rate = low ? fp8Rate : bf16Rate;
  double in = low ? 1 : width, out = outputBytes > 0 ? outputBytes : width;
  double bytes = batch * (in * (m * k + k * n) + out * m * n);
  double moving = bytes / matmulMemoryRate;
  if (!tiled)
    return std::max(2 * m * n * k * batch / rate, moving) + e.kernelLatency;

  double perProcessor = rate / e.multiprocessors;
  double best = INFINITY;
  for (const Tile &tile : tiles)
    for (double split = 1; split <= 4; split *= 2) {
      if (split > 1 && k / split < kMinSplitK)
        break;
      double count =
          std::ceil(m / tile.m) * std::ceil(n / tile.n) * split * batch;
      double waves = std::ceil(count / e.multiprocessors);
      double loop = 2 * tile.m * tile.n * (k / split + e.matmulRamp);
      double time = waves * loop / (perProcessor * tile.rate) +
                    (split > 1 ? e.splitLatency : 0);
      best = std::min(best, time);
    }
  // Tokens are padded to a tile, widths of a model are not.
  bool aligned = std::fmod(n, 8) == 0 && std::fmod(k, 8) == 0;
  if (!aligned)
    best *= e.misaligned;
  return std::max(best, moving) + e.kernelLatency;
}
