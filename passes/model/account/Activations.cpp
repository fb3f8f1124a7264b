//===- Activations.cpp - what a layer saves and needs while it runs -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Activations.h"

#include "passes/model/Layout.h"
#include "runtime/base/Fp8Layout.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

namespace {

class Layers {
public:
  Layers(const Job &job, const MemoryProfile &profile,
         const model::Choice &choice)
      : m_(job.model), p_(profile), c_(choice), job_(job),
        width_(choice.precision == Precision::Fp32 ? 2 : 1),
        exact_(job.representation == Representation::Reckon),
        tokens_(static_cast<double>(choice.microBatch * m_.sequence) /
                choice.cp) {
    part_ = choice.sequenceParallel ? tokens_ / choice.tp : tokens_;
  }

  LayerActivations layer(bool moe) const {
    LayerActivations a;
    double t = c_.tp, h = m_.hidden;
    // Norms with a bias belong to the generation that has dropout and scores
    // in memory.
    double dropout = m_.linearBias && !exact_ ? p_.dropout : 0;
    double scores = m_.linearBias ? p_.scores : 0;
    a.input = bytes(2 * width_ * part_ * h);
    if (exact_)
      a.norms = 4 * a.input;
    else
      a.norms = bytes(part_ * h * (p_.norms * width_ + dropout));
    if (c_.sequenceParallel)
      a.norms += bytes(tokens_ * h * p_.gatheredNorms * width_);
    a.attention = attention();
    a.scores = bytes(scores * tokens_ * m_.sequence * m_.heads / t);

    double perInner = (m_.gated ? p_.gatedMlp : p_.plainMlp) * width_;
    double inner = moe ? m_.sharedExperts * m_.expertFfn : m_.ffn;
    uint64_t product = bytes(2 * width_ * tokens_ * inner / t);
    a.mlp = exact_ ? (m_.gated ? 3 : 2) * product
                   : bytes(perInner * tokens_ * inner / t);
    uint64_t context = bytes(2 * width_ * tokens_ * m_.contextWidth() / t);
    uint64_t norms = 2 * a.input; // what is saved of the norms' outputs
    bool codes = exact_ && c_.precision == Precision::Fp8;
    if (codes)
      saveCodes(a, norms, product, inner / t);
    a.matmulInputs = norms + context + product;
    a.matmulGradients =
        2 * a.input + (m_.gated ? 2 : 1) * product +
        bytes(2 * width_ * tokens_ *
              (m_.qWidth() / t +
               static_cast<double>(m_.kvWidth() + m_.valueWidth()) /
                   static_cast<double>(m_.keyWays(c_.tp))));
    uint64_t routedProduct = 0;
    if (moe) {
      double rows = routedRows();
      double expertInner = rows * m_.expertFfn / c_.etp;
      routedProduct = bytes(2 * width_ * expertInner);
      a.routed = bytes(perInner * expertInner) + bytes(4 * width_ * rows * h) +
                 bytes(4.0 * part_ * m_.experts);
      a.matmulInputs += bytes(2 * width_ * (rows * h + expertInner));
      a.matmulGradients +=
          bytes(2 * width_ * (rows * h + (m_.gated ? 2 : 1) * expertInner));
    }
    if (c_.precision == Precision::Fp8 && !codes)
      saveInputsInFp8(a);

    uint64_t whole = a.whole();
    if (p_.selectiveKeep > 0)
      a.selective = bytes(p_.selectiveKeep * static_cast<double>(whole));
    else if (exact_)
      // Norm outputs and the products of the MLPs are cheap to compute again.
      a.selective = whole - norms - product - routedProduct;
    else
      a.selective = whole - a.scores;
    return a;
  }

  /// Rows that the fullest rank's experts process, times etp.
  double routedRows() const {
    double factor =
        job_.moeCapacityFactor > 0 ? job_.moeCapacityFactor : p_.moeImbalance;
    return tokens_ / c_.tp * m_.topK * factor * c_.etp;
  }

  double tokens() const { return tokens_; }
  double part() const { return part_; }
  double width() const { return width_; }
  uint64_t bytes(double value) const {
    uint64_t rounded = static_cast<uint64_t>(std::ceil(value));
    return exact_ ? alignUp(rounded) : rounded;
  }

private:
  /// Ours save the transposed codes of what the backward only multiplies, norms
  /// and products of the MLPs, each with its scale; and the largest magnitudes
  /// that a cast in the backward needs: of the context, of seven weights, and
  /// of norms that are gathered, which stay as they are.
  void saveCodes(LayerActivations &a, uint64_t &norms, uint64_t &product,
                 double inner) const {
    uint64_t scalar = alignUp(4);
    auto codes = [&](double columns) {
      return scalar + alignUp(static_cast<uint64_t>(
                          fp8Codes(static_cast<int64_t>(tokens_),
                                   static_cast<int64_t>(columns))));
    };
    uint64_t wholeNorms = norms, wholeProduct = product;
    if (c_.sequenceParallel)
      norms += 2 * scalar;
    else
      norms = 2 * codes(static_cast<double>(m_.hidden));
    if (inner > 0)
      product = codes(inner);
    a.norms += norms - wholeNorms;
    a.attention += 5 * scalar;
    a.mlp += product - wholeProduct + 3 * scalar;
  }

