//===- FragmentMirror.h - a fragment as buffers and lifetimes -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A tiny program of values and ops, enough to know which values share a buffer
// and how long each buffer lives. The rules are those of the compiler's
// allocation (docs/planning.md, "Workspace").
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_FRAGMENTMIRROR_H
#define RECKON_PASSES_MODEL_FRAGMENTMIRROR_H

#include "passes/model/IntervalPacker.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace reckon::model {

class FragmentMirror {
public:
  using Value = int;

  /// A value whose bytes are not the fragment's: an argument.
  Value argument(uint64_t bytes);

  /// Appends an op and returns its results. A pair in `inPlace` (result,
  /// operand) says that the result may take over the operand's buffer; for a
  /// result the first pair that is possible counts. `scratch` bytes live only
  /// while the op runs.
  std::vector<Value> op(std::vector<Value> operands,
                        const std::vector<uint64_t> &results,
                        std::vector<std::pair<int, int>> inPlace = {},
                        uint64_t scratch = 0);

  /// An op with one result.
  Value op1(std::vector<Value> operands, uint64_t result,
            std::vector<std::pair<int, int>> inPlace = {}) {
    return op(std::move(operands), {result}, std::move(inPlace))[0];
  }

  /// `value` leaves the fragment in a slot: its buffer is there.
  void keep(Value value) { values_[value].kept = true; }

  uint64_t bytes(Value value) const { return values_[value].bytes; }
  int64_t ops() const { return static_cast<int64_t>(ops_.size()); }

  struct Workspace {
    uint64_t bytes = 0;
    uint64_t lowerBound = 0;
  };
  /// Shares buffers, packs what needs workspace.
  Workspace pack() const;

private:
  struct ValueInfo {
    uint64_t bytes = 0;
    int begin = 0;   ///< op that defines it
    int lastUse = 0; ///< op that reads it last
    bool argument = false;
    bool kept = false;
  };
  struct Op {
    std::vector<Value> operands, results;
    std::vector<std::pair<int, int>> inPlace;
    uint64_t scratch;
  };

  std::vector<ValueInfo> values_;
  std::vector<Op> ops_;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_FRAGMENTMIRROR_H
