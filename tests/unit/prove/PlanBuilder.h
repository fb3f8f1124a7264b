//===- PlanBuilder.h - small plans by hand, for tests of the proofs -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_PROVE_PLANBUILDER_H
#define RECKON_TESTS_UNIT_PROVE_PLANBUILDER_H

#include "passes/prove/Checks.h"

#include <memory>
#include <string>
#include <vector>

namespace reckon::prove {

/// A stage with streams "compute" and "other", one lane of 4096 bytes and what
/// a test adds.
class PlanBuilder {
public:
  explicit PlanBuilder(plan::MeshT mesh = {}, unsigned stage = 0);

  /// Gives its index. Slots of a class are 1024 bytes.
  uint32_t slotClass(const std::string &name, uint32_t count);
  uint32_t state(const std::string &name, uint64_t bytes);
  uint32_t group(const std::string &name, std::vector<plan::Axis> axes);
  uint32_t channel(uint32_t id, unsigned source, unsigned target);
  uint32_t fragment(const std::string &name,
                    std::vector<uint32_t> slotClasses = {});

  plan::InstructionT &launch(uint32_t fragment, plan::Kernel kernel,
                             uint32_t stream = 0);
  plan::InstructionT &collective(uint32_t fragment, plan::Opcode op,
                                 uint32_t group, uint32_t stream = 0);
  void record(uint32_t fragment, uint32_t event, uint32_t stream = 0);
  void wait(uint32_t fragment, uint32_t event, uint32_t stream = 0);

  /// f32 elements of the lane, of the action's slot, of a state.
  static std::unique_ptr<plan::BufferT> lane(int64_t offset, int64_t elements);
  static std::unique_ptr<plan::BufferT> slot(uint32_t index, int64_t offset,
                                             int64_t elements);
  static std::unique_ptr<plan::BufferT> state(uint32_t index, int64_t offset,
                                              int64_t elements);

  plan::ActionT &run(const std::string &label, uint32_t fragment,
                     std::vector<plan::SlotBindingT> bindings = {});
  /// A send or receive of 16 elements of a slot, or of the lane.
  plan::ActionT &message(plan::ActionKind kind, const std::string &label,
                         uint32_t channel, uint32_t stream,
                         uint32_t microBatch = 0);

  /// Ends the arena behind its last region.
  const plan::StagePlanT &finish();
  plan::StagePlanT &plan() { return *plan_; }
  plan::ActionListT &list() { return *plan_->lists[0]; }

private:
  plan::InstructionT &add(uint32_t fragment, plan::Opcode op, uint32_t stream);

  std::unique_ptr<plan::StagePlanT> plan_;
  uint64_t end_ = 4096;
};

/// Slot `index` of a class, from its first use on, or to its last.
plan::SlotBindingT acquire(uint32_t slotClass, uint32_t index);
plan::SlotBindingT release(uint32_t slotClass, uint32_t index);
plan::SlotBindingT both(uint32_t slotClass, uint32_t index);

plan::MeshT mesh(uint32_t tp, uint32_t dp, uint32_t pp);

/// Prepares the stages; a failure fails the test.
std::unique_ptr<Program> programOf(std::vector<PlanBuilder *> stages);

/// The error of a status, or "" when there is none.
std::string errorOf(const Status &status);

} // namespace reckon::prove

#endif // RECKON_TESTS_UNIT_PROVE_PLANBUILDER_H
