//===- PlanValidate.cpp - indices and byte ranges of a stage plan ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanIO.h"

#include <algorithm>
#include <functional>

namespace reckon::plan {
namespace {

/// Walks the plan once; the first problem found stays in `problem`.
class Validator {
public:
  explicit Validator(const StagePlanT &plan) : plan_(plan) {}

  std::string run() {
    if (header() && states() && memory() && topology()) {
      for (size_t i = 0; i < plan_.fragments.size() && problem_.empty(); ++i)
        fragment(i);
      for (size_t i = 0; i < plan_.lists.size() && problem_.empty(); ++i)
        list(i);
    }
    return problem_;
  }

private:
  bool require(bool condition, const std::string &what) {
    if (!condition && problem_.empty())
      problem_ = where_.empty() ? what : where_ + ": " + what;
    return condition;
  }

  /// Calls `visit` with every value that the expression has on a rank of this
  /// stage; false when one was refused or the axes are out of range.
  bool forValues(const ExprT &expr, const std::function<bool(int64_t)> &visit) {
    bool used[kNumAxes] = {};
    for (const Term &term : expr.terms) {
      if (!require(static_cast<int>(term.axis()) < kNumAxes, "unknown axis"))
        return false;
      used[static_cast<int>(term.axis())] = true;
      if (!require(std::abs(term.scale()) < kMaxBytes, "a huge scale"))
        return false;
    }
    for (const Case &c : expr.cases) {
      if (!require(static_cast<int>(c.axis()) < kNumAxes, "unknown axis"))
        return false;
      used[static_cast<int>(c.axis())] = true;
    }
    if (!require(std::abs(expr.base) < kMaxBytes, "a huge value"))
      return false;
    Coord coord;
    coord.pp = plan_.stage;
    return sweep(expr, used, 0, coord, visit);
  }

  bool sweep(const ExprT &expr, const bool *used, int axis, Coord &coord,
             const std::function<bool(int64_t)> &visit) {
    if (axis == static_cast<int>(Axis::pp)) // fixed: one file per stage
      return visit(evalExpr(expr, coord));
    if (!used[axis])
      return sweep(expr, used, axis + 1, coord, visit);
    Axis a = static_cast<Axis>(axis);
    for (int64_t i = 0; i < axisSize(*plan_.mesh, a); ++i) {
      coord[a] = i;
      if (!sweep(expr, used, axis + 1, coord, visit))
        return false;
    }
    coord[a] = 0;
    return true;
  }

  bool inRange(const std::unique_ptr<ExprT> &expr, int64_t low, int64_t high,
               const std::string &what) {
    ExprT zero;
    return forValues(expr ? *expr : zero, [&](int64_t value) {
      return require(value >= low && value <= high,
                     what + " is " + std::to_string(value) + ", outside " +
                         std::to_string(low) + " to " + std::to_string(high));
    });
  }

  bool header() {
    if (!require(plan_.mesh != nullptr, "no mesh"))
      return false;
    int64_t world = 1;
    for (Axis axis : kRankOrder) {
      int64_t size = axisSize(*plan_.mesh, axis);
      if (!require(size >= 1 && size <= (1 << 20), "a degree out of range"))
        return false;
      world *= size;
      if (!require(world <= (1 << 24), "more than 2^24 ranks"))
        return false;
    }
    return require(plan_.stage < plan_.mesh->pp, "stage outside the mesh") &&
           require(plan_.sequence_length > 0, "no sequence length") &&
           require(plan_.micro_batch_size > 0, "no micro-batch size") &&
           require(plan_.num_micro_batches > 0, "no micro-batches") &&
           require(plan_.vocab_size > 0, "no vocabulary") &&
           require(int64_t(plan_.global_batch_size) ==
                       int64_t(plan_.micro_batch_size) *
                           plan_.num_micro_batches * plan_.mesh->dp *
                           plan_.mesh->ep,
                   "the global batch is not dp * ep * micro-batch size * "
                   "micro-batches") &&
           require(plan_.optimizer != nullptr, "no optimizer") &&
           require(plan_.data != nullptr, "no data") &&
           require(plan_.arena_bytes < uint64_t(kMaxBytes), "a huge arena");
  }

