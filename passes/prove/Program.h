//===- Program.h - the stages of a plan, ready to be reasoned about -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_PROGRAM_H
#define RECKON_PASSES_PROVE_PROGRAM_H

#include "passes/prove/CoordFunctions.h"
#include "runtime/base/Status.h"

#include <span>
#include <string>
#include <vector>

namespace reckon::prove {

/// A buffer of a plan with its sizes worked out.
struct Operand {
  plan::Region region = plan::Region::state;
  uint32_t index = 0;
  plan::DType dtype = plan::DType::f32;
  int64_t bytes = 0;
  FnId offset = 0;     ///< from the start of the state, slot or lane
  bool varies = false; ///< the offset differs between ranks
};

/// The bytes [begin, end) of an arena. On a range that varies these bound the
/// bytes of all ranks, and `offset` says where a rank's `bytes` start.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t bytes = 0;
  FnId offset = 0;
  bool varies = false;
};

struct PreparedInstruction {
  const plan::InstructionT *source = nullptr;
  std::vector<Operand> inputs, outputs;
  std::vector<FnId> args;
  unsigned axes = 0; ///< of a collective's group, those with several ranks
};

struct PreparedFragment {
  const plan::FragmentT *source = nullptr;
  std::vector<PreparedInstruction> instructions;
  uint32_t firstEvent = 0; ///< its events follow those of the list
};

/// One stage: its plan and what every instruction of its rank family touches.
struct Stage {
  const plan::StagePlanT *plan = nullptr;
  const plan::ActionListT *list = nullptr; ///< "step"
  std::vector<PreparedFragment> fragments;
  std::vector<std::vector<Operand>> moved; ///< by action: its buffers
  uint32_t numEvents = 0;

  unsigned number() const { return plan->stage; }
  size_t numStreams() const { return plan->streams.size(); }
  /// Where an operand lies while `action` runs.
  Range resolve(const Operand &operand, const plan::ActionT &action,
                CoordFunctions &functions) const;
  Range slot(const plan::SlotBindingT &binding) const;
  /// An instruction, or null for the action itself.
  const PreparedInstruction *instruction(uint32_t action, int index) const;
};

/// All stages, and the functions that they share.
struct Program {
  explicit Program(const plan::MeshT &mesh) : functions(mesh) {}

  CoordFunctions functions;
  std::vector<Stage> stages;

  const plan::MeshT &mesh() const { return functions.mesh(); }
};

/// Works out every operand. Refuses what has no meaning: stages of different
/// meshes or out of order, no list "step".
Status prepare(std::span<const plan::StagePlanT *const> stages,
               Program &program);

/// One piece of work: an action, or an instruction of the fragment it runs.
struct Place {
  uint32_t action = 0;
  int instruction = -1;
};

/// "rank 4 (pp 1), action 1B0, fragment backward_first, instruction 4:
/// all_reduce max over tp (head.max, tiny.yaml:3:5)".
std::string describe(const Stage &stage, Place place);

/// The action alone: "rank 4 (pp 1), action 1B0".
std::string describe(const Stage &stage, uint32_t action);

/// A failed proof.
Error refuse(const std::string &what);

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_PROGRAM_H
