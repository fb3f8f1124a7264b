//===- Execute.h - one step of a stage, on terms --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_EXECUTE_H
#define RECKON_PASSES_PROVE_EXECUTE_H

#include "passes/prove/SymbolicMemory.h"

#include <map>

namespace reckon::prove {

/// Names of the symbols that stand for values from outside a stage's step.
namespace symbols {
inline const char *kTokens = "tokens of micro-batch";
inline const char *kTargets = "targets of micro-batch";
/// What a step finds in a state: its name.
std::string state(const std::string &name);
/// The zeros behind a state that is padded for flat shards.
inline const char *kPadding = "padding";
/// The message that the channel carries for a micro-batch.
std::string message(const plan::ChannelT &channel);
} // namespace symbols

/// A message that a stage sent.
struct Sent {
  uint32_t channel = 0; ///< index into the stage's channels
  uint32_t microBatch = 0;
  TermId term = kNoTerm;
  Place place;
};

/// Micro-batches in the order in which each channel (by id) carries them.
using ChannelOrder = std::map<uint32_t, std::vector<uint32_t>>;

/// Runs one step of a stage in issue order, which all interleavings agree with
/// once conflicting accesses are ordered. Slots start empty when they are
/// acquired, a lane when a fragment starts.
class Executor {
public:
  Executor(const Stage &stage, TermTable &terms, const ChannelOrder &order);

  Status run();

  /// The bytes [begin, begin + bytes) of a state after the step.
  TermId state(uint32_t index, int64_t begin, int64_t bytes);
  const std::vector<Sent> &sent() const { return sent_; }
  uint64_t instructions() const { return instructions_; }

private:
  Status action(uint32_t number);
  Status execute(Place place, const PreparedInstruction &instruction,
                 const plan::ActionT &action);
  Status launch(Place place, const PreparedInstruction &instruction,
                const plan::ActionT &action);
  Status collective(Place place, const PreparedInstruction &instruction,
                    const plan::ActionT &action);
  Status load(uint32_t number, const plan::ActionT &action);
  Status message(uint32_t number, const plan::ActionT &action);
  Status read(Place place, const Operand &operand, const plan::ActionT &action,
              const char *what, size_t which, TermId &term);

  const Stage &stage_;
  TermTable &terms_;
  const ChannelOrder &order_;
  SymbolicMemory memory_;
  std::map<uint32_t, size_t> received_;
  std::vector<Sent> sent_;
  std::vector<TermId> inputs_, results_;
  uint64_t instructions_ = 0;
};

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_EXECUTE_H
