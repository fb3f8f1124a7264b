//===- Layer.cpp - time of one layer, of the embedding and of the head ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Layer.h"

#include "passes/model/time/ModelFlops.h"

#include "passes/model/time/Shape.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

void LayerTime::scale(double factor) {
  for (Work *work : {&forward, &inputGrad, &weightGrad, &recompute[0],
                     &recompute[1], &recompute[2]})
    *work = factor * *work;
  for (Exposure *e : {&tensorForward, &tensorBackward[0], &tensorBackward[1],
                      &tensorBackward[2], &contextForward, &contextBackward,
                      &expertForward, &expertBackward, &shardForward,
                      &shardBackward[0], &shardBackward[1], &shardBackward[2]})
    *e = factor * *e;
  for (double *seconds :
       {&hostForward, &hostBackward[0], &hostBackward[1], &hostBackward[2]})
    *seconds *= factor;
}

LayerModel::Shape LayerModel::shape(const LayerKey &key) const {
  const ModelShape &m = job_.model;
  Shape s;
  s.t = static_cast<double>(key.tp);
  s.tokens = static_cast<double>(key.microBatch * m.sequence) /
             static_cast<double>(key.cp);
  s.copies = key.sequenceParallel ? s.t : 1;
  s.sequence = static_cast<double>(m.sequence);
  s.hidden = static_cast<double>(m.hidden);
  s.query = static_cast<double>(m.qWidth());
  s.key = static_cast<double>(m.kvWidth());
  s.value = static_cast<double>(m.valueWidth());
  s.contextWidth = static_cast<double>(m.contextWidth());
  s.keyWays = static_cast<double>(m.keyWays(key.tp));
  s.keyColumns =
      (s.key + s.value) / (gathersKeys(job_, key.tp) ? s.t : s.keyWays);
  s.heads = static_cast<double>(m.heads) / s.t;
  s.headQuery =
      static_cast<double>(m.isMla() ? m.mla.nope + m.mla.rope : m.headDim);
  s.headValue = static_cast<double>(m.isMla() ? m.mla.value : m.headDim);
  return s;
}

void LayerModel::linear(LayerTime &time, double m, double n, double k,
                        bool fp8) const {
  time.forward.kernel += kernels_.matmul(m, n, k, fp8);
  time.inputGrad.kernel += kernels_.matmul(m, k, n, fp8);
  time.weightGrad.kernel +=
      kernels_.matmul(k, n, m, fp8, 1, e_.weightGradBytes);
  if (fp8 && kernels_.fp8Rate > 0) {
    time.forward.memory += kernels_.traffic(e_.castBytes * m * k);
    time.inputGrad.memory += kernels_.traffic(e_.castBytes * m * n);
  }
}

void LayerModel::attention(LayerTime &time, const Shape &s) const {
  const ModelShape &m = job_.model;
  if (m.isMla()) {
    auto qRank = static_cast<double>(m.mla.qRank);
    auto kvRank = static_cast<double>(m.mla.kvRank);
    auto rope = static_cast<double>(m.mla.rope);
    double nope = s.heads * static_cast<double>(m.mla.nope);
    double value = s.heads * s.headValue;
    // Down-projections are whole on every rank; sequence parallelism splits
    // their tokens.
    if (qRank > 0) {
      linear(time, s.tokens / s.copies, qRank, s.hidden);
      linear(time, s.tokens, s.query / s.t, qRank);
    } else {
      linear(time, s.tokens, s.query / s.t, s.hidden);
    }
    linear(time, s.tokens / s.copies, kvRank + rope, s.hidden);
    linear(time, s.tokens, nope + value, kvRank);
  } else {
    linear(time, s.tokens, s.query / s.t + s.keyColumns, s.hidden);
  }
  linear(time, s.tokens, s.hidden, s.contextWidth / s.t);
  time.forward += kernels_.attentionForward(s.tokens, s.sequence, s.heads,
                                            s.headQuery, s.headValue);
  time.inputGrad += kernels_.attentionBackward(s.tokens, s.sequence, s.heads,
                                               s.headQuery, s.headValue);
}

void LayerModel::denseMlp(LayerTime &time, const Shape &s, double width) const {
  double local = width / s.t;
  linear(time, s.tokens, (job_.model.gated ? 2 : 1) * local, s.hidden);
  linear(time, s.tokens, s.hidden, local);
}