  void saveInputsInFp8(LayerActivations &a) const {
    double less = (2 - p_.fp8Inputs) / 2;
    auto shrink = [&](uint64_t &part, uint64_t inputs) {
      part -= std::min(part, bytes(less * static_cast<double>(inputs)));
    };
    uint64_t norms = 2 * a.input;
    shrink(a.norms, norms);
    shrink(a.mlp, a.matmulInputs - norms);
    a.matmulInputs -= bytes(less * static_cast<double>(a.matmulInputs));
  }

  uint64_t attention() const {
    double t = c_.tp;
    uint64_t sum = 0;
    auto kvWays = static_cast<double>(m_.keyWays(c_.tp));
    sum += bytes(2 * width_ * tokens_ * m_.qWidth() / t);
    sum += bytes(2 * width_ * tokens_ * m_.kvWidth() / kvWays);
    sum += bytes(2 * width_ * tokens_ * m_.valueWidth() / kvWays);
    sum += bytes(2 * width_ * tokens_ * m_.contextWidth() / t);
    if (p_.scores == 0 || !m_.linearBias) // a fused kernel's softmax statistics
      sum += bytes(4 * tokens_ * m_.heads / t);
    if (m_.isMla()) // the latents before and after their norms
      sum += bytes(4 * width_ * part_ * (m_.mla.qRank + m_.mla.kvRank) +
                   2 * width_ * part_ * m_.mla.rope);
    return sum;
  }

  const ModelShape &m_;
  const MemoryProfile &p_;
  const model::Choice &c_;
  const Job &job_;
  double width_; ///< 1: bf16, 2: fp32
  bool exact_;
  double tokens_, part_;
};

} // namespace

ActivationBytes model::activationBytes(const Job &job,
                                       const MemoryProfile &profile,
                                       const model::Choice &choice,
                                       int64_t vocabularyRows) {
  Layers layers(job, profile, choice);
  const ModelShape &m = job.model;
  double tokens = layers.tokens(), part = layers.part(), width = layers.width(),
         h = m.hidden, t = choice.tp;
  ActivationBytes a;
  a.dense = layers.layer(false);
  if (m.isMoe())
    a.moe = layers.layer(true);
  bool ours = job.representation == Representation::Reckon;
  a.tokens = layers.bytes((ours ? 4 : 8) * tokens);
  a.embedding = a.tokens;
  if (m.linearBias && !ours && profile.dropout > 0)
    a.embedding += layers.bytes(part * h);
  a.head = layers.bytes(4 * width * part * h);
  a.logits =
      layers.bytes(profile.logits * tokens *
                   static_cast<double>(vocabularyRows)) +
      layers.bytes(profile.wholeLogits * tokens * static_cast<double>(m.vocab));
  a.hidden = layers.bytes(2 * width * part * h);
  a.gathered = layers.bytes(2 * width * tokens * h);
  if (job.representation == Representation::Megatron &&
      m.keyWays(choice.tp) < choice.tp)
    a.gatheredKeys = layers.bytes(
        2 * width * tokens *
        static_cast<double>(m.qWidth() + m.kvWidth() + m.valueWidth()));
  if (m.isMoe())
    a.dispatch = layers.bytes(2 * width * layers.routedRows() * h);
  if (choice.cp > 1) {
    uint64_t block =
        layers.bytes(2 * width * tokens * (m.kvWidth() + m.valueWidth()) /
                     static_cast<double>(m.keyWays(choice.tp)));
    uint64_t queries =
        layers.bytes(2 * width * tokens * (m.qWidth() + m.contextWidth()) / t);
    switch (choice.contextMethod) {
    case ContextMethod::AllGather: // keys and values of all ranks
      a.context = static_cast<uint64_t>(choice.cp) * block;
      break;
    case ContextMethod::AllToAll: // heads in place of tokens
      a.context = block + queries;
      break;
    default: // the block at work and the next one
      a.context = 2 * block;
    }
  }
  // Gradients of the inner values and of the output.
  auto widest = [&](double inner) {
    return 2 * width * tokens * (2 * inner / t + h);
  };
  double temporaries =
      !m.isMoe() || m.firstDense > 0 ? widest(static_cast<double>(m.ffn)) : 0;
  if (m.isMoe()) {
    double inner = 2.0 * m.expertFfn / choice.etp + h;
    temporaries =
        std::max(temporaries,
                 widest(static_cast<double>(m.sharedExperts * m.expertFfn)) +
                     2 * width * layers.routedRows() * inner);
  }
  a.temporaries = layers.bytes(temporaries);
  return a;
}