  bool insideArena(uint64_t offset, uint64_t bytes) {
    return require(offset <= plan_.arena_bytes &&
                       bytes <= plan_.arena_bytes - offset,
                   "bytes " + std::to_string(offset) + " to " +
                       std::to_string(offset + bytes) + " outside the arena");
  }

  bool knownType(DType dtype) { return require(dtype <= DType::MAX, "dtype"); }

  /// Transports know no codes of fp8: their scales would have to go along.
  bool movable(const BufferT &buffer) {
    return require(buffer.dtype <= DType::u8, std::string("data of ") +
                                                  EnumNameDType(buffer.dtype) +
                                                  " between ranks");
  }

  bool shape(const std::vector<int64_t> &dims, int64_t *elements) {
    *elements = 1;
    for (int64_t dim : dims) {
      if (!require(dim > 0, "a dimension that is not positive"))
        return false;
      if (!require(dim < kMaxBytes / *elements, "a huge shape"))
        return false;
      *elements *= dim;
    }
    return true;
  }

  bool states() {
    for (size_t i = 0; i < plan_.states.size(); ++i) {
      const StateT &state = *plan_.states[i];
      where_ = "state " + std::to_string(i) + " (" + state.name + ")";
      int64_t elements;
      if (!knownType(state.dtype) ||
          !require(state.role <= Role::metrics, "unknown role") ||
          !require(state.lifetime <= Lifetime::external, "unknown lifetime") ||
          !require(!state.init || state.init->kind <= InitKind::rope,
                   "unknown init") ||
          !shape(state.global_shape, &elements) ||
          !insideArena(state.offset, state.bytes) ||
          !require(state.offset % dtypeSize(state.dtype) == 0, "misaligned") ||
          !require(state.box.empty() ||
                       state.box.size() == state.global_shape.size(),
                   "one extent per dimension expected") ||
          !require(state.flat_elements >= 0 &&
                       state.flat_elements < kMaxBytes / 8,
                   "flat elements out of range"))
        return false;
      for (size_t d = 0; d < state.box.size(); ++d)
        if (!inRange(state.box[d]->start, 0, state.global_shape[d], "start") ||
            !inRange(state.box[d]->size, 0, state.global_shape[d], "size"))
          return false;
      for (Axis axis : state.flat_axes)
        if (!require(static_cast<int>(axis) < kNumAxes, "unknown axis"))
          return false;
      for (Axis axis : state.replica_axes)
        if (!require(static_cast<int>(axis) < kNumAxes, "unknown axis"))
          return false;
      if (state.init && state.init->kind == InitKind::rope &&
          !require(state.init->rope.size() == 5, "five rope values expected"))
        return false;
    }
    where_.clear();
    return true;
  }

  bool memory() {
    for (const auto &cls : plan_.slot_classes) {
      where_ = "slot class " + cls->name;
      if (!require(cls->bytes < uint64_t(kMaxBytes), "a huge slot") ||
          !require(cls->count > 0, "no slots") ||
          !require(cls->bytes == 0 ||
                       cls->count <= uint64_t(kMaxBytes) / cls->bytes,
                   "too many slots") ||
          !require(cls->offset % 8 == 0 && cls->bytes % 8 == 0, "misaligned") ||
          !insideArena(cls->offset, cls->bytes * cls->count))
        return false;
    }
    for (const auto &lane : plan_.lanes) {
      where_ = "lane " + lane->name;
      if (!require(lane->offset % 8 == 0, "misaligned") ||
          !insideArena(lane->offset, lane->bytes))
        return false;
    }
    where_.clear();
    return true;
  }

  bool topology() {
    if (!require(!plan_.streams.empty(), "no streams"))
      return false;
    for (const auto &group : plan_.groups) {
      where_ = "group " + group->name;
      for (Axis axis : group->axes)
        if (!require(static_cast<int>(axis) < kNumAxes, "unknown axis"))
          return false;
      for (const auto &filter : group->filters)
        if (!require(static_cast<int>(filter->axis) < kNumAxes, "unknown axis"))
          return false;
    }
    for (const auto &channel : plan_.channels) {
      where_ = "channel " + channel->name;
      if (!require(channel->source_stage < plan_.mesh->pp &&
                       channel->target_stage < plan_.mesh->pp,
                   "a stage outside the mesh") ||
          !require(channel->source_stage == plan_.stage ||
                       channel->target_stage == plan_.stage,
                   "a channel of other stages"))
        return false;
    }
    where_.clear();
    return true;
  }

