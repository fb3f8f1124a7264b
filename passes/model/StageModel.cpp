//===- StageModel.cpp - the memory of a stage, to the byte ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/StageModel.h"

#include "passes/model/LayerMirror.h"
#include "passes/model/ParameterTable.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

/// The step's parameter block and the metrics: f64 [8] and [4], as in
/// plan.fbs.
static constexpr uint64_t kScalarsBytes = 64;
static constexpr uint64_t kMetricsBytes = 32;

StageShape model::stageShape(const model::Choice &choice, int64_t stage) {
  return {.layers = choice.layout[stage],
          .first = stage == 0,
          .last = stage == choice.pp - 1,
          .tp = choice.tp,
          .sequenceParallel = choice.sequenceParallel,
          .microBatch = choice.microBatch,
          .precision = choice.precision,
          .recompute = choice.recompute};
}

FragmentMemory model::fragmentMemory(const ModelDims &dims,
                                     const StageShape &shape) {
  LayerMirror mirror(dims, shape);
  FragmentMemory memory;

  // The input of the first layer is the embedding's result, saved here, or the
  // stage's input, which has its own slot; without layers it is the output.
  if (shape.first && shape.layers > 0)
    memory.saved.push_back(mirror.hiddenBytes());
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    if (shape.recompute == Recompute::None)
      for (uint64_t bytes : mirror.savedSizes())
        memory.saved.push_back(bytes);
    // The output of a layer is the next one's or the head's input.
    if (layer + 1 < shape.layers || shape.last)
      memory.saved.push_back(mirror.hiddenBytes());
  }
  for (uint64_t bytes : memory.saved)
    memory.stashBytes += alignUp(bytes);

  memory.forwardWorkspace = mirror.forward().pack().bytes;
  FragmentMirror::Workspace backward = mirror.backward().pack();
  memory.backwardWorkspace = backward.bytes;
  memory.backwardLowerBound = backward.lowerBound;
  if (shape.last)
    memory.logitsBytes = alignUp(mirror.logitsBytes());
  return memory;
}

namespace {

/// Local sizes of one parameter's states; ZeRO-1 pads to whole shards.
struct ParameterStates {
  ParameterStates(const Parameter &parameter, const model::Choice &choice) {
    int64_t elements = parameter.localElements(choice.tp);
    bool sharded = choice.zero >= 1 && choice.dp > 1;
    int64_t shard = sharded ? shardElements(elements, choice.dp) : elements;
    int64_t padded = sharded ? shard * choice.dp : elements;
    uint64_t width = choice.precision == Precision::Fp32 ? 4 : 2;
    parameterBytes = padded * width;
    gradient = padded * 4;
    mainWeight = choice.precision == Precision::Fp32 ? 0 : shard * 4;
    moment = shard * 4;
  }

  uint64_t parameterBytes, gradient, mainWeight, moment;
};

/// Parameters of a stage in program order.
std::vector<Parameter> stageParameters(const ModelDims &dims,
                                       const model::Choice &choice,
                                       int64_t stage) {
  std::vector<Parameter> parameters;
  int64_t layer = 0;
  for (int64_t before = 0; before < stage; ++before)
    layer += choice.layout[before];
  if (stage == 0)
    parameters.push_back(embeddingParameter(dims));
  for (int64_t i = 0; i < choice.layout[stage]; ++i)
    for (Parameter &parameter : layerParameters(dims, layer + i))
      parameters.push_back(std::move(parameter));
  if (stage == choice.pp - 1)
    for (Parameter &parameter : headParameters(dims))
      parameters.push_back(std::move(parameter));
  return parameters;
}

uint64_t ropeTableBytes(const ModelDims &dims) {
  return static_cast<uint64_t>(dims.sequence) * dims.headDim * 4;
}

} // namespace

StageModel::StageModel(ModelDims dims, uint64_t reserveBytes)
    : dims_(dims), reserveBytes_(reserveBytes),
      embedding_{embeddingParameter(dims)}, layer_(layerParameters(dims, 0)),
      head_(headParameters(dims)) {}

const FragmentMemory &StageModel::fragments(const StageShape &shape) {
  auto entry = fragments_.find(shape.key());
  if (entry == fragments_.end())
    entry = fragments_.emplace(shape.key(), makeFragments(shape)).first;
  return entry->second;
}

FragmentMemory StageModel::makeFragments(const StageShape &shape) {
  StageShape one = shape;
  one.microBatch = 1;
  // Packing only compares and adds sizes: when no size of one sequence is
  // rounded up, that of b sequences is b times as large. In fp8 not all of them
  // depend on the batch.
  if (shape.microBatch == 1 || shape.precision == Precision::Fp8 ||
      !LayerMirror(dims_, one).aligned())
    return fragmentMemory(dims_, shape);
  uint64_t b = shape.microBatch;
  FragmentMemory memory = fragments(one);
  for (uint64_t &bytes : memory.saved)
    bytes *= b;
  memory.stashBytes *= b;
  memory.forwardWorkspace *= b;
  memory.backwardWorkspace *= b;
  memory.backwardLowerBound *= b;
  memory.logitsBytes *= b;
  return memory;
}

