//===- FragmentMirror.cpp - a fragment as buffers and lifetimes -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/FragmentMirror.h"

#include "passes/model/Layout.h"

#include <algorithm>

using namespace reckon::model;

FragmentMirror::Value FragmentMirror::argument(uint64_t bytes) {
  values_.push_back(
      {.bytes = bytes, .begin = -1, .lastUse = -1, .argument = true});
  return static_cast<Value>(values_.size()) - 1;
}

std::vector<FragmentMirror::Value>
FragmentMirror::op(std::vector<Value> operands,
                   const std::vector<uint64_t> &results,
                   std::vector<std::pair<int, int>> inPlace, uint64_t scratch) {
  int index = static_cast<int>(ops_.size());
  for (Value operand : operands)
    values_[operand].lastUse = index;
  std::vector<Value> defined;
  for (uint64_t bytes : results) {
    defined.push_back(static_cast<Value>(values_.size()));
    values_.push_back({.bytes = bytes, .begin = index, .lastUse = index});
  }
  ops_.push_back({std::move(operands), defined, std::move(inPlace), scratch});
  return defined;
}

FragmentMirror::Workspace FragmentMirror::pack() const {
  // A class of values in one buffer, in the order of their first definitions.
  struct Buffer {
    uint64_t bytes;
    int begin, end;
    bool kept;
  };
  std::vector<Buffer> buffers;
  std::vector<int> bufferOf(values_.size(), -1);
  for (int index = 0; index < static_cast<int>(ops_.size()); ++index) {
    const Op &op = ops_[index];
    std::vector<int> taken;
    for (size_t r = 0; r < op.results.size(); ++r) {
      const ValueInfo &result = values_[op.results[r]];
      int buffer = -1;
      for (auto [resultIndex, operandIndex] : op.inPlace) {
        if (buffer >= 0 || resultIndex != static_cast<int>(r))
          continue;
        Value operand = op.operands[operandIndex];
        const ValueInfo &from = values_[operand];
        // A kept operand must survive, and one slot place holds one value.
        if (from.argument || from.kept || from.lastUse > index ||
            from.bytes != result.bytes)
          continue;
        int candidate = bufferOf[operand];
        if (buffers[candidate].kept ||
            std::find(taken.begin(), taken.end(), candidate) != taken.end())
          continue;
        buffer = candidate;
      }
      if (buffer < 0) {
        buffer = static_cast<int>(buffers.size());
        buffers.push_back({result.bytes, index, index, false});
      }
      taken.push_back(buffer);
      bufferOf[op.results[r]] = buffer;
      buffers[buffer].end = std::max(buffers[buffer].end, result.lastUse);
      buffers[buffer].kept |= result.kept;
    }
    if (op.scratch)
      buffers.push_back({op.scratch, index, index, false});
  }

  std::vector<Interval> intervals;
  for (const Buffer &buffer : buffers)
    if (!buffer.kept)
      intervals.push_back({buffer.bytes, buffer.begin, buffer.end});
  Packing packing = packFirstFit(intervals);
  return {packing.total, packing.lowerBound};
}
