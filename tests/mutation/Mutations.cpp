//===- Mutations.cpp - faults, made in the stages of a plan ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/mutation/Mutations.h"

#include "runtime/plan/Coordinates.h"

#include <algorithm>
#include <functional>
#include <set>

using namespace reckon;
using namespace reckon::mutation;
using namespace reckon::plan;

const char *mutation::kindName(Kind kind) {
  switch (kind) {
  case Kind::DropEvent:
    return "drop an event";
  case Kind::DropReceive:
    return "drop a receive";
  case Kind::DropCollective:
    return "drop a collective";
  case Kind::SwapCollectives:
    return "swap two collectives";
  case Kind::ChangeSize:
    return "change a size or group";
  case Kind::ShiftOffset:
    return "shift an offset";
  case Kind::SwapActions:
    return "swap two actions";
  case Kind::DropLayer:
    return "drop a layer";
  case Kind::ChangeScale:
    return "change a scale factor";
  }
  return "";
}

Stages mutation::copyOf(const Stages &stages) {
  Stages copies;
  for (const auto &stage : stages)
    copies.push_back(std::make_unique<StagePlanT>(*stage));
  return copies;
}

namespace {

bool isCollective(const InstructionT &instruction) {
  return instruction.op == Opcode::all_reduce ||
         instruction.op == Opcode::all_gather ||
         instruction.op == Opcode::reduce_scatter;
}

class Mutator {
public:
  Mutator(Stages &stages, std::mt19937_64 &random)
      : stages_(stages), random_(random) {}

  std::string run(Kind kind) {
    switch (kind) {
    case Kind::DropEvent:
      return dropEvent();
    case Kind::DropReceive:
      return dropReceive();
    case Kind::DropCollective:
      return dropCollective();
    case Kind::SwapCollectives:
      return swapCollectives();
    case Kind::ChangeSize:
      return changeSize();
    case Kind::ShiftOffset:
      return shiftOffset();
    case Kind::SwapActions:
      return swapActions();
    case Kind::DropLayer:
      return dropLayer();
    case Kind::ChangeScale:
      return changeScale();
    }
    return "";
  }

private:
  /// An instruction, and where it is.
  struct Site {
    StagePlanT *stage;
    FragmentT *fragment;
    size_t number;

    InstructionT &operator*() const { return *fragment->instructions[number]; }
    InstructionT *operator->() const {
      return fragment->instructions[number].get();
    }
    std::string name() const {
      const InstructionT &it = **this;
      return "stage " + std::to_string(stage->stage) + " " + fragment->name +
             " #" + std::to_string(number) + " " +
             (it.op == Opcode::launch ? EnumNameKernel(it.kernel)
                                      : EnumNameOpcode(it.op));
    }
  };

  size_t below(size_t count) { return random_() % count; }

  template <typename T> T &pick(std::vector<T> &list) {
    return list[below(list.size())];
  }

  StagePlanT &anyStage() { return *pick(stages_); }

  static ActionListT &listOf(StagePlanT &stage) {
    for (const auto &list : stage.lists)
      if (list->name == "step")
        return *list;
    return *stage.lists[0];
  }

  std::vector<Site>
  sites(const std::function<bool(const InstructionT &)> &wanted) {
    std::vector<Site> found;
    for (const auto &stage : stages_)
      for (const auto &fragment : stage->fragments)
        for (size_t i = 0; i < fragment->instructions.size(); ++i)
          if (wanted(*fragment->instructions[i]))
            found.push_back({stage.get(), fragment.get(), i});
    return found;
  }

  static void erase(const Site &site) {
    auto &list = site.fragment->instructions;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(site.number));
  }

  static std::string actionName(const StagePlanT &stage, const ActionT &it) {
    return "stage " + std::to_string(stage.stage) + " action " + it.label;
  }

  // --- Events
  // -----------------------------------------------------------------

