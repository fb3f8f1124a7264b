//===- PlanBuilder.cpp - small plans by hand, for tests of the proofs -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/prove/PlanBuilder.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

MeshT prove::mesh(uint32_t tp, uint32_t dp, uint32_t pp) {
  MeshT mesh;
  mesh.tp = tp;
  mesh.cp = mesh.ep = 1;
  mesh.dp = dp;
  mesh.pp = pp;
  return mesh;
}

PlanBuilder::PlanBuilder(MeshT mesh, unsigned stage)
    : plan_(std::make_unique<StagePlanT>()) {
  plan_->mesh = std::make_unique<MeshT>(mesh);
  if (mesh.tp == 0)
    *plan_->mesh = prove::mesh(1, 1, 1);
  plan_->stage = stage;
  plan_->num_micro_batches = 1;
  for (const char *name : {"compute", "other"}) {
    plan_->streams.push_back(std::make_unique<StreamT>());
    plan_->streams.back()->name = name;
  }
  plan_->lanes.push_back(std::make_unique<LaneT>());
  plan_->lanes[0]->name = "workspace";
  plan_->lanes[0]->bytes = 4096;
  plan_->lists.push_back(std::make_unique<ActionListT>());
  plan_->lists[0]->name = "step";
  plan_->lists[0]->events = 16;
}

uint32_t PlanBuilder::slotClass(const std::string &name, uint32_t count) {
  auto cls = std::make_unique<SlotClassT>();
  cls->name = name;
  cls->bytes = 1024;
  cls->count = count;
  cls->offset = end_;
  end_ += 1024u * count;
  plan_->slot_classes.push_back(std::move(cls));
  return static_cast<uint32_t>(plan_->slot_classes.size() - 1);
}

uint32_t PlanBuilder::state(const std::string &name, uint64_t bytes) {
  auto state = std::make_unique<StateT>();
  state->name = name;
  state->bytes = bytes;
  state->offset = end_;
  end_ += bytes;
  plan_->states.push_back(std::move(state));
  return static_cast<uint32_t>(plan_->states.size() - 1);
}

uint32_t PlanBuilder::group(const std::string &name, std::vector<Axis> axes) {
  auto group = std::make_unique<GroupT>();
  group->name = name;
  group->axes = std::move(axes);
  plan_->groups.push_back(std::move(group));
  return static_cast<uint32_t>(plan_->groups.size() - 1);
}

uint32_t PlanBuilder::channel(uint32_t id, unsigned source, unsigned target) {
  auto channel = std::make_unique<ChannelT>();
  channel->name = "channel" + std::to_string(id);
  channel->id = id;
  channel->source_stage = source;
  channel->target_stage = target;
  plan_->channels.push_back(std::move(channel));
  return static_cast<uint32_t>(plan_->channels.size() - 1);
}

uint32_t PlanBuilder::fragment(const std::string &name,
                               std::vector<uint32_t> slotClasses) {
  auto fragment = std::make_unique<FragmentT>();
  fragment->name = name;
  fragment->events = 16;
  for (uint32_t cls : slotClasses) {
    fragment->slots.push_back(std::make_unique<SlotFormalT>());
    fragment->slots.back()->slot_class = cls;
  }
  plan_->fragments.push_back(std::move(fragment));
  return static_cast<uint32_t>(plan_->fragments.size() - 1);
}

InstructionT &PlanBuilder::add(uint32_t fragment, Opcode op, uint32_t stream) {
  auto instruction = std::make_unique<InstructionT>();
  instruction->op = op;
  instruction->stream = stream;
  instruction->layer = "layers.0";
  instruction->source = "tiny.yaml:3:5";
  auto &list = plan_->fragments[fragment]->instructions;
  list.push_back(std::move(instruction));
  return *list.back();
}

