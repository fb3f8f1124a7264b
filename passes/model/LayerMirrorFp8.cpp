//===- LayerMirrorFp8.cpp - linears of a Llama stage in eight bits --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The order is that of dist-quantize (passes/dist/Quantize.cpp): the largest
// magnitudes of a layer's weights at its first linear, those of other operands
// as soon as they are there, casts where they are first multiplied.
//
//===----------------------------------------------------------------------===//
#include "passes/model/LayerMirror.h"

#include "runtime/base/Fp8Layout.h"

using namespace reckon;
using namespace reckon::model;

using Value = FragmentMirror::Value;

/// A largest magnitude or a scale: one f32.
static constexpr uint64_t kScalar = 4;

static uint64_t codesOf(const LinearOperand &operand) {
  return static_cast<uint64_t>(fp8Codes(operand.rows, operand.columns));
}

LayerValues LayerMirror::emptyLayer(Value x, bool again) const {
  LayerValues l;
  l.x = x;
  int64_t rows = shape_.microBatch * dims_.sequence;
  int64_t hidden = dims_.hidden, ffn = dims_.ffn / shape_.tp,
          queries = dims_.qWidth() / shape_.tp,
          keys = dims_.kvWidth() / shape_.tp;
  // A gathered norm would take more bytes as whole codes than as a part.
  bool whole = !shape_.sequenceParallel;
  auto activation = [&](int64_t columns, bool split, bool codesSaved) {
    LinearOperand operand{.rows = rows, .columns = columns, .split = split};
    operand.codesSaved = fp8() && codesSaved;
    operand.transposes =
        again || (shape_.recompute == Recompute::None && operand.codesSaved);
    return operand;
  };
  l.n1Whole = l.n2Whole = activation(hidden, false, whole);
  l.oWhole = activation(queries, true, false);
  l.aWhole = activation(ffn, true, true);
  auto weight = [&](LayerWeight which, int64_t outputs, int64_t inputs) {
    l.weights[which] = {.rows = outputs, .columns = inputs, .split = true};
  };
  weight(WeightQ, queries, hidden);
  weight(WeightK, keys, hidden);
  weight(WeightV, keys, hidden);
  weight(WeightO, hidden, queries);
  weight(WeightGate, ffn, hidden);
  weight(WeightUp, ffn, hidden);
  weight(WeightDown, hidden, ffn);
  return l;
}

LinearOperand LayerMirror::gradient(Value dy, int64_t columns,
                                    bool split) const {
  return {.value = dy,
          .rows = shape_.microBatch * dims_.sequence,
          .columns = columns,
          .split = split};
}

void LayerMirror::maxima(FragmentMirror &f,
                         std::vector<LinearOperand *> operands) const {
  if (!fp8())
    return;
  std::vector<LinearOperand *> reduced;
  std::vector<Value> parts;
  for (LinearOperand *operand : operands) {
    if (operand->amax >= 0 || operand->transposed >= 0)
      continue;
    std::vector<Value> read;
    if (operand->value >= 0)
      read.push_back(operand->value);
    operand->amax = f.op1(std::move(read), kScalar);
    if (operand->split && shape_.tp > 1) {
      reduced.push_back(operand);
      parts.push_back(operand->amax);
    }
  }
  if (reduced.empty())
    return;
  std::vector<std::pair<int, int>> inPlace;
  for (int i = 0; i < static_cast<int>(parts.size()); ++i)
    inPlace.push_back({i, i});
  std::vector<Value> whole =
      f.op(parts, std::vector<uint64_t>(parts.size(), kScalar), inPlace);
  for (size_t i = 0; i < reduced.size(); ++i)
    reduced[i]->amax = whole[i];
}

void LayerMirror::cast(FragmentMirror &f, LinearOperand &operand, bool straight,
                       bool transposed) const {
  if ((!straight || operand.straight >= 0) &&
      (!transposed || operand.transposed >= 0))
    return;
  std::vector<Value> read{operand.amax};
  if (operand.value >= 0)
    read.push_back(operand.value);
  std::vector<uint64_t> results(1 + straight + transposed, codesOf(operand));
  results[0] = kScalar;
  std::vector<Value> made = f.op(std::move(read), results);
  operand.scale = made.front();
  if (straight)
    operand.straight = made[1];
  if (transposed)
    operand.transposed = made.back();
}

Value LayerMirror::linear(FragmentMirror &f, LinearOperand &x,
                          LinearOperand weight, uint64_t bytes) const {
  if (!fp8())
    return f.op1({x.value}, bytes);
  cast(f, x, true, x.transposes);
  cast(f, weight, true, false);
  return f.op1({x.straight, x.scale, weight.straight, weight.scale}, bytes);
}

void LayerMirror::gradWeight(FragmentMirror &f, LinearOperand &dy,
                             LinearOperand &x) const {
  // No result: it adds to a state.
  if (!fp8()) {
    f.op({dy.value, x.value}, {});
    return;
  }
  cast(f, dy, true, true);
  cast(f, x, false, true);
  f.op({dy.transposed, dy.scale, x.transposed, x.scale}, {});
}

Value LayerMirror::gradInput(FragmentMirror &f, LinearOperand &dy,
                             LinearOperand weight, uint64_t bytes) const {
  if (!fp8())
    return f.op1({dy.value}, bytes);
  cast(f, dy, true, true);
  cast(f, weight, false, true);
  return f.op1({dy.straight, dy.scale, weight.transposed, weight.scale}, bytes);
}

std::vector<uint64_t> LayerMirror::savedSizesFp8() const {
  LayerValues l = emptyLayer(-1, false);
  std::vector<uint64_t> sizes;
  // A gathered norm, then its maximum; else its scale and its codes, which come
  // behind the maxima of the weights.
  bool gathers = shape_.sequenceParallel;
  auto add = [&](std::initializer_list<uint64_t> more) {
    for (uint64_t size : more)
      sizes.push_back(size);
  };
  if (gathers)
    add({part_, kScalar});
  sizes.insert(sizes.end(), kLayerWeights, kScalar);
  if (!gathers)
    add({kScalar, codesOf(l.n1Whole)});
  // v, q, k, o, lse, the maximum of o, x1
  add({kvWidth_, qWidth_, kvWidth_, qWidth_, stats_, kScalar, part_});
  if (gathers)
    add({part_, kScalar});
  else
    add({kScalar, codesOf(l.n2Whole)});
  add({ffn_, ffn_, kScalar, codesOf(l.aWhole)});
  return sizes;
}

void LayerMirror::savedOperandsFp8(FragmentMirror &f, LayerValues &l) const {
  auto codes = [&](LinearOperand &operand) {
    operand.scale = f.argument(kScalar);
    operand.transposed = f.argument(codesOf(operand));
  };
  for (auto [norm, operand] :
       {std::pair(&l.n1, &l.n1Whole), std::pair(&l.n2, &l.n2Whole)}) {
    if (operand->codesSaved) {
      codes(*operand);
      continue;
    }
    *norm = f.argument(part_);
    operand->amax = f.argument(kScalar);
  }
  codes(l.aWhole);
  l.oWhole.amax = f.argument(kScalar);
  for (LinearOperand &weight : l.weights)
    weight.amax = f.argument(kScalar);
}
