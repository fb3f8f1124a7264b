//===- Attention.cpp - time of scores, softmax and weighted values --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Fused kernels compute the lower triangle only, at a share of the data
// sheet's peak that depends on the kernel's generation and the chip and that
// long sequences approach: 4 s a d / 2 FLOPs per token forward, 2.5 times that
// backward (five products, one of them the scores again). Before there were
// such kernels, every score of the whole square was written and read several
// times.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Kernels.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

static double flashShare(const Efficiency &e, bool forward) {
  if (e.attentionKernel >= 3)
    return forward ? e.flash3Forward : e.flash3Backward;
  if (e.attentionKernel >= 2)
    return forward ? e.flash2Forward : e.flash2Backward;
  return forward ? e.flash1Forward : e.flash1Backward;
}

static double fused(const Kernels &kernels, double tokens, double sequence,
                    double heads, double query, double value, bool forward) {
  const Efficiency &e = kernels.e;
  double flops = 2 * tokens * sequence * heads * (query + value) / 2;
  double share = flashShare(e, forward) * sequence /
                 (sequence + e.attentionHalf) *
                 (std::max(query, value) <= 64 ? e.smallHead : 1);
  return (forward ? 1 : 2.5) * flops / (kernels.attentionPeak * share) +
         e.kernelLatency;
}

Work Kernels::attentionForward(double tokens, double sequence, double heads,
                               double query, double value) const {
  if (e.attentionKernel >= 1)
    return {fused(*this, tokens, sequence, heads, query, value, true), 0};
  // One product a head: m = all queries of the sequences.
  double products = matmul(tokens, sequence, query, false, heads) +
                    matmul(tokens, value, sequence, false, heads);
  return {products, traffic(e.unfusedForwardBytes * heads * tokens * sequence)};
}

Work Kernels::attentionBackward(double tokens, double sequence, double heads,
                                double query, double value) const {
  if (e.attentionKernel >= 1)
    return {fused(*this, tokens, sequence, heads, query, value, false), 0};
  double products = matmul(tokens, sequence, value, false, heads) +
                    matmul(tokens, query, sequence, false, heads) +
                    matmul(tokens, query, sequence, false, heads) +
                    matmul(tokens, value, sequence, false, heads);
  return {products,
          traffic(e.unfusedBackwardBytes * heads * tokens * sequence)};
}
