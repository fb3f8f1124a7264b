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
    : shape_(shape) {
  uint64_t width = shape.precision == Precision::Bf16 ? 2 : 4;
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

LayerValues LayerMirror::layerForward(FragmentMirror &f, Value x) const {
  LayerValues l;
  l.x = x;
  l.n1 = f.op1({x}, part_);
  l.n1Whole = gather(f, l.n1);
  Value q = f.op1({l.n1Whole}, qWidth_);
  Value k = f.op1({l.n1Whole}, kvWidth_);
  l.v = f.op1({l.n1Whole}, kvWidth_);
  l.q = f.op1({q}, qWidth_, RECKON_UNARY_PLACE);
  l.k = f.op1({k}, kvWidth_, RECKON_UNARY_PLACE);
  auto attention = f.op({l.q, l.k, l.v}, {qWidth_, stats_});
  l.o = attention[0];
  l.lse = attention[1];
  Value projected = reduce(f, f.op1({l.o}, hidden_));
  l.x1 = f.op1({x, projected}, part_, RECKON_ADD_PLACES);
  l.n2 = f.op1({l.x1}, part_);
  l.n2Whole = gather(f, l.n2);
  l.gate = f.op1({l.n2Whole}, ffn_);
  l.up = f.op1({l.n2Whole}, ffn_);
  l.a = f.op1({l.gate, l.up}, ffn_);
  return l;
}

Value LayerMirror::layerOutput(FragmentMirror &f,
                               const LayerValues &layer) const {
  Value down = reduce(f, f.op1({layer.a}, hidden_));
  return f.op1({layer.x1, down}, part_, RECKON_ADD_PLACES);
}

Value LayerMirror::layerBackward(FragmentMirror &f, const LayerValues &l,
                                 Value dy) const {
  // Ops without results are weight gradients: they add to a state.
  Value dyWhole = gather(f, dy);
  f.op({dyWhole, l.a}, {});
  Value da = f.op1({dyWhole}, ffn_);
  auto dmlp = f.op({da, l.gate, l.up}, {ffn_, ffn_}, {{0, 0}});
  Value dgate = dmlp[0], dup = dmlp[1];
  // The compiler walks the forward backwards: up before gate, v before k.
  // A recomputed layer has gathered its norms already.
  Value n2 = l.n2Whole >= 0 ? l.n2Whole : gather(f, l.n2);
  f.op({dup, n2}, {});
  Value dn2FromUp = f.op1({dup}, hidden_);
  f.op({dgate, n2}, {});
  Value dn2FromGate = f.op1({dgate}, hidden_);
  Value dn2 = f.op1({dn2FromUp, dn2FromGate}, hidden_, RECKON_ADD_PLACES);
  dn2 = reduce(f, dn2);
  f.op({dn2, l.x1}, {});
  Value dx1FromNorm = f.op1({dn2, l.x1}, part_, RECKON_UNARY_PLACE);
  Value dx1 = f.op1({dy, dx1FromNorm}, part_, RECKON_ADD_PLACES);

  Value dx1Whole = gather(f, dx1);
  f.op({dx1Whole, l.o}, {});
  Value dattention = f.op1({dx1Whole}, qWidth_);
  auto dqkv = f.op({dattention, l.q, l.k, l.v, l.o, l.lse},
                   {qWidth_, kvWidth_, kvWidth_}, {}, stats_);
  Value dk = f.op1({dqkv[1]}, kvWidth_, RECKON_UNARY_PLACE);
  Value dq = f.op1({dqkv[0]}, qWidth_, RECKON_UNARY_PLACE);
  Value dv = dqkv[2];
  Value n1 = l.n1Whole >= 0 ? l.n1Whole : gather(f, l.n1);
  f.op({dv, n1}, {});
  Value dn1FromV = f.op1({dv}, hidden_);
  f.op({dk, n1}, {});
  Value dn1FromK = f.op1({dk}, hidden_);
  Value dn1 = f.op1({dn1FromV, dn1FromK}, hidden_, RECKON_ADD_PLACES);
  f.op({dq, n1}, {});
  Value dn1FromQ = f.op1({dq}, hidden_);
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
    LayerValues l = layerForward(f, x);
    if (!recompute)
      for (Value value :
           {l.n1, l.q, l.k, l.v, l.o, l.lse, l.x1, l.n2, l.gate, l.up, l.a})
        f.keep(value);
    x = layerOutput(f, l);
    // The next layer's input, the head's input or the stage's output.
    f.keep(x);
  }
  return f;
}

LayerValues LayerMirror::savedLayer(FragmentMirror &f, Value x) const {
  LayerValues l;
  l.x = x;
  l.n1 = f.argument(part_);
  l.q = f.argument(qWidth_);
  l.k = f.argument(kvWidth_);
  l.v = f.argument(kvWidth_);
  l.o = f.argument(qWidth_);
  l.lse = f.argument(stats_);
  l.x1 = f.argument(part_);
  l.n2 = f.argument(part_);
  l.gate = f.argument(ffn_);
  l.up = f.argument(ffn_);
  l.a = f.argument(ffn_);
  return l;
}

FragmentMirror LayerMirror::backward() const {
  FragmentMirror f;
  Value dy = shape_.last ? head(f, f.argument(part_), f.argument(tokens_))
                         : f.argument(part_);
  for (int64_t layer = shape_.layers - 1; layer >= 0; --layer) {
    Value x = f.argument(part_);
    LayerValues l = shape_.recompute == Recompute::Full ? layerForward(f, x)
                                                        : savedLayer(f, x);
    dy = layerBackward(f, l, dy);
  }
  if (shape_.first)
    f.op({gather(f, dy), f.argument(tokens_)}, {});
  else
    f.keep(dy);
  return f;
}
