//===- Tables.cpp - states and numbers are those of the spec --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Checks.h"
#include "passes/prove/Share.h"

#include <algorithm>
#include <cstring>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

static std::string stageName(const Stage &stage) {
  return "stage " + std::to_string(stage.number());
}

const StateT *prove::findState(const Stage &stage, Role role) {
  for (const auto &state : stage.plan->states)
    if (state->role == role)
      return state.get();
  return nullptr;
}

bool prove::hasFlatStates(const Stage &stage) {
  const StateT *momentum = findState(stage, Role::momentum);
  return momentum && !momentum->flat_axes.empty();
}

Status prove::readShare(const Stage &stage, const Intent &intent,
                        StageShare &share) {
  std::vector<std::string> names;
  for (const auto &state : stage.plan->states)
    if (state->role == Role::parameter)
      names.push_back(state->name);
  auto has = [&](const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  auto take = [&](const std::vector<model::Parameter> &parameters) {
    share.parameters.insert(share.parameters.end(), parameters.begin(),
                            parameters.end());
  };
  model::Parameter embedding = model::embeddingParameter(intent.dims);
  share.embedding = has(embedding.name);
  if (share.embedding)
    take({embedding});
  int64_t layer = 0;
  auto hasLayer = [&](int64_t number) {
    for (const model::Parameter &parameter :
         model::layerParameters(intent.dims, number))
      if (has(parameter.name))
        return true;
    return false;
  };
  while (layer < intent.dims.layers && !hasLayer(layer))
    ++layer;
  share.firstLayer = layer;
  for (; layer < intent.dims.layers && hasLayer(layer); ++layer)
    take(model::layerParameters(intent.dims, layer));
  share.lastLayer = layer;
  share.head = has(model::headParameters(intent.dims)[0].name) ||
               has(model::headParameters(intent.dims)[1].name);
  if (share.head)
    take(model::headParameters(intent.dims));
  if (names.size() != share.parameters.size())
    return refuse(stageName(stage) + " has " + std::to_string(names.size()) +
                  " parameters, its part of the model has " +
                  std::to_string(share.parameters.size()));
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] != share.parameters[i].name)
      return refuse(stageName(stage) + ": parameter " + std::to_string(i) +
                    " is " + names[i] + ", expected " +
                    share.parameters[i].name);
  return Status::success();
}

namespace {

/// Compares the tables of one stage with what its share of the model needs.
class TableCheck {
public:
  TableCheck(CoordFunctions &functions, const Stage &stage,
             const Intent &intent, const StageShare &share)
      : functions_(functions), stage_(stage), intent_(intent), share_(share),
        zero_(hasFlatStates(stage)) {}

  uint64_t states = 0;

  Status run() {
    RECKON_TRY(numbers());
    for (const model::Parameter &parameter : share_.parameters)
      RECKON_TRY(statesOf(parameter));
    RECKON_TRY(others());
    if (states != stage_.plan->states.size())
      return refuse(stageName(stage_) + " has " +
                    std::to_string(stage_.plan->states.size()) +
                    " states, expected " + std::to_string(states));
    return Status::success();
  }

private:
  template <typename T>
  Status equal(const char *what, const T &got, const T &expected) {
    if (got == expected)
      return Status::success();
    auto text = [](const T &value) {
      if constexpr (std::is_same_v<T, std::string>)
        return value;
      else if constexpr (std::is_same_v<T, double>) {
        char number[32];
        std::snprintf(number, sizeof number, "%.17g", value);
        return std::string(number);
      } else
        return std::to_string(value);
    };
    return refuse(stageName(stage_) + ": " + what + " is " + text(got) +
                  ", the spec says " + text(expected));
  }

