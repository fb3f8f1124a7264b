//===- LayerMirror.cpp - the fragments of a Llama stage as buffers --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/LayerMirror.h"

using namespace reckon;
using namespace reckon::model;

using Value = FragmentMirror::Value;

// In-place pairs (result, operand) of the ops that allow them.
#define RECKON_ADD_PLACES {{0, 1}, {0, 0}}
#define RECKON_UNARY_PLACE {{0, 0}}

LayerMirror::LayerMirror(const ModelDims &dims, const StageShape &shape)
    : shape_(shape), dims_(dims) {
  uint64_t width = shape.precision == Precision::Fp32 ? 4 : 2;
  uint64_t t = shape.tp;
  uint64_t tokens = shape.microBatch * dims.sequence;
  tokens_ = tokens * 4;
  hidden_ = tokens * dims.hidden * width;
  // Under sequence parallelism norms and residuals see 1/t of the tokens.
  part_ = shape.sequenceParallel ? hidden_ / t : hidden_;
  qWidth_ = tokens * (dims.qWidth() / t) * width;
  kvWidth_ = tokens * (dims.kvWidth() / t) * width;
  ffn_ = tokens * (dims.ffn / t) * width;
  stats_ = tokens * (dims.heads / t) * 4;
  logits_ = tokens * (dims.vocab / t) * width;
  rows_ = tokens * 4;
}

std::vector<uint64_t> LayerMirror::savedSizes() const {
  if (fp8())
    return savedSizesFp8();
  // n1, v, q, k, o, lse, x1, n2, gate, up, product
  return {part_, kvWidth_, qWidth_, kvWidth_, qWidth_, stats_,
          part_, part_,    ffn_,    ffn_,     ffn_};
}

bool LayerMirror::aligned() const {
  for (uint64_t bytes :
       {hidden_, part_, qWidth_, kvWidth_, ffn_, stats_, logits_, rows_})
    if (alignUp(bytes) != bytes)
      return false;
  return true;
}

Value LayerMirror::allReduce(FragmentMirror &f, Value value) const {
  if (shape_.tp == 1)
    return value;
  return f.op1({value}, f.bytes(value), RECKON_UNARY_PLACE);
}

Value LayerMirror::reduce(FragmentMirror &f, Value partial) const {
  if (!shape_.sequenceParallel)
    return allReduce(f, partial);
  return f.op1({partial}, part_); // reduce-scatter over the tokens
}

Value LayerMirror::gather(FragmentMirror &f, Value part) const {
  return shape_.sequenceParallel ? f.op1({part}, hidden_) : part;
}

LayerValues LayerMirror::layerForward(FragmentMirror &f, Value x,
                                      bool again) const {
  LayerValues l = emptyLayer(x, again);
  auto &w = l.weights;
  l.n1 = f.op1({x}, part_);
  l.n1Whole.value = gather(f, l.n1);
  maxima(f, {&l.n1Whole, &w[WeightQ], &w[WeightK], &w[WeightV], &w[WeightO],
             &w[WeightGate], &w[WeightUp], &w[WeightDown]});
  Value q = linear(f, l.n1Whole, w[WeightQ], qWidth_);
  Value k = linear(f, l.n1Whole, w[WeightK], kvWidth_);
  l.v = linear(f, l.n1Whole, w[WeightV], kvWidth_);
  l.q = f.op1({q}, qWidth_, RECKON_UNARY_PLACE);
  l.k = f.op1({k}, kvWidth_, RECKON_UNARY_PLACE);
  auto attention = f.op({l.q, l.k, l.v}, {qWidth_, stats_});
  l.o = l.oWhole.value = attention[0];
  l.lse = attention[1];
  maxima(f, {&l.oWhole});
  Value projected = reduce(f, linear(f, l.oWhole, w[WeightO], hidden_));
  l.x1 = f.op1({x, projected}, part_, RECKON_ADD_PLACES);
  l.n2 = f.op1({l.x1}, part_);
  l.n2Whole.value = gather(f, l.n2);
  maxima(f, {&l.n2Whole});
  l.gate = linear(f, l.n2Whole, w[WeightGate], ffn_);
  l.up = linear(f, l.n2Whole, w[WeightUp], ffn_);
  l.a = l.aWhole.value = f.op1({l.gate, l.up}, ffn_);
  return l;
}

