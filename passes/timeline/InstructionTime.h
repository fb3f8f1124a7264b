//===- InstructionTime.h - predicted time of one instruction --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_TIMELINE_INSTRUCTIONTIME_H
#define RECKON_PASSES_TIMELINE_INSTRUCTIONTIME_H

#include "passes/model/time/Collectives.h"
#include "passes/model/time/Kernels.h"
#include "runtime/plan/Coordinates.h"

namespace reckon::timeline {

/// Prices instructions by the rates of the time model: products and attention
/// by its kernels, collectives by its links, all others by the bytes of their
/// operands. The time model prices layers, not instructions, and knows what
/// overlaps; so these times say how a fragment's work is divided, not how long
/// it is. Not thread-safe: products are remembered.
class InstructionTime {
public:
  explicit InstructionTime(model::Job job);
  InstructionTime(const InstructionTime &) = delete;
  InstructionTime &operator=(const InstructionTime &) = delete;

  /// Seconds alone on the planned machine; 0 for events, which take none.
  double seconds(const plan::StagePlanT &plan,
                 const plan::InstructionT &op) const;

private:
  double launch(const plan::StagePlanT &plan,
                const plan::InstructionT &op) const;
  double collective(const plan::StagePlanT &plan,
                    const plan::InstructionT &op) const;

  model::Job job_;
  model::Efficiency efficiency_;
  model::Kernels kernels_;
  model::Links links_;
};

} // namespace reckon::timeline

#endif // RECKON_PASSES_TIMELINE_INSTRUCTIONTIME_H
