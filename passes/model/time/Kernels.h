//===- Kernels.h - times of matmuls, attention and memory-bound ops -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_KERNELS_H
#define RECKON_PASSES_MODEL_TIME_KERNELS_H

#include "passes/model/KeyCache.h"
#include "passes/model/time/Efficiency.h"

namespace reckon::model {

/// Seconds spent on arithmetic and on memory-bound operations.
struct Work {
  double kernel = 0;
  double memory = 0;
  double total() const { return kernel + memory; }
  Work &operator+=(const Work &other) {
    kernel += other.kernel;
    memory += other.memory;
    return *this;
  }
  friend Work operator+(Work a, const Work &b) { return a += b; }
  friend Work operator*(double scale, const Work &w) {
    return {scale * w.kernel, scale * w.memory};
  }
};

/// The device's rates with the efficiencies applied.
struct Kernels {
  Kernels(const Job &job, const Efficiency &efficiency);

  /// C[m, n] = A[m, k] B[k, n], `batch` of them. Tile, wave and K quantisation
  /// over the multiprocessors, bounded below by the memory traffic.
  /// `outputBytes` an element of C. Matmul.cpp has the formula.
  /// Remembers the answer, so not thread-safe.
  double matmul(double m, double n, double k, bool fp8, double batch = 1,
                double outputBytes = 0) const;

  /// Forward and backward of causal attention: `tokens` queries a rank against
  /// `sequence` keys, `heads` heads of widths `query` and `value`, of which
  /// `keyShare` (1/cp) of the keys meets each query. Attention.cpp.
  Work attentionForward(double tokens, double sequence, double heads,
                        double query, double value) const;
  Work attentionBackward(double tokens, double sequence, double heads,
                         double query, double value) const;

  /// Seconds to move that many bytes to or from memory.
  double traffic(double bytes) const { return bytes / memoryRate; }

  const Efficiency &e;
  double width = 2;         ///< bytes of an element
  double bf16Rate = 0;      ///< sustained best-shape matmul rate, FLOP/s
  double fp8Rate = 0;       ///< 0: no such mode
  double attentionPeak = 0; ///< data sheet times eta, FLOP/s
  double memoryRate = 0;    ///< bytes/s of memory-bound operations
  double matmulMemoryRate = 0;
  bool tiled = true; ///< false on a CPU

private:
  double price(double m, double n, double k, bool fp8, double batch,
               double outputBytes) const;
  /// Layers that are split differently share most of their products.
  mutable KeyCache<5, double> known_;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_KERNELS_H