InstructionT &PlanBuilder::launch(uint32_t fragment, Kernel kernel,
                                  uint32_t stream) {
  InstructionT &instruction = add(fragment, Opcode::launch, stream);
  instruction.kernel = kernel;
  return instruction;
}

InstructionT &PlanBuilder::collective(uint32_t fragment, Opcode op,
                                      uint32_t group, uint32_t stream) {
  InstructionT &instruction = add(fragment, op, stream);
  instruction.group = group;
  return instruction;
}

void PlanBuilder::record(uint32_t fragment, uint32_t event, uint32_t stream) {
  add(fragment, Opcode::record, stream).event = event;
}

void PlanBuilder::wait(uint32_t fragment, uint32_t event, uint32_t stream) {
  add(fragment, Opcode::wait, stream).event = event;
}

static std::unique_ptr<BufferT> buffer(plan::Region region, uint32_t index,
                                       int64_t offset, int64_t elements) {
  auto buffer = std::make_unique<BufferT>();
  buffer->region = region;
  buffer->index = index;
  buffer->offset = constantExpr(offset);
  buffer->shape = {elements};
  return buffer;
}

std::unique_ptr<BufferT> PlanBuilder::lane(int64_t offset, int64_t elements) {
  return buffer(Region::lane, 0, offset, elements);
}
std::unique_ptr<BufferT> PlanBuilder::slot(uint32_t index, int64_t offset,
                                           int64_t elements) {
  return buffer(Region::slot, index, offset, elements);
}
std::unique_ptr<BufferT> PlanBuilder::state(uint32_t index, int64_t offset,
                                            int64_t elements) {
  return buffer(Region::state, index, offset, elements);
}

ActionT &PlanBuilder::run(const std::string &label, uint32_t fragment,
                          std::vector<SlotBindingT> bindings) {
  auto action = std::make_unique<ActionT>();
  action->label = label;
  action->fragment = fragment;
  action->units.push_back(Unit(0, 0));
  for (const SlotBindingT &binding : bindings)
    action->bindings.push_back(std::make_unique<SlotBindingT>(binding));
  list().actions.push_back(std::move(action));
  return *list().actions.back();
}

ActionT &PlanBuilder::message(ActionKind kind, const std::string &label,
                              uint32_t channel, uint32_t stream,
                              uint32_t microBatch) {
  auto action = std::make_unique<ActionT>();
  action->kind = kind;
  action->label = label;
  action->channel = channel;
  action->stream = stream;
  action->units.push_back(Unit(0, microBatch));
  action->buffers.push_back(lane(64 * (stream + 1), 16));
  list().actions.push_back(std::move(action));
  return *list().actions.back();
}

const StagePlanT &PlanBuilder::finish() {
  plan_->arena_bytes = (end_ + 255) / 256 * 256;
  return *plan_;
}

static SlotBindingT binding(uint32_t slotClass, uint32_t index, bool acquire,
                            bool release) {
  SlotBindingT binding;
  binding.slot_class = slotClass;
  binding.index = index;
  binding.acquire = acquire;
  binding.release = release;
  return binding;
}

SlotBindingT prove::acquire(uint32_t slotClass, uint32_t index) {
  return binding(slotClass, index, true, false);
}
SlotBindingT prove::release(uint32_t slotClass, uint32_t index) {
  return binding(slotClass, index, false, true);
}
SlotBindingT prove::both(uint32_t slotClass, uint32_t index) {
  return binding(slotClass, index, true, true);
}

std::unique_ptr<Program> prove::programOf(std::vector<PlanBuilder *> stages) {
  auto program = std::make_unique<Program>(*stages[0]->plan().mesh);
  std::vector<const StagePlanT *> plans;
  for (PlanBuilder *stage : stages)
    plans.push_back(&stage->finish());
  EXPECT_EQ(errorOf(prepare(plans, *program)), "");
  return program;
}

std::string prove::errorOf(const Status &status) {
  return status.ok() ? "" : status.error().message;
}