  Status numbers() {
    const StagePlanT &plan = *stage_.plan;
    const OptimizerT &optimizer = *plan.optimizer;
    auto i64 = [](auto value) { return static_cast<int64_t>(value); };
    RECKON_TRY(equal("the model", plan.name, intent_.name));
    RECKON_TRY(equal("the precision", plan.precision,
                     std::string(intent_.fp8    ? "fp8"
                                 : intent_.bf16 ? "bf16"
                                                : "fp32")));
    RECKON_TRY(equal("the seed", i64(plan.seed), intent_.seed));
    RECKON_TRY(equal("the sequence length", i64(plan.sequence_length),
                     intent_.dims.sequence));
    RECKON_TRY(equal("the global batch", i64(plan.global_batch_size),
                     intent_.globalBatch));
    RECKON_TRY(
        equal("the vocabulary", i64(plan.vocab_size), intent_.dims.vocab));
    RECKON_TRY(equal("lr", optimizer.lr, intent_.lr));
    RECKON_TRY(equal("min_lr", optimizer.min_lr, intent_.minLr));
    RECKON_TRY(equal("beta1", optimizer.beta1, intent_.beta1));
    RECKON_TRY(equal("beta2", optimizer.beta2, intent_.beta2));
    RECKON_TRY(equal("clip_grad", optimizer.clip_grad, intent_.clipGrad));
    RECKON_TRY(equal("the learning rate schedule", optimizer.schedule,
                     intent_.schedule));
    RECKON_TRY(equal("warmup_steps", i64(optimizer.warmup_steps),
                     intent_.warmupSteps));
    RECKON_TRY(
        equal("decay_steps", i64(optimizer.decay_steps), intent_.decaySteps));
    RECKON_TRY(
        equal("train_steps", i64(optimizer.train_steps), intent_.trainSteps));
    RECKON_TRY(equal("the data format", plan.data->format, intent_.dataFormat));
    RECKON_TRY(equal("the tokenizer", plan.data->tokenizer, intent_.tokenizer));
    return equal("the data path", plan.data->path, intent_.dataPath);
  }

  const StateT *find(const std::string &name) {
    for (const auto &state : stage_.plan->states)
      if (state->name == name)
        return state.get();
    return nullptr;
  }

  Error wrong(const StateT &state, const std::string &what) {
    return refuse(stageName(stage_) + ": state " + state.name + " (" +
                  state.source + ") " + what);
  }

  /// What all states have in common.
  Status check(const std::string &name, Role role, DType dtype,
               const std::vector<int64_t> &shape, std::optional<int64_t> tpDim,
               bool flat, int64_t bytes, InitKind init, Lifetime lifetime) {
    const StateT *state = find(name);
    if (!state)
      return refuse(stageName(stage_) + " lacks state " + name);
    ++states;
    if (state->role != role || state->dtype != dtype)
      return wrong(*state, std::string("is a ") + EnumNameRole(state->role) +
                               " of " + EnumNameDType(state->dtype) +
                               ", expected " + EnumNameRole(role) + " of " +
                               EnumNameDType(dtype));
    if (state->global_shape != shape || state->box.size() != shape.size())
      return wrong(*state, "has another shape than the model");
    int64_t tp = functions_.mesh().tp;
    for (size_t d = 0; d < shape.size(); ++d) {
      bool split = tpDim && *tpDim == static_cast<int64_t>(d);
      int64_t part = split ? shape[d] / tp : shape[d];
      FnId start =
          functions_.make(split ? 1u << static_cast<unsigned>(Axis::tp) : 0u,
                          [&](const Coord &coord) { return coord.tp * part; });
      FnId size = functions_.constant(part);
      if (functions_.of(state->box[d]->start, stage_.number()) != start ||
          functions_.of(state->box[d]->size, stage_.number()) != size)
        return wrong(*state, "starts at " +
                                 functions_.describe(functions_.of(
                                     state->box[d]->start, stage_.number())) +
                                 " of dimension " + std::to_string(d) +
                                 ", expected " + functions_.describe(start));
    }
    std::vector<Axis> axes;
    if (flat)
      axes.push_back(Axis::dp);
    if (state->flat_axes != axes)
      return wrong(*state, "is split over other replicas than expected");
    if (static_cast<int64_t>(state->bytes) != bytes)
      return wrong(*state, "has " + std::to_string(state->bytes) +
                               " bytes, expected " + std::to_string(bytes));
    if (!state->init || state->init->kind != init)
      return wrong(
          *state,
          std::string("starts as ") +
              (state->init ? EnumNameInitKind(state->init->kind) : "nothing") +
              ", expected " + EnumNameInitKind(init));
    if (state->lifetime != lifetime)
      return wrong(*state, "has another lifetime than expected");
    return replicas(*state, role, tpDim, flat);
  }

  /// Ranks with equal values: all along the axes that no part depends on.
  Status replicas(const StateT &state, Role role, std::optional<int64_t> tpDim,
                  bool flat) {
    if (role == Role::gradient || role == Role::scalars ||
        role == Role::metrics || role == Role::buffer)
      return Status::success(); // nothing reads them across ranks
    std::vector<Axis> expected;
    const MeshT &mesh = functions_.mesh();
    if (!tpDim && mesh.tp > 1)
      expected.push_back(Axis::tp);
    if (!flat && mesh.dp > 1)
      expected.push_back(Axis::dp);
    std::vector<Axis> got;
    for (Axis axis : state.replica_axes)
      if (axisSize(mesh, axis) > 1)
        got.push_back(axis);
    std::sort(got.begin(), got.end());
    if (got != expected)
      return wrong(state, "says that it is equal on other ranks than it is");
    return Status::success();
  }