  /// `slotClasses[i]` is the class bound to slot i.
  bool buffer(const BufferT &buffer, const std::vector<uint32_t> &slotClasses) {
    uint64_t limit = 0;
    switch (buffer.region) {
    case Region::state:
      if (!require(buffer.index < plan_.states.size(), "no such state"))
        return false;
      limit = plan_.states[buffer.index]->bytes;
      break;
    case Region::slot:
      if (!require(buffer.index < slotClasses.size(), "no such slot"))
        return false;
      limit = plan_.slot_classes[slotClasses[buffer.index]]->bytes;
      break;
    case Region::lane:
      if (!require(buffer.index < plan_.lanes.size(), "no such lane"))
        return false;
      limit = plan_.lanes[buffer.index]->bytes;
      break;
    default:
      return require(false, "unknown region");
    }
    int64_t elements;
    if (!knownType(buffer.dtype) || !shape(buffer.shape, &elements))
      return false;
    int64_t size = dtypeSize(buffer.dtype);
    if (!require(elements <= kMaxBytes / size, "a huge buffer"))
      return false;
    int64_t bytes = elements * size;
    ExprT zero;
    return forValues(
        buffer.offset ? *buffer.offset : zero, [&](int64_t offset) {
          return require(offset >= 0 && offset % size == 0 &&
                             uint64_t(offset) <= limit &&
                             uint64_t(bytes) <= limit - uint64_t(offset),
                         "a buffer of " + std::to_string(bytes) +
                             " bytes at offset " + std::to_string(offset) +
                             " in a region of " + std::to_string(limit));
        });
  }

  void fragment(size_t index) {
    const FragmentT &fragment = *plan_.fragments[index];
    std::string name = "fragment " + fragment.name;
    where_ = name;
    if (!require(fragment.home_stream < plan_.streams.size(),
                 "no such stream") ||
        !require(fragment.lane < std::max<size_t>(1, plan_.lanes.size()),
                 "no such lane"))
      return;
    std::vector<uint32_t> classes;
    for (const auto &slot : fragment.slots) {
      if (!require(slot->slot_class < plan_.slot_classes.size(),
                   "no such slot class"))
        return;
      classes.push_back(slot->slot_class);
    }
    for (size_t i = 0; i < fragment.instructions.size(); ++i) {
      const InstructionT &instruction = *fragment.instructions[i];
      where_ = name + ", instruction " + std::to_string(i);
      if (!require(instruction.op <= Opcode::copy, "unknown opcode") ||
          !require(instruction.kernel <= Kernel::MAX, "unknown kernel") ||
          !require(instruction.reduction <= Reduction::max,
                   "unknown reduction") ||
          !require(instruction.stream < plan_.streams.size(), "no such stream"))
        return;
      for (const auto &input : instruction.inputs)
        if (!buffer(*input, classes))
          return;
      for (const auto &output : instruction.outputs)
        if (!buffer(*output, classes))
          return;
      for (const auto &arg : instruction.args)
        if (!inRange(arg, -kMaxBytes, kMaxBytes, "an argument"))
          return;
      if (!operands(instruction, fragment.events))
        return;
    }
    where_.clear();
  }