void LayerModel::tensor(LayerTime &time, const LayerKey &key, const Shape &s,
                        const TensorPasses &passes) const {
  if (key.tp <= 1)
    return;
  Group group{key.tp, 1};
  double seconds = links_.tensorPass(group, s.hiddenBytes());
  bool within = links_.within(group);
  double forward = 1, backward = 1;
  if (within) {
    forward = key.sequenceParallel ? e_.tensorForward : e_.tensorPlainForward;
    backward =
        key.sequenceParallel ? e_.tensorBackward : e_.tensorPlainBackward;
  }
  auto exposed = [&](double count, double share) {
    return Exposure{count * seconds, share * count * seconds};
  };
  time.tensorForward += exposed(passes.forward, forward);
  time.tensorPassesForward += passes.forward;
  for (size_t i = 0; i < 3; ++i) {
    time.tensorBackward[i] +=
        exposed(passes.backward[i], passes.alike ? forward : backward);
    time.tensorBackward[i] += exposed(passes.again[i], forward);
    time.tensorPassesBackward[i] += passes.backward[i] + passes.again[i];
  }
}

/// Queries, keys and values of all ranks, gathered after the projection and
/// scattered before its backward.
void LayerModel::gatherKeys(LayerTime &time, const LayerKey &key,
                            const Shape &s) const {
  if (!gathersKeys(job_, key.tp))
    return;
  double widths = s.query + s.key + s.value;
  double seconds = links_.tensorPass({key.tp, 1}, 2 * s.tokens * widths);
  double passes = widths / s.hidden;
  time.tensorForward += {seconds, seconds};
  time.tensorPassesForward += passes;
  for (size_t i = 0; i < 3; ++i) {
    double times = i == static_cast<size_t>(Recompute::Full) ? 2 : 1;
    time.tensorBackward[i] += {times * seconds, times * seconds};
    time.tensorPassesBackward[i] += times * passes;
  }
}

void LayerModel::context(LayerTime &time, const LayerKey &key,
                         const Shape &s) const {
  if (key.cp <= 1)
    return;
  auto c = static_cast<double>(key.cp);
  Group group{key.cp, key.tp};
  double keys = 2 * s.tokens * (s.key + s.value) / s.keyWays; // bytes of K, V
  double queries = 2 * s.tokens * (s.query + s.contextWidth) / s.t;
  Exposure forward, backward;
  if (key.method == ContextMethod::AllToAll) {
    // Heads for tokens before attention and back after it.
    forward.total = links_.allToAll(group, keys + queries, 1);
    backward.total = forward.total;
    forward.exposed = forward.total;
    backward.exposed = backward.total;
  } else if (key.method == ContextMethod::AllGather) {
    forward.total = links_.pass(group, c * keys);
    backward.total = 2 * forward.total; // again, and the sum of the gradients
    forward.exposed = forward.total;
    backward.exposed = backward.total;
  } else {
    // A ring: each step's transfer runs beside the attention on the last block.
    bool within = links_.within(group);
    double rate = within ? links_.intraRate : links_.interRate;
    double latency = within ? e_.intraLatency : e_.interLatency;
    forward.total = (c - 1) * (latency + keys / rate);
    backward.total = 2 * forward.total;
    double hide = (c - 1) / c * e_.contextExposed;
    double attention = kernels_
                           .attentionForward(s.tokens, s.sequence, s.heads,
                                             s.headQuery, s.headValue)
                           .total();
    double gradient = kernels_
                          .attentionBackward(s.tokens, s.sequence, s.heads,
                                             s.headQuery, s.headValue)
                          .total();
    forward.exposed = std::max(0.0, forward.total - hide * attention);
    backward.exposed = std::max(0.0, backward.total - hide * gradient);
  }
  time.contextForward += forward;
  time.contextBackward += backward;
}

void LayerModel::recomputation(LayerTime &time,
                               const Work &attentionCore) const {
  double matmuls = time.forward.kernel - attentionCore.kernel;
  double rest = time.forward.memory - attentionCore.memory;
  Work &some = time.recompute[static_cast<size_t>(Recompute::Selective)];
  some.kernel = e_.selectiveMatmul * matmuls;
  some.memory = e_.selectiveElementwise * rest;
  if (e_.attentionKernel < 1)
    some += attentionCore; // the scores are what is dropped
  time.recompute[static_cast<size_t>(Recompute::Full)] = time.forward;
}