const StageModel::StateBytes &StageModel::stateBytes(const Choice &choice,
                                                     int64_t stage) {
  StageShape shape = stageShape(choice, stage);
  // Without sharding the data-parallel degree does not matter.
  int64_t shards = choice.zero ? choice.dp : 1;
  auto [entry, isNew] =
      states_.try_emplace({choice.tp, shards, shape.layers, shape.first,
                           shape.last, choice.precision});
  if (!isNew)
    return entry->second;
  StateBytes &bytes = entry->second;
  auto add = [&](const std::vector<Parameter> &parameters, uint64_t count) {
    for (const Parameter &parameter : parameters) {
      ParameterStates states(parameter, choice);
      bytes.parameters += count * alignUp(states.parameterBytes);
      bytes.gradients += count * alignUp(states.gradient);
      bytes.optimizer +=
          count * (alignUp(states.mainWeight) + 2 * alignUp(states.moment));
    }
  };
  if (shape.first)
    add(embedding_, 1);
  add(layer_, shape.layers);
  if (shape.last)
    add(head_, 1);
  return bytes;
}

std::array<SlotClassSize, kNumSlotClasses>
StageModel::slotSizes(const model::Choice &choice, int64_t stage) {
  const FragmentMemory &memory = fragments(stageShape(choice, stage));
  auto counts =
      slotCounts(choice.schedule, choice.pp, choice.numMicroBatches, stage);
  uint64_t tokens = choice.microBatch * dims_.sequence;
  uint64_t width = choice.precision == Precision::Fp32 ? 4 : 2;
  uint64_t hidden = tokens * dims_.hidden * width;
  if (choice.sequenceParallel)
    hidden /= choice.tp;
  std::array<SlotClassSize, kNumSlotClasses> sizes{};
  for (size_t cls = 0; cls < kNumSlotClasses; ++cls) {
    uint64_t bytes = hidden;
    if (cls == static_cast<size_t>(SlotClassId::Tokens) ||
        cls == static_cast<size_t>(SlotClassId::Targets))
      bytes = tokens * 4;
    if (cls == static_cast<size_t>(SlotClassId::Stash))
      bytes = memory.stashBytes;
    uint64_t count = bytes ? counts[cls] : 0;
    sizes[cls] = {count ? bytes : 0, count};
  }
  return sizes;
}

StageMemory StageModel::memory(const model::Choice &choice, int64_t stage) {
  const StateBytes &states = stateBytes(choice, stage);
  StageMemory memory;
  memory.parameters = states.parameters;
  memory.gradients = states.gradients;
  memory.optimizer = states.optimizer;

  auto sizes = slotSizes(choice, stage);
  for (size_t cls = 0; cls < kNumSlotClasses; ++cls) {
    std::string_view category =
        slotClassCategory(static_cast<SlotClassId>(cls));
    uint64_t bytes = alignUp(sizes[cls].bytes) * sizes[cls].count;
    (category == "activations" ? memory.activations : memory.communication) +=
        bytes;
  }

  const FragmentMemory &fragment = fragments(stageShape(choice, stage));
  uint64_t lane = alignUp(fragment.laneBytes());
  memory.logits = std::min(fragment.logitsBytes, lane);
  memory.workspace =
      lane - memory.logits + alignUp(kScalarsBytes) + alignUp(kMetricsBytes);
  if (choice.layout[stage] > 0)
    memory.workspace += alignUp(ropeTableBytes(dims_));
  memory.reserve = reserveBytes_;
  return memory;
}

StageArena StageModel::arena(const model::Choice &choice, int64_t stage) {
  StageArena arena;
  std::vector<Parameter> parameters = stageParameters(dims_, choice, stage);
  auto addRole = [&](StateRole role, const char *suffix,
                     uint64_t ParameterStates::*bytes) {
    for (const Parameter &parameter : parameters) {
      ParameterStates states(parameter, choice);
      if (states.*bytes)
        arena.states.push_back({parameter.name + suffix, role, states.*bytes});
    }
  };
  addRole(StateRole::Parameter, "", &ParameterStates::parameterBytes);
  addRole(StateRole::Gradient, "#gradient", &ParameterStates::gradient);
  addRole(StateRole::MainWeight, "#main_weight", &ParameterStates::mainWeight);
  addRole(StateRole::Momentum, "#momentum", &ParameterStates::moment);
  addRole(StateRole::Variance, "#variance", &ParameterStates::moment);
  if (choice.layout[stage] > 0)
    arena.states.push_back(
        {"rope.table", StateRole::Buffer, ropeTableBytes(dims_)});
  arena.states.push_back({"scalars", StateRole::Scalars, kScalarsBytes});
  arena.states.push_back({"metrics", StateRole::Metrics, kMetricsBytes});

  arena.slots = slotSizes(choice, stage);
  arena.fragments = fragments(stageShape(choice, stage));
  LayoutInput input;
  for (const StateSize &state : arena.states)
    input.states.push_back(state.bytes);
  for (const SlotClassSize &slot : arena.slots)
    if (slot.count)
      input.slots.push_back(slot);
  input.lanes.push_back(arena.fragments.laneBytes());
  arena.layout = layoutStage(input);
  arena.memory = memory(choice, stage);
  RECKON_CHECK(arena.memory.arena() == arena.layout.arenaBytes);
  return arena;
}