  std::string dropEvent() {
    std::vector<Site> inFragments = sites([](const InstructionT &it) {
      return it.op == Opcode::record || it.op == Opcode::wait;
    });
    struct InList {
      StagePlanT *stage;
      ActionT *action;
      bool wait;
      size_t number;
    };
    std::vector<InList> inLists;
    for (const auto &stage : stages_)
      for (const auto &action : listOf(*stage).actions) {
        for (size_t i = 0; i < action->waits.size(); ++i)
          inLists.push_back({stage.get(), action.get(), true, i});
        for (size_t i = 0; i < action->records.size(); ++i)
          inLists.push_back({stage.get(), action.get(), false, i});
      }
    if (inFragments.empty() && inLists.empty())
      return "";
    bool fragment = !inFragments.empty() && (inLists.empty() || below(2));
    if (fragment) {
      Site site = pick(inFragments);
      std::string what =
          site.name() + " of event " + std::to_string(site->event);
      erase(site);
      return what;
    }
    InList &it = pick(inLists);
    auto &events = it.wait ? it.action->waits : it.action->records;
    std::string what = actionName(*it.stage, *it.action) +
                       (it.wait ? " wait for " : " record of ") +
                       std::to_string(events[it.number]);
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(it.number));
    return what;
  }

  // --- Messages
  // ---------------------------------------------------------------

  std::string dropReceive() {
    ActionKind kind = stages_.size() > 1 ? ActionKind::recv : ActionKind::load;
    struct Found {
      StagePlanT *stage;
      size_t number;
    };
    std::vector<Found> found;
    for (const auto &stage : stages_) {
      auto &actions = listOf(*stage).actions;
      for (size_t i = 0; i < actions.size(); ++i)
        if (actions[i]->kind == kind)
          found.push_back({stage.get(), i});
    }
    if (found.empty())
      return "";
    Found &it = pick(found);
    auto &actions = listOf(*it.stage).actions;
    std::unique_ptr<ActionT> gone = std::move(actions[it.number]);
    actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(it.number));
    std::string what = actionName(*it.stage, *gone);
    if (below(3) == 0)
      return what; // its slot is now never acquired
    // The next user acquires, so that the slots look right.
    for (const auto &binding : gone->bindings)
      [&] {
        for (size_t i = it.number; i < actions.size(); ++i)
          for (auto &use : actions[i]->bindings)
            if (use->slot_class == binding->slot_class &&
                use->index == binding->index) {
              use->acquire = true;
              return;
            }
      }();
    what += ", slots adjusted";
    if (kind == ActionKind::load || below(2))
      return what;
    // And the peer does not send it.
    uint32_t id = it.stage->channels[gone->channel]->id;
    for (const auto &stage : stages_) {
      auto &list = listOf(*stage).actions;
      for (size_t i = 0; i < list.size(); ++i) {
        ActionT &send = *list[i];
        if (send.kind != ActionKind::send ||
            stage->channels[send.channel]->id != id ||
            send.units[0].microbatch() != gone->units[0].microbatch())
          continue;
        // The run that filled the buffer releases it.
        for (const auto &binding : send.bindings)
          for (size_t j = i; j-- > 0;) {
            auto &uses = list[j]->bindings;
            auto use = std::find_if(uses.begin(), uses.end(), [&](auto &u) {
              return u->slot_class == binding->slot_class &&
                     u->index == binding->index;
            });
            if (use == uses.end())
              continue;
            (*use)->release = true;
            break;
          }
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        return what + ", not sent either";
      }
    }
    return what;
  }

  // --- Collectives
  // ------------------------------------------------------------

  std::string dropCollective() {
    std::vector<Site> found = sites(isCollective);
    if (found.empty())
      return "";
    Site site = pick(found);
    std::string what = site.name();
    erase(site);
    return what;
  }

  std::string swapCollectives() {
    std::vector<std::pair<Site, Site>> pairs;
    std::vector<Site> found = sites(isCollective);
    for (size_t i = 0; i + 1 < found.size(); ++i)
      if (found[i].fragment == found[i + 1].fragment)
        pairs.push_back({found[i], found[i + 1]});
    if (pairs.empty())
      return "";
    auto [a, b] = pick(pairs);
    // Mostly neighbours; else any other of the same fragment.
    if (below(3) == 0) {
      std::vector<Site> others;
      for (const Site &site : found)
        if (site.fragment == a.fragment && site.number != a.number)
          others.push_back(site);
      b = pick(others);
    }
    std::string what = a.name() + " and " + b.name();
    auto &list = a.fragment->instructions;
    std::swap(list[a.number], list[b.number]);
    return what;
  }

  // --- Sizes, groups and offsets
  // ----------------------------------------------

  static std::vector<BufferT *> buffers(InstructionT &instruction) {
    std::vector<BufferT *> list;
    for (const auto &buffer : instruction.inputs)
      list.push_back(buffer.get());
    for (const auto &buffer : instruction.outputs)
      list.push_back(buffer.get());
    return list;
  }

  std::string changeSize() {
    std::vector<Site> collectives = sites(isCollective);
    if (!collectives.empty() && below(3) == 0) {
      Site site = pick(collectives);
      size_t groups = site.stage->groups.size();
      if (groups > 1) {
        uint32_t old = site->group;
        site->group =
            static_cast<uint32_t>((old + 1 + below(groups - 1)) % groups);
        return site.name() + " over " + site.stage->groups[old]->name +
               " now over " + site.stage->groups[site->group]->name;
      }
    }
    std::vector<Site> work = sites([](const InstructionT &it) {
      return it.op != Opcode::record && it.op != Opcode::wait;
    });
    Site site = pick(work);
    std::vector<BufferT *> list = buffers(*site);
    BufferT *buffer = pick(list);
    // One dimension shrinks, in all buffers of this size or in one.
    int64_t old = elementCount(buffer->shape);
    int64_t &dim = pick(buffer->shape);
    if (dim > 1)
      dim = below(2) ? dim / 2 : dim - 1;
    else
      dim = 2;
    int64_t now = elementCount(buffer->shape);
    std::string what = site.name() + " a buffer of " + std::to_string(old) +
                       " elements now has " + std::to_string(now);
    if (below(2))
      return what;
    for (BufferT *other : list)
      if (elementCount(other->shape) == old)
        other->shape = {now};
    return what + ", and so have its equals";
  }

  std::string shiftOffset() {
    switch (below(4)) {
    case 0: { // a state changes places with another
      StagePlanT &stage = anyStage();
      size_t i = below(stage.states.size());
      StateT &state = *stage.states[i];
      int64_t delta = below(2) ? 256 : -256;
      if (static_cast<int64_t>(state.offset) + delta < 0)
        delta = 256;
      state.offset += static_cast<uint64_t>(delta);
      return "state " + state.name + " of stage " +
             std::to_string(stage.stage) + " by " + std::to_string(delta);
    }
    case 1: { // another slot
      StagePlanT &stage = anyStage();
      std::vector<std::pair<ActionT *, SlotBindingT *>> uses;
      for (const auto &action : listOf(stage).actions)
        for (const auto &binding : action->bindings)
          if (stage.slot_classes[binding->slot_class]->count > 1)
            uses.push_back({action.get(), binding.get()});
      if (uses.empty())
        break;
      auto [action, binding] = pick(uses);
      uint32_t count = stage.slot_classes[binding->slot_class]->count;
      binding->index = static_cast<uint32_t>(
          (binding->index + 1 + below(count - 1)) % count);
      return actionName(stage, *action) + " uses slot " +
             std::to_string(binding->index) + " of " +
             stage.slot_classes[binding->slot_class]->name;
    }
    default:
      break;
    }
    std::vector<Site> work = sites([](const InstructionT &it) {
      return it.op != Opcode::record && it.op != Opcode::wait;
    });
    Site site = pick(work);
    std::vector<BufferT *> list = buffers(*site);
    BufferT *buffer = pick(list);
    if (!buffer->offset)
      buffer->offset = constantExpr(0);
    static constexpr int64_t kDeltas[] = {4, 256, -256, 1024, -4096, 32768};
    int64_t delta = kDeltas[below(std::size(kDeltas))];
    // States are rarely larger than their buffer: another state instead.
    if (buffer->region == Region::state && below(2)) {
      auto next = static_cast<uint32_t>((buffer->index + 1) %
                                        site.stage->states.size());
      buffer->index = next;
      return site.name() + " uses state " + site.stage->states[next]->name;
    }
    if (buffer->offset->base + delta < 0)
      delta = -delta;
    buffer->offset->base += delta;
    return site.name() + " a buffer by " + std::to_string(delta);
  }

  // --- Actions
  // ----------------------------------------------------------------

  std::string swapActions() {
    StagePlanT &stage = anyStage();
    auto &actions = listOf(stage).actions;
    if (actions.size() < 2)
      return "";
    size_t a = below(actions.size() - 1);
    size_t b = below(3) ? a + 1 : below(actions.size());
    if (a == b)
      b = a + 1;
    std::string what =
        actionName(stage, *actions[a]) + " and " + actions[b]->label;
    std::swap(actions[a], actions[b]);
    return what;
  }

  // --- Layers
  // -----------------------------------------------------------------

  std::string dropLayer() {
    std::set<std::string> names;
    StagePlanT &stage = anyStage();
    auto layerOf = [](const InstructionT &it) {
      size_t dot = it.layer.find('.');
      if (dot != std::string::npos && it.layer.compare(0, dot, "layers") == 0)
        dot = it.layer.find('.', dot + 1);
      return it.layer.substr(0, dot);
    };
    for (const auto &fragment : stage.fragments)
      for (const auto &it : fragment->instructions)
        if (it->op != Opcode::record && it->op != Opcode::wait &&
            it->layer.rfind("layers.", 0) == 0)
          names.insert(layerOf(*it));
    if (names.empty())
      return "";
    auto chosen = names.begin();
    std::advance(chosen, below(names.size()));
    std::string name = *chosen;
    size_t how = below(4);
    if (how == 3) { // another layer's weights instead
      std::string from = "model." + name + ".";
      std::string to = "model." + *names.begin() + ".";
      if (from == to)
        to = "model." + *names.rbegin() + ".";
      if (from == to)
        how = 0;
      else {
        auto find = [&](const std::string &state) {
          for (uint32_t i = 0; i < stage.states.size(); ++i)
            if (stage.states[i]->name == state)
              return i;
          return UINT32_MAX;
        };
        for (const auto &fragment : stage.fragments)
          if (fragment->name != "update")
            for (const auto &it : fragment->instructions)
              for (BufferT *buffer : buffers(*it)) {
                if (buffer->region != Region::state)
                  continue;
                std::string state = stage.states[buffer->index]->name;
                if (state.rfind(from, 0) != 0)
                  continue;
                uint32_t other = find(to + state.substr(from.size()));
                if (other != UINT32_MAX)
                  buffer->index = other;
              }
        return "stage " + std::to_string(stage.stage) + " " + name +
               " with the weights of " + to;
      }
    }
    // Its instructions of the forward, of the backwards, or all of them.
    for (const auto &fragment : stage.fragments) {
      bool forward = fragment->name.rfind("forward", 0) == 0;
      if ((how == 0 && !forward) || (how == 1 && forward))
        continue;
      std::erase_if(fragment->instructions, [&](const auto &it) {
        return it->op != Opcode::record && it->op != Opcode::wait &&
               layerOf(*it) == name;
      });
    }
    return "stage " + std::to_string(stage.stage) + " " + name +
           (how == 0   ? " of the forward"
            : how == 1 ? " of the backward"
                       : " everywhere");
  }

  // --- Numbers
  // ----------------------------------------------------------------

  std::string changeScale() {
    bool args = below(3) == 0;
    std::vector<Site> found = sites([&](const InstructionT &it) {
      return it.op == Opcode::launch &&
             (args ? !it.args.empty() : !it.floats.empty());
    });
    // The scale of the loss as often as all else.
    std::vector<Site> loss = sites([](const InstructionT &it) {
      return it.op == Opcode::launch && it.kernel == Kernel::cross_entropy_grad;
    });
    Site site = !loss.empty() && !args && below(2) ? pick(loss) : pick(found);
    if (!args) {
      double &number = pick(site->floats);
      double old = number;
      static constexpr double kFactors[] = {2, 0.5, 4, 1.0009765625};
      number *= kFactors[below(std::size(kFactors))];
      if (number == old)
        number = 0.25;
      return site.name() + " " + std::to_string(old) + " to " +
             std::to_string(number);
    }
    std::unique_ptr<ExprT> &arg = pick(site->args);
    if (!arg)
      arg = constantExpr(0);
    int64_t old = arg->base;
    if (!arg->terms.empty() && below(2))
      arg->terms.clear();
    else if (!arg->cases.empty() && below(2))
      arg->cases.clear();
    else
      arg->base = old == 0 ? 1 : old == 1 ? 0 : old / 2;
    return site.name() + " an argument of " + std::to_string(old) + " to " +
           std::to_string(arg->base) + " or elsewhere";
  }

  Stages &stages_;
  std::mt19937_64 &random_;
};

} // namespace

std::string mutation::mutate(Stages &stages, Kind kind,
                             std::mt19937_64 &random) {
  return Mutator(stages, random).run(kind);
}