  Status statesOf(const model::Parameter &parameter) {
    int64_t tp = functions_.mesh().tp, dp = functions_.mesh().dp;
    int64_t local = parameter.localElements(tp);
    int64_t block = zero_ ? (local + dp - 1) / dp : local;
    int64_t whole = zero_ ? block * dp : local;
    DType dtype = intent_.bf16 ? DType::bf16 : DType::f32;
    bool normal = parameter.init == model::ParameterInit::Normal;
    InitKind init = normal ? InitKind::normal : InitKind::ones;
    auto check = [&](const char *suffix, Role role, DType type, bool flat,
                     InitKind kind) {
      return this->check(
          parameter.name + suffix, role, type, parameter.shape, parameter.tpDim,
          flat, (flat ? block : whole) * dtypeSize(type), kind,
          role == Role::gradient ? Lifetime::step : Lifetime::persistent);
    };
    RECKON_TRY(check("", Role::parameter, dtype, false, init));
    RECKON_TRY(
        check("#gradient", Role::gradient, DType::f32, false, InitKind::zeros));
    if (intent_.bf16)
      RECKON_TRY(
          check("#main_weight", Role::main_weight, DType::f32, zero_, init));
    RECKON_TRY(
        check("#momentum", Role::momentum, DType::f32, zero_, InitKind::zeros));
    RECKON_TRY(
        check("#variance", Role::variance, DType::f32, zero_, InitKind::zeros));
    for (const char *suffix : {"", "#main_weight"}) {
      const StateT *state = find(parameter.name + suffix);
      if (state && normal && state->init->stddev != intent_.dims.initStddev)
        return wrong(*state, "is drawn with another deviation than the spec's");
    }
    for (const char *suffix : {"#main_weight", "#momentum", "#variance"}) {
      const StateT *state = find(parameter.name + suffix);
      if (state && zero_ && state->flat_elements != block)
        return wrong(*state, "has flat shards of " +
                                 std::to_string(state->flat_elements) +
                                 " elements, expected " +
                                 std::to_string(block));
    }
    return Status::success();
  }

  Status others() {
    // Only stages with decoder layers rotate.
    if (share_.firstLayer < share_.lastLayer) {
      int64_t s = intent_.dims.sequence, d = intent_.dims.headDim;
      RECKON_TRY(check("rope.table", Role::buffer, DType::f32, {s, d},
                       std::nullopt, false, s * d * dtypeSize(DType::f32),
                       InitKind::rope, Lifetime::persistent));
      const StateT &table = *find("rope.table");
      if (!std::equal(table.init->rope.begin(), table.init->rope.end(),
                      intent_.rope.begin(), intent_.rope.end()))
        return wrong(table, "has other frequencies than the spec");
    }
    for (auto [name, role, elements] :
         {std::tuple{"scalars", Role::scalars, int64_t(8)},
          std::tuple{"metrics", Role::metrics, int64_t(4)}})
      RECKON_TRY(check(name, role, DType::f64, {elements}, std::nullopt, false,
                       elements * dtypeSize(DType::f64), InitKind::zeros,
                       Lifetime::persistent));
    return Status::success();
  }

  CoordFunctions &functions_;
  const Stage &stage_;
  const Intent &intent_;
  const StageShare &share_;
  bool zero_;
};

} // namespace

Status prove::checkTables(Program &program, const Intent &intent,
                          std::string &detail) {
  int64_t next = 0;
  uint64_t states = 0;
  for (const Stage &stage : program.stages) {
    StageShare share;
    RECKON_TRY(readShare(stage, intent, share));
    bool first = stage.number() == 0;
    bool last = stage.number() + 1 == program.stages.size();
    if (share.embedding != first || share.head != last)
      return refuse(stageName(stage) +
                    (share.embedding != first
                         ? (first ? " lacks the embedding"
                                  : " has an embedding, which stage 0 has")
                         : (last ? " lacks the head"
                                 : " has a head, which the last stage has")));
    if (share.firstLayer < share.lastLayer && share.firstLayer != next)
      return refuse(stageName(stage) + " begins with decoder layer " +
                    std::to_string(share.firstLayer) + ", expected layer " +
                    std::to_string(next));
    if (share.firstLayer < share.lastLayer)
      next = share.lastLayer;
    TableCheck check(program.functions, stage, intent, share);
    RECKON_TRY(check.run());
    states += check.states;
  }
  if (next != intent.dims.layers)
    return refuse("the stages have " + std::to_string(next) +
                  " decoder layers, the spec has " +
                  std::to_string(intent.dims.layers));
  detail = std::to_string(next) + " layers once and in order, " +
           std::to_string(states) + " states as the spec says";
  return Status::success();
}