Value LayerMirror::layerOutput(FragmentMirror &f, LayerValues &layer) const {
  maxima(f, {&layer.aWhole});
  Value down = linear(f, layer.aWhole, layer.weights[WeightDown], hidden_);
  return f.op1({layer.x1, reduce(f, down)}, part_, RECKON_ADD_PLACES);
}

Value LayerMirror::layerBackward(FragmentMirror &f, LayerValues &l,
                                 Value dy) const {
  auto &w = l.weights;
  int64_t ffn = dims_.ffn / shape_.tp, queries = dims_.qWidth() / shape_.tp,
          keys = dims_.kvWidth() / shape_.tp;
  LinearOperand dyWhole = gradient(gather(f, dy), dims_.hidden, false);
  maxima(f, {&dyWhole, &l.aWhole});
  gradWeight(f, dyWhole, l.aWhole);
  Value da = gradInput(f, dyWhole, w[WeightDown], ffn_);
  auto dmlp = f.op({da, l.gate, l.up}, {ffn_, ffn_}, {{0, 0}});
  LinearOperand dgate = gradient(dmlp[0], ffn, true);
  LinearOperand dup = gradient(dmlp[1], ffn, true);
  // The compiler walks the forward backwards: up before gate, v before k.
  // A recomputed layer has gathered its norms already.
  if (l.n2Whole.value < 0)
    l.n2Whole.value = gather(f, l.n2);
  maxima(f, {&dup, &l.n2Whole, &dgate});
  gradWeight(f, dup, l.n2Whole);
  Value dn2FromUp = gradInput(f, dup, w[WeightUp], hidden_);
  gradWeight(f, dgate, l.n2Whole);
  Value dn2FromGate = gradInput(f, dgate, w[WeightGate], hidden_);
  Value dn2 = f.op1({dn2FromUp, dn2FromGate}, hidden_, RECKON_ADD_PLACES);
  dn2 = reduce(f, dn2);
  f.op({dn2, l.x1}, {});
  Value dx1FromNorm = f.op1({dn2, l.x1}, part_, RECKON_UNARY_PLACE);
  Value dx1 = f.op1({dy, dx1FromNorm}, part_, RECKON_ADD_PLACES);

  LinearOperand dx1Whole = gradient(gather(f, dx1), dims_.hidden, false);
  maxima(f, {&dx1Whole, &l.oWhole});
  gradWeight(f, dx1Whole, l.oWhole);
  Value dattention = gradInput(f, dx1Whole, w[WeightO], qWidth_);
  auto dqkv = f.op({dattention, l.q, l.k, l.v, l.o, l.lse},
                   {qWidth_, kvWidth_, kvWidth_}, {}, stats_);
  LinearOperand dk =
      gradient(f.op1({dqkv[1]}, kvWidth_, RECKON_UNARY_PLACE), keys, true);
  LinearOperand dq =
      gradient(f.op1({dqkv[0]}, qWidth_, RECKON_UNARY_PLACE), queries, true);
  LinearOperand dv = gradient(dqkv[2], keys, true);
  if (l.n1Whole.value < 0)
    l.n1Whole.value = gather(f, l.n1);
  maxima(f, {&dv, &l.n1Whole, &dk, &dq});
  gradWeight(f, dv, l.n1Whole);
  Value dn1FromV = gradInput(f, dv, w[WeightV], hidden_);
  gradWeight(f, dk, l.n1Whole);
  Value dn1FromK = gradInput(f, dk, w[WeightK], hidden_);
  Value dn1 = f.op1({dn1FromV, dn1FromK}, hidden_, RECKON_ADD_PLACES);
  gradWeight(f, dq, l.n1Whole);
  Value dn1FromQ = gradInput(f, dq, w[WeightQ], hidden_);
  dn1 = f.op1({dn1, dn1FromQ}, hidden_, RECKON_ADD_PLACES);
  dn1 = reduce(f, dn1);
  f.op({dn1, l.x}, {});
  Value dxFromNorm = f.op1({dn1, l.x}, part_, RECKON_UNARY_PLACE);
  return f.op1({dx1, dxFromNorm}, part_, RECKON_ADD_PLACES);
}