  bool operands(const InstructionT &instruction, uint32_t events) {
    const auto &in = instruction.inputs;
    const auto &out = instruction.outputs;
    switch (instruction.op) {
    case Opcode::launch:
      return require(instruction.kernel != Kernel::none, "no kernel");
    case Opcode::record:
    case Opcode::wait:
      return require(instruction.event < events, "no such event");
    case Opcode::all_reduce:
    case Opcode::all_gather:
    case Opcode::reduce_scatter:
      if (!require(instruction.group < plan_.groups.size(), "no such group") ||
          !require(!in.empty(), "a collective without data"))
        return false;
      [[fallthrough]];
    case Opcode::copy:
      break;
    }
    if (!require(in.size() == out.size(),
                 "inputs and outputs differ in number"))
      return false;
    // Members of a collective: ranks that share the filters' coordinates.
    int64_t members = 1;
    if (instruction.op != Opcode::copy) {
      Coord coord;
      coord.pp = plan_.stage;
      const GroupT &group = *plan_.groups[instruction.group];
      if (group.filters.empty())
        for (Axis axis : group.axes)
          members *= axisSize(*plan_.mesh, axis);
      else
        members =
            static_cast<int64_t>(groupRanks(group, *plan_.mesh, coord).size());
    }
    for (size_t i = 0; i < in.size(); ++i) {
      if (instruction.op != Opcode::copy && !movable(*in[i]))
        return false;
      int64_t from = elementCount(in[i]->shape);
      int64_t to = elementCount(out[i]->shape);
      if (instruction.op == Opcode::all_gather)
        from *= members;
      if (instruction.op == Opcode::reduce_scatter)
        to *= members;
      if (!require(in[i]->dtype == out[i]->dtype && from == to,
                   "segment " + std::to_string(i) + " has " +
                       std::to_string(from) + " elements on one side and " +
                       std::to_string(to) + " on the other"))
        return false;
    }
    return true;
  }

  void list(size_t index) {
    const ActionListT &list = *plan_.lists[index];
    for (size_t i = 0; i < list.actions.size(); ++i) {
      const ActionT &action = *list.actions[i];
      where_ = "list " + list.name + ", action " + std::to_string(i) + " (" +
               action.label + ")";
      std::vector<uint32_t> classes;
      if (!require(action.kind <= ActionKind::load, "unknown kind") ||
          !require(action.stream < plan_.streams.size(), "no such stream"))
        return;
      for (const auto &binding : action.bindings) {
        if (!require(binding->slot_class < plan_.slot_classes.size(),
                     "no such slot class") ||
            !require(binding->index <
                         plan_.slot_classes[binding->slot_class]->count,
                     "no such slot"))
          return;
        classes.push_back(binding->slot_class);
      }
      for (uint32_t event : action.waits)
        if (!require(event < list.events, "no such event"))
          return;
      for (uint32_t event : action.records)
        if (!require(event < list.events, "no such event"))
          return;
      for (const Unit &unit : action.units)
        if (!require(unit.microbatch() < plan_.num_micro_batches,
                     "no such micro-batch"))
          return;
      for (const auto &moved : action.buffers)
        if (!buffer(*moved, classes))
          return;
      if (action.kind == ActionKind::run) {
        if (!require(action.fragment < plan_.fragments.size(),
                     "no such fragment"))
          return;
        const FragmentT &fragment = *plan_.fragments[action.fragment];
        if (!require(action.stream == fragment.home_stream,
                     "not on its fragment's home stream"))
          return;
        if (!require(classes.size() == fragment.slots.size(),
                     "binds " + std::to_string(classes.size()) + " slots, " +
                         fragment.name + " has " +
                         std::to_string(fragment.slots.size())))
          return;
        for (size_t s = 0; s < classes.size(); ++s)
          if (!require(classes[s] == fragment.slots[s]->slot_class,
                       "slot " + std::to_string(s) + " has another class"))
            return;
      } else if (action.kind == ActionKind::load) {
        if (!require(!action.buffers.empty() && !action.units.empty(),
                     "a load without buffer or micro-batch"))
          return;
      } else {
        if (!require(action.channel < plan_.channels.size(),
                     "no such channel") ||
            !require(!action.buffers.empty(), "a message without buffer"))
          return;
        for (const auto &moved : action.buffers)
          if (!movable(*moved))
            return;
        const ChannelT &channel = *plan_.channels[action.channel];
        bool sends = action.kind == ActionKind::send;
        if (!require((sends ? channel.source_stage : channel.target_stage) ==
                         plan_.stage,
                     "the channel runs the other way"))
          return;
      }
    }
    where_.clear();
  }

  /// Far above any machine, and far from overflow when multiplied by a degree.
  static constexpr int64_t kMaxBytes = int64_t(1) << 50;

  const StagePlanT &plan_;
  std::string where_;
  std::string problem_;
};

} // namespace

Status validateStagePlan(const StagePlanT &plan, const std::string &file) {
  std::string problem = Validator(plan).run();
  if (problem.empty())
    return Status::success();
  return makeError(ExitCode::Corrupt, file + ": the plan is inconsistent (" +
                                          problem +
                                          "): compile the plan again");
}

} // namespace reckon::plan
