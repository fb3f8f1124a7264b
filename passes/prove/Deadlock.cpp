//===- Deadlock.cpp - every stream gets to its end ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Under rendezvous semantics an operation ends exactly when everything it waits
// for has ended, and all parties of a message or a collective end together. So
// a plan finishes if and only if the graph of these waits, with each message or
// collective as one node, has no cycle; no timing enters. One rank a stage is
// enough: a cycle among all ranks maps to one among these, because the members
// of a stage run the same program and groups inside a stage are symmetric.
//
// Waits are: the one before on the same stream; the record that a wait refers
// to; the one before in the same communicator (NCCL works them off in issue
// order); and, where a stream has more items than the host issues ahead, the
// item that must end before the host goes on.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Checks.h"
#include "passes/prove/Unroll.h"

#include <algorithm>
#include <map>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

namespace {

/// exec::Interpreter's kRunAhead.
constexpr size_t kRunAhead = 4096;
constexpr uint32_t kNone = UINT32_MAX;

class WaitGraph {
public:
  explicit WaitGraph(const Program &program) : program_(program) {}

  Status build() {
    for (const Stage &stage : program_.stages) {
      StageState state(stage);
      RECKON_TRY(unroll(stage, 2, [&](const Item &item) {
        add(state, item);
        return Status::success();
      }));
    }
    return Status::success();
  }

  Status checkAcyclic() const {
    std::vector<uint32_t> open(nodes_.size(), 0), ready;
    std::vector<std::pair<uint32_t, uint32_t>> edges; // awaited, waiting
    for (uint32_t node = 0; node < nodes_.size(); ++node)
      for (uint32_t i = nodes_[node].firstWait; i < lastWait(node); ++i) {
        edges.emplace_back(root(waits_[i]), root(node));
        ++open[root(node)];
      }
    std::sort(edges.begin(), edges.end());
    for (uint32_t node = 0; node < nodes_.size(); ++node)
      if (root(node) == node && open[node] == 0)
        ready.push_back(node);
    std::vector<bool> ended(nodes_.size(), false);
    while (!ready.empty()) {
      uint32_t node = ready.back();
      ready.pop_back();
      ended[node] = true;
      auto it = std::lower_bound(edges.begin(), edges.end(),
                                 std::make_pair(node, uint32_t(0)));
      for (; it != edges.end() && it->first == node; ++it)
        if (--open[it->second] == 0)
          ready.push_back(it->second);
    }
    for (uint32_t node = 0; node < nodes_.size(); ++node)
      if (root(node) == node && !ended[node])
        return refuse("the plan deadlocks: " + cycle(node, ended));
    return Status::success();
  }

  size_t size() const { return nodes_.size(); }

private:
  struct Node {
    uint32_t stage;
    uint32_t firstWait;
    Item item;
  };

  /// Where the walk over one stage's items is.
  struct StageState {
    explicit StageState(const Stage &stage)
        : stage(stage), last(stage.numStreams(), kNone),
          count(stage.numStreams(), 0), gates(stage.numStreams(), kNone),
          history(stage.numStreams()), recorded(stage.numEvents, kNone),
          groups(stage.plan->groups.size(), kNone),
          channels(stage.plan->channels.size(), kNone) {}

    const Stage &stage;
    std::vector<uint32_t> last;  ///< node by stream
    std::vector<size_t> count;   ///< items by stream
    std::vector<uint32_t> gates; ///< what the host waited for, by stream
    std::vector<std::vector<uint32_t>> history; ///< last node at each item
    std::vector<uint32_t> recorded; ///< last node before the newest record
    std::vector<uint32_t> groups, channels;
    std::map<std::string, size_t> sequence;
    unsigned step = 0;
  };

