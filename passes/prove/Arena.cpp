//===- Arena.cpp - memory lies apart, slots are used in turn --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Layout.h"
#include "passes/prove/Checks.h"

#include <algorithm>
#include <map>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

static std::string stageName(const Stage &stage) {
  return "stage " + std::to_string(stage.number());
}

// --- Regions ----------------------------------------------------------------

namespace {

struct Zone {
  int64_t begin, end;
  std::string name;
};

} // namespace

static Status checkRegions(const Stage &stage, size_t &count) {
  std::vector<Zone> regions;
  auto add = [&](uint64_t offset, uint64_t bytes, const std::string &name) {
    auto begin = static_cast<int64_t>(offset);
    regions.push_back({begin, begin + static_cast<int64_t>(bytes), name});
  };
  for (const auto &state : stage.plan->states)
    add(state->offset, state->bytes, "state " + state->name);
  for (const auto &cls : stage.plan->slot_classes)
    add(cls->offset, cls->bytes * cls->count, "slot class " + cls->name);
  for (const auto &lane : stage.plan->lanes)
    add(lane->offset, lane->bytes, "lane " + lane->name);
  std::stable_sort(
      regions.begin(), regions.end(),
      [](const Zone &a, const Zone &b) { return a.begin < b.begin; });
  int64_t end = 0;
  const Zone *before = nullptr;
  for (const Zone &region : regions) {
    if (region.begin < end)
      return refuse(stageName(stage) + ": " + region.name + " at byte " +
                    std::to_string(region.begin) + " overlaps " + before->name +
                    ", which ends at byte " + std::to_string(before->end));
    if (region.end > end) {
      end = region.end;
      before = &region;
    }
  }
  count += regions.size();
  auto arena = static_cast<int64_t>(stage.plan->arena_bytes);
  if (static_cast<int64_t>(model::alignUp(end)) != arena)
    return refuse(stageName(stage) + ": the arena has " +
                  std::to_string(arena) + " bytes, but its last region, " +
                  (before ? before->name : "none") + ", ends at byte " +
                  std::to_string(end));
  return Status::success();
}

// --- Instructions in place --------------------------------------------------

/// Whether output `out` may be exactly input `in`: the rules of
/// runtime/device/Kernels.h.
static bool mayShare(const InstructionT &source, size_t out, size_t in) {
  if (source.op == Opcode::copy)
    return false;
  if (source.op != Opcode::launch)
    return out == in;
  switch (source.kernel) {
  case Kernel::add:
  case Kernel::swiglu_grad:
    return true;
  case Kernel::rope:
  case Kernel::rms_norm_grad_input:
  case Kernel::cross_entropy_grad:
    return out == 0 && in == 0;
  default:
    return false;
  }
}

namespace {

/// Two operands of one instruction: may they meet, and do they?
class OverlapCheck {
public:
  explicit OverlapCheck(CoordFunctions &functions) : functions_(functions) {}

  /// Whether the bytes of two operands are on no rank the same.
  bool apart(const Operand &a, const Operand &b) const {
    if (a.region != b.region || a.index != b.index)
      return true; // regions lie apart, slots of one action too
    return !functions_.overlap(a.offset, a.bytes, b.offset, b.bytes);
  }

  static bool same(const Operand &a, const Operand &b) {
    return a.region == b.region && a.index == b.index && a.offset == b.offset &&
           a.bytes == b.bytes;
  }

  /// Whether `part` is this rank's block of `whole`, in the order of the
  /// group's ranks: how a gather or a scatter works in place.
  bool isBlock(const PreparedInstruction &instruction, const Operand &part,
               const Operand &whole) const {
    return !whole.varies &&
           part.offset == functions_.shifted(
                              functions_.block(instruction.axes, part.bytes),
                              functions_.low(whole.offset));
  }

private:
  CoordFunctions &functions_;
};

} // namespace

static Status checkInstruction(const Stage &stage, const OverlapCheck &overlap,
                               const PreparedFragment &fragment,
                               size_t number) {
  const PreparedInstruction &instruction = fragment.instructions[number];
  const InstructionT &source = *instruction.source;
  auto refused = [&](const std::string &what) {
    return refuse(stageName(stage) + ", fragment " + fragment.source->name +
                  ", instruction " + std::to_string(number) + " (" +
                  (source.op == Opcode::launch ? EnumNameKernel(source.kernel)
                                               : EnumNameOpcode(source.op)) +
                  ", " + source.layer + ", " + source.source + "): " + what);
  };
  const auto &in = instruction.inputs;
  const auto &out = instruction.outputs;
  for (size_t o = 0; o < out.size(); ++o) {
    for (size_t other = 0; other < o; ++other)
      if (!overlap.apart(out[o], out[other]))
        return refused("outputs " + std::to_string(other) + " and " +
                       std::to_string(o) + " overlap");
    for (size_t i = 0; i < in.size(); ++i) {
      if (overlap.apart(out[o], in[i]))
        continue;
      bool allowed = mayShare(source, o, i);
      if (allowed && source.op == Opcode::all_gather)
        allowed = overlap.isBlock(instruction, in[i], out[o]);
      else if (allowed && source.op == Opcode::reduce_scatter)
        allowed = overlap.isBlock(instruction, out[o], in[i]);
      else if (allowed)
        allowed = overlap.same(out[o], in[i]);
      if (!allowed)
        return refused("output " + std::to_string(o) +
                       " overwrites bytes of input " + std::to_string(i) +
                       " in a way that the operation does not allow");
    }
  }
  return Status::success();
}