Value LayerMirror::head(FragmentMirror &f, Value x, Value targets) const {
  Value n = f.op1({x}, part_);
  Value logits = f.op1({gather(f, n)}, logits_);
  Value max = allReduce(f, f.op1({logits}, rows_));
  Value sums = allReduce(f, f.op1({logits, targets, max}, 2 * rows_));
  Value lse = f.op1({logits, targets, sums, max}, rows_);
  Value dlogits = f.op1({logits, targets, lse}, logits_, RECKON_UNARY_PLACE);
  f.op({dlogits, gather(f, n)}, {});
  Value dn = reduce(f, f.op1({dlogits}, hidden_));
  f.op({dn, x}, {});
  return f.op1({dn, x}, part_, RECKON_UNARY_PLACE);
}

FragmentMirror LayerMirror::forward() const {
  FragmentMirror f;
  bool recompute = shape_.recompute == Recompute::Full;
  Value x;
  if (shape_.first) {
    Value tokens = f.argument(tokens_);
    x = reduce(f, f.op1({tokens}, hidden_));
    f.keep(x);
  } else {
    x = f.argument(part_);
  }
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    LayerValues l = layerForward(f, x, false);
    x = layerOutput(f, l);
    if (!recompute)
      keepSaved(f, l);
    // The next layer's input, the head's input or the stage's output.
    f.keep(x);
  }
  return f;
}

void LayerMirror::keepSaved(FragmentMirror &f, const LayerValues &l) const {
  for (Value value : {l.q, l.k, l.v, l.o, l.lse, l.x1, l.gate, l.up})
    f.keep(value);
  for (auto [value, operand] : {std::pair(l.n1, &l.n1Whole),
                                {l.n2, &l.n2Whole},
                                {l.a, &l.aWhole},
                                {l.o, &l.oWhole}}) {
    if (!operand->codesSaved) {
      f.keep(value);
      if (fp8())
        f.keep(operand->amax);
      continue;
    }
    f.keep(operand->scale);
    f.keep(operand->transposed);
  }
  if (fp8())
    for (const LinearOperand &weight : l.weights)
      f.keep(weight.amax);
}

LayerValues LayerMirror::savedLayer(FragmentMirror &f, Value x) const {
  LayerValues l = emptyLayer(x, false);
  l.q = f.argument(qWidth_);
  l.k = f.argument(kvWidth_);
  l.v = f.argument(kvWidth_);
  l.o = l.oWhole.value = f.argument(qWidth_);
  l.lse = f.argument(stats_);
  l.x1 = f.argument(part_);
  l.gate = f.argument(ffn_);
  l.up = f.argument(ffn_);
  if (fp8()) {
    savedOperandsFp8(f, l);
    return l;
  }
  l.n1 = f.argument(part_);
  l.n2 = f.argument(part_);
  l.a = l.aWhole.value = f.argument(ffn_);
  return l;
}

FragmentMirror LayerMirror::backward() const {
  FragmentMirror f;
  Value dy = shape_.last ? head(f, f.argument(part_), f.argument(tokens_))
                         : f.argument(part_);
  for (int64_t layer = shape_.layers - 1; layer >= 0; --layer) {
    Value x = f.argument(part_);
    LayerValues l = shape_.recompute == Recompute::Full
                        ? layerForward(f, x, true)
                        : savedLayer(f, x);
    dy = layerBackward(f, l, dy);
  }
  if (shape_.first)
    f.op({gather(f, dy), f.argument(tokens_)}, {});
  else
    f.keep(dy);
  return f;
}
