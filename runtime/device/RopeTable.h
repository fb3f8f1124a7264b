//===- RopeTable.h - angles of rotary position embeddings -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_ROPETABLE_H
#define RECKON_RUNTIME_DEVICE_ROPETABLE_H

#include <cstdint>
#include <vector>

namespace reckon::device {

/// Parameters of rotary embeddings. With factor 1 the frequencies are
/// theta^(-2i/D). Otherwise they are scaled as in Llama 3.1 (Hugging Face's
/// rope_type "llama3"): wavelengths under original/highFrequency stay, those
/// over original/lowFrequency are divided by factor, and those between are
/// blended linearly in original/wavelength.
struct RopeScaling {
  double theta = 10000.0;
  double factor = 1.0;
  double lowFrequency = 1.0;
  double highFrequency = 4.0;
  double original = 8192.0; // tokens of context before scaling
};

/// The D/2 angular frequencies in radians per token, in fp64. D is even.
std::vector<double> ropeFrequencies(int64_t d, const RopeScaling &scaling);

/// Fills table[S, D] for positions first to first + S - 1: cosines in columns
/// [0, D/2), sines in [D/2, D). Angles are computed in fp64.
void ropeTable(float *table, int64_t s, int64_t d, const RopeScaling &scaling,
               int64_t first = 0);

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_ROPETABLE_H
