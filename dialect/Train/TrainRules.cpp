//===- TrainRules.cpp - sharding rule and FLOPs per operation -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Letters: t tokens, b sequences, h hidden, k and n features in and out, d
// query columns and heads (split together), s positions, f ffn, v vocabulary.
//
//===----------------------------------------------------------------------===//

#include "dialect/Train/Train.h"

using namespace mlir;
using namespace reckon::train;

//===----------------------------------------------------------------------===//
// Sharding rules
//===----------------------------------------------------------------------===//

ShardingRule EmbeddingOp::getShardingRule() {
  return {{"t", "vh"}, {"th"}, "v", "h"};
}
ShardingRule RmsNormOp::getShardingRule() {
  return {{"th", "h"}, {"th"}, "", "h"};
}
ShardingRule LinearOp::getShardingRule() {
  return {{"tk", "nk"}, {"tn"}, "k"};
}
ShardingRule RopeOp::getShardingRule() { return {{"td", ".."}, {"td"}}; }
ShardingRule AttentionOp::getShardingRule() {
  // Sequences are split with tokens ('t'), heads with columns ('d').
  return {{"td", "td", "td"}, {"td", "td."}};
}
ShardingRule SwigluOp::getShardingRule() { return {{"tf", "tf"}, {"tf"}}; }
ShardingRule AddOp::getShardingRule() {
  ShardingRule rule{{"th", "th"}, {"th"}};
  rule.linear = true;
  return rule;
}
ShardingRule CrossEntropyMaxOp::getShardingRule() {
  return {{"tv"}, {"t"}, "v", "", "max"};
}
ShardingRule CrossEntropySumOp::getShardingRule() {
  return {{"tv", "t", "t"}, {".t"}, "v"};
}
ShardingRule CrossEntropyLossOp::getShardingRule() {
  return {{"tv", "t", ".t", "t"}, {"t"}};
}
ShardingRule CrossEntropyGradOp::getShardingRule() {
  return {{"tv", "t", "t"}, {"tv"}};
}
ShardingRule EmbeddingGradOp::getShardingRule() {
  return {{"th", "t"}, {"vh"}, "t", "h"};
}
ShardingRule RmsNormGradInputOp::getShardingRule() {
  return {{"th", "th", "h"}, {"th"}, "", "h"};
}
ShardingRule RmsNormGradWeightOp::getShardingRule() {
  return {{"th", "th"}, {"h"}, "t", "h"};
}
ShardingRule LinearGradInputOp::getShardingRule() {
  return {{"tn", "nk"}, {"tk"}, "n"};
}
ShardingRule LinearGradWeightOp::getShardingRule() {
  return {{"tn", "tk"}, {"nk"}, "t"};
}
ShardingRule AttentionGradOp::getShardingRule() {
  return {{"td", "td", "td", "td", "td", "td."}, {"td", "td", "td"}};
}
ShardingRule SwigluGradOp::getShardingRule() {
  return {{"tf", "tf", "tf"}, {"tf", "tf"}};
}

//===----------------------------------------------------------------------===//
// FLOPs
//===----------------------------------------------------------------------===//

static uint64_t dim(Value value, int64_t index) {
  return cast<RankedTensorType>(value.getType()).getDimSize(index);
}

/// Two flops per multiply-add of [t,k] x [k,n].
static uint64_t matmulFlops(Value a, Value weight) {
  return 2 * dim(a, 0) * dim(weight, 0) * dim(weight, 1);
}

/// Element-wise kernels: operations per element of the first result.
static uint64_t perElement(Operation *op, uint64_t operations) {
  return operations * elementCount(op->getResult(0));
}

/// The two products of causal attention over the lower triangle:
/// 2 * 2 * tokens * columns * (s + 1) / 2.
static uint64_t attentionFlops(Value q, uint64_t sequence) {
  return 2 * dim(q, 0) * dim(q, 1) * (sequence + 1);
}

uint64_t EmbeddingOp::getFlops() { return 0; }
uint64_t RmsNormOp::getFlops() { return perElement(*this, 4); }
uint64_t LinearOp::getFlops() { return matmulFlops(getX(), getWeight()); }
uint64_t RopeOp::getFlops() { return perElement(*this, 3); }
uint64_t AttentionOp::getFlops() {
  return attentionFlops(getQ(), getSequenceLength());
}
uint64_t SwigluOp::getFlops() { return perElement(*this, 5); }
uint64_t AddOp::getFlops() { return perElement(*this, 1); }
uint64_t CrossEntropyMaxOp::getFlops() { return elementCount(getLogits()); }
uint64_t CrossEntropySumOp::getFlops() {
  return 3 * elementCount(getLogits());
}
uint64_t CrossEntropyLossOp::getFlops() { return perElement(*this, 3); }
uint64_t CrossEntropyGradOp::getFlops() { return perElement(*this, 4); }
uint64_t EmbeddingGradOp::getFlops() { return elementCount(getDy()); }
uint64_t RmsNormGradInputOp::getFlops() { return perElement(*this, 9); }
uint64_t RmsNormGradWeightOp::getFlops() { return 6 * elementCount(getDy()); }
uint64_t LinearGradInputOp::getFlops() {
  return matmulFlops(getDy(), getWeight());
}
uint64_t LinearGradWeightOp::getFlops() {
  return 2 * dim(getDy(), 0) * dim(getDy(), 1) * dim(getX(), 1);
}
/// Five products, one of which recomputes the scores.
uint64_t AttentionGradOp::getFlops() {
  return 5 * attentionFlops(getQ(), getSequenceLength()) / 2;
}
uint64_t SwigluGradOp::getFlops() { return perElement(*this, 10); }