Status prove::checkArena(Program &program, std::string &detail) {
  size_t regions = 0, instructions = 0;
  for (const Stage &stage : program.stages) {
    RECKON_TRY(checkRegions(stage, regions));
    OverlapCheck overlap(program.functions);
    for (const PreparedFragment &fragment : stage.fragments)
      for (size_t i = 0; i < fragment.instructions.size(); ++i) {
        RECKON_TRY(checkInstruction(stage, overlap, fragment, i));
        ++instructions;
      }
  }
  detail = std::to_string(regions) + " regions apart, " +
           std::to_string(instructions) +
           " instructions overwrite only what "
           "their kernels allow";
  return Status::success();
}

// --- Slots ------------------------------------------------------------------

namespace {

/// What one step does with the slots of one class.
struct ClassUse {
  uint32_t acquired = 0, held = 0, peak = 0;
  bool sent = false; ///< a send releases it: held beyond list order
  std::vector<bool> used;
};

} // namespace

static Status checkSlotsOf(const Stage &stage, uint64_t &bindings) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> holders;
  std::vector<ClassUse> uses(stage.plan->slot_classes.size());
  for (size_t i = 0; i < uses.size(); ++i)
    uses[i].used.resize(stage.plan->slot_classes[i]->count);
  const auto &actions = stage.list->actions;
  for (uint32_t number = 0; number < actions.size(); ++number) {
    std::vector<std::pair<uint32_t, uint32_t>> mine;
    for (const auto &binding : actions[number]->bindings) {
      ++bindings;
      std::pair<uint32_t, uint32_t> slot(binding->slot_class, binding->index);
      std::string name = "slot " + std::to_string(binding->index) +
                         " of class " +
                         stage.plan->slot_classes[binding->slot_class]->name;
      ClassUse &use = uses[binding->slot_class];
      if (std::find(mine.begin(), mine.end(), slot) != mine.end())
        return refuse(describe(stage, number) + " binds " + name + " twice");
      mine.push_back(slot);
      auto holder = holders.find(slot);
      if (binding->acquire) {
        if (holder != holders.end())
          return refuse(describe(stage, number) + " acquires " + name +
                        ", which " + describe(stage, holder->second) +
                        " acquired and nothing has released");
        holders[slot] = number;
        ++use.acquired;
        use.peak = std::max(use.peak, ++use.held);
      } else if (holder == holders.end()) {
        return refuse(describe(stage, number) + " uses " + name +
                      ", which nothing has acquired");
      }
      use.used[binding->index] = true;
      use.sent |= actions[number]->kind == ActionKind::send && binding->release;
      if (binding->release) {
        holders.erase(slot);
        --use.held;
      }
    }
  }
  if (!holders.empty())
    return refuse(describe(stage, holders.begin()->second) +
                  " acquires a slot of class " +
                  stage.plan->slot_classes[holders.begin()->first.first]->name +
                  " that nothing releases in this step");
  for (size_t i = 0; i < uses.size(); ++i) {
    const SlotClassT &cls = *stage.plan->slot_classes[i];
    // What is sent stays held until the peer has it: double buffering.
    uint32_t needed =
        uses[i].sent ? std::min<uint32_t>(2, uses[i].acquired) : uses[i].peak;
    if (cls.count != needed)
      return refuse(stageName(stage) + ": class " + cls.name + " has " +
                    std::to_string(cls.count) + " slots, but " +
                    std::to_string(needed) + " are in flight at once");
    for (size_t s = 0; s < uses[i].used.size(); ++s)
      if (!uses[i].used[s])
        return refuse(stageName(stage) + ": slot " + std::to_string(s) +
                      " of class " + cls.name + " is never used");
  }
  return Status::success();
}

Status prove::checkSlots(const Program &program, std::string &detail) {
  uint64_t bindings = 0, slots = 0;
  for (const Stage &stage : program.stages) {
    RECKON_TRY(checkSlotsOf(stage, bindings));
    for (const auto &cls : stage.plan->slot_classes)
      slots += cls->count;
  }
  detail = std::to_string(slots) + " slots equal the peak in flight, " +
           std::to_string(bindings) + " bindings in turn";
  return Status::success();
}