  /// Adds a node where something may block; all else only moves on.
  void add(StageState &state, const Item &item) {
    uint32_t stream = item.stream;
    if (state.step != item.step) { // the host waits for the end of a step
      state.step = item.step;
      std::fill(state.count.begin(), state.count.end(), 0);
      for (auto &history : state.history)
        history.clear();
      std::fill(state.gates.begin(), state.gates.end(), kNone);
    }
    size_t number = state.count[stream]++;
    if (number >= kRunAhead)
      state.gates[stream] = state.history[stream][number - kRunAhead];

    std::vector<uint32_t> waits;
    std::string meeting;
    uint32_t *communicator = nullptr;
    bool blocks = false;
    if (item.kind == Item::Record) {
      state.recorded[item.event] = state.last[stream];
    } else if (item.kind == Item::Wait) {
      uint32_t record = state.recorded[item.event];
      if (record != kNone && record != state.last[stream]) {
        waits.push_back(record);
        blocks = true;
      }
    } else {
      blocks = meets(state, item, meeting, communicator);
    }
    if (blocks) {
      if (state.last[stream] != kNone)
        waits.push_back(state.last[stream]);
      if (communicator && *communicator != kNone)
        waits.push_back(*communicator);
      for (uint32_t gate : state.gates)
        if (gate != kNone)
          waits.push_back(gate);
      auto node = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back(
          {state.stage.number(), static_cast<uint32_t>(waits_.size()), item});
      parents_.push_back(node);
      waits_.insert(waits_.end(), waits.begin(), waits.end());
      state.last[stream] = node;
      if (communicator)
        *communicator = node;
      if (!meeting.empty())
        join(meeting + " #" + std::to_string(state.sequence[meeting]++), node);
    }
    state.history[stream].push_back(state.last[stream]);
  }

  /// Whether the item has other parties, and the name of where they meet.
  bool meets(StageState &state, const Item &item, std::string &meeting,
             uint32_t *&communicator) {
    const Stage &stage = state.stage;
    if (const PreparedInstruction *instruction =
            stage.instruction(item.place.action, item.place.instruction)) {
      if (!instruction->axes)
        return false;
      uint32_t number = instruction->source->group;
      communicator = &state.groups[number];
      const GroupT &group = *stage.plan->groups[number];
      if (std::find(group.axes.begin(), group.axes.end(), Axis::pp) !=
          group.axes.end())
        meeting = "group " + group.name;
      return true;
    }
    const ActionT &action = *stage.list->actions[item.place.action];
    if (action.kind == ActionKind::load)
      return false;
    communicator = &state.channels[action.channel];
    meeting =
        "channel " + std::to_string(stage.plan->channels[action.channel]->id);
    return true;
  }

  void join(const std::string &meeting, uint32_t node) {
    auto [it, first] = meetings_.try_emplace(meeting, node);
    if (!first)
      parents_[root(node)] = root(it->second);
  }

  uint32_t root(uint32_t node) const {
    while (parents_[node] != node)
      node = parents_[node];
    return node;
  }

  uint32_t lastWait(uint32_t node) const {
    return node + 1 < nodes_.size() ? nodes_[node + 1].firstWait
                                    : static_cast<uint32_t>(waits_.size());
  }

  std::string name(uint32_t node) const {
    const Node &entry = nodes_[node];
    std::string text = describe(program_.stages[entry.stage], entry.item.place);
    if (entry.item.kind == Item::Wait && entry.item.place.instruction < 0)
      text += " (its wait for event " + std::to_string(entry.item.event) + ")";
    return text + (entry.item.step ? " of the second step" : "");
  }

  /// Follows open waits until one comes again.
  std::string cycle(uint32_t start, const std::vector<bool> &ended) const {
    std::vector<std::vector<uint32_t>> members(nodes_.size());
    for (uint32_t node = 0; node < nodes_.size(); ++node)
      members[root(node)].push_back(node);
    std::vector<uint32_t> path;
    std::vector<std::string> steps;
    uint32_t at = start;
    auto seen = path.end();
    while ((seen = std::find(path.begin(), path.end(), at)) == path.end()) {
      path.push_back(at);
      uint32_t next = kNone;
      for (uint32_t node : members[at])
        for (uint32_t i = nodes_[node].firstWait;
             i < lastWait(node) && next == kNone; ++i)
          if (!ended[root(waits_[i])]) {
            next = root(waits_[i]);
            steps.push_back(name(node) + " waits for " + name(waits_[i]));
          }
      if (next == kNone)
        break;
      at = next;
    }
    std::string text;
    for (size_t i = seen - path.begin(); i < steps.size(); ++i)
      text += (text.empty() ? "" : "; ") + steps[i];
    return text;
  }

  const Program &program_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> waits_;
  std::vector<uint32_t> parents_;
  std::map<std::string, uint32_t> meetings_;
};

} // namespace

Status prove::checkDeadlock(const Program &program, std::string &detail) {
  WaitGraph graph(program);
  RECKON_TRY(graph.build());
  RECKON_TRY(graph.checkAcyclic());
  detail = std::to_string(graph.size()) +
           " waits, messages and collectives of " +
           std::to_string(program.stages.size()) + " stages in 2 steps";
  return Status::success();
}