/// `routed`: with the routed experts of a layer that has some.
LayerTime LayerModel::layer(const LayerKey &key, bool moe, bool routed) const {
  const ModelShape &m = job_.model;
  Shape s = shape(key);
  LayerTime time;
  attention(time, s);
  // Attention's projections gather and scatter once each, the feed-forward
  // block too unless its tokens go to experts from where they are.
  double passes = 4;
  if (!moe) {
    denseMlp(time, s, static_cast<double>(m.ffn));
  } else {
    if (routed)
      experts(time, key, s);
    if (m.sharedExperts > 0)
      denseMlp(time, s, static_cast<double>(m.sharedExperts * m.expertFfn));
    else
      passes = 2;
  }
  elementwise(time, s, moe);
  tensor(time, key, s, layerPasses(job_, key.sequenceParallel, passes, moe));
  gatherKeys(time, key, s);
  context(time, key, s);
  recomputation(time, kernels_.attentionForward(s.tokens, s.sequence, s.heads,
                                                s.headQuery, s.headValue));
  if (skipsLastMatmul(job_, moe))
    time.recompute[static_cast<size_t>(Recompute::Full)].kernel -=
        kernels_.matmul(s.tokens, s.hidden, static_cast<double>(m.ffn) / s.t,
                        true);
  LayerParameters p = m.layerParameters(moe);
  double local = localParameters(job_, p, key.tp);
  double expertLocal = static_cast<double>(routed ? p.experts : 0) /
                       static_cast<double>(key.ep * key.etp);
  finish(time, key, local, expertLocal, moe);
  return time;
}

LayerTime LayerModel::embedding(const LayerKey &key) const {
  Shape s = shape(key);
  LayerTime time;
  double bytes = kernels_.width * s.tokens * s.hidden;
  time.forward.memory = kernels_.traffic(2 * bytes);
  time.weightGrad.memory = kernels_.traffic(3 * bytes);
  tensor(time, key, s, embeddingPasses(job_, key.sequenceParallel));
  double local = static_cast<double>(job_.model.embeddingParameters()) / s.t;
  LayerKey once = key;
  once.gatherBackward = false; // the backward does not read the table
  finish(time, once, local, 0, false);
  return time;
}

LayerTime LayerModel::head(const LayerKey &key) const {
  Shape s = shape(key);
  LayerTime time;
  double columns = static_cast<double>(job_.model.vocab) / s.t;
  // Vocabularies are padded, so no penalty for odd ones.
  linear(time, s.tokens, columns - std::fmod(columns, 8) + 8, s.hidden, false);
  double logits = s.tokens * columns * kernels_.width / 2;
  time.forward.memory += kernels_.traffic(e_.logitBytes * logits / 2);
  time.inputGrad.memory += kernels_.traffic(e_.logitBytes * logits / 2);
  tensor(time, key, s, headPasses(job_, key.sequenceParallel));
  double local = static_cast<double>(job_.model.vocab) * s.hidden / s.t;
  finish(time, key, local, 0, false);
  return time;
}

LayerTime LayerModel::mtp(const LayerKey &key, const LayerTime &layer,
                          const LayerTime &head) const {
  Shape s = shape(key);
  LayerTime time = layer;
  linear(time, s.tokens, s.hidden, 2 * s.hidden);
  time.forward += head.forward;
  time.inputGrad += head.inputGrad;
  time.weightGrad += head.weightGrad;
  time.tensorForward += head.tensorForward;
  time.tensorPassesForward += head.tensorPassesForward;
  for (size_t i = 0; i < 3; ++i) {
    time.tensorBackward[i] += head.tensorBackward[i];
    time.tensorPassesBackward[i] += head.tensorPassesBackward[i];
  }
  return time;
}

UnitTimes LayerModel::units(const LayerKey &key) const {
  const ModelShape &m = job_.model;
  UnitTimes units;
  if (!m.isMoe() || m.firstDense > 0)
    units.dense = layer(key, false, true);
  if (m.isMoe())
    units.expert = layer(key, true, true);
  units.embedding = embedding(key);
  units.head = head(key);
  if (m.mtpLayers > 0)
    units.mtp = mtp(key, m.isMoe() ? units.expert : units.dense, units.head);
  for (LayerTime *time :
       {&units.dense, &units.expert, &units.embedding, &units.head, &units.mtp})
    time->scale(e_.factor);
  return units;
}
