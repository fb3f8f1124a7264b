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
// A message or collective also has a start, where it comes to the head of its
// stream and communicator. On a GPU operations of all communicators start in
// issue order (NCCL_LAUNCH_ORDER_IMPLICIT), so each start waits for the one
// before on the rank: an operation that is not ready holds back the starts, not
// the ends, of all that the rank issues later.
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

/// Fewer than a CUDA stream holds before it blocks the host (1024), and than
/// exec::Interpreter's kRunAhead; who needs less survives more.
constexpr size_t kRunAhead = 1000;
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

  /// Waits, messages and collectives, by rank; starts are a part of them.
  size_t size() const { return nodes_.size() - starts_; }

private:
  struct Node {
    uint32_t stage;
    uint32_t firstWait;
    Item item;
    bool start = false; ///< of an operation, which has another node
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
    uint32_t started = kNone; ///< the newest start
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
      waits.push_back(state.last[stream]);
      if (communicator)
        waits.push_back(*communicator);
      waits.insert(waits.end(), state.gates.begin(), state.gates.end());
      if (communicator) {
        waits.push_back(state.started);
        state.started = addNode(state, item, waits, /*start=*/true);
        waits = {state.started};
      }
      uint32_t node = addNode(state, item, waits, /*start=*/false);
      state.last[stream] = node;
      if (communicator)
        *communicator = node;
      if (!meeting.empty())
        join(meeting + " #" + std::to_string(state.sequence[meeting]++), node);
    }
    state.history[stream].push_back(state.last[stream]);
  }

  /// Waits that are kNone are left out.
  uint32_t addNode(const StageState &state, const Item &item,
                   const std::vector<uint32_t> &waits, bool start) {
    auto node = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({state.stage.number(),
                      static_cast<uint32_t>(waits_.size()), item, start});
    parents_.push_back(node);
    starts_ += start;
    std::copy_if(waits.begin(), waits.end(), std::back_inserter(waits_),
                 [](uint32_t wait) { return wait != kNone; });
    return node;
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

  std::string name(uint32_t node, bool start) const {
    const Node &entry = nodes_[node];
    std::string text = describe(program_.stages[entry.stage], entry.item.place);
    if (entry.item.kind == Item::Wait && entry.item.place.instruction < 0)
      text += " (its wait for event " + std::to_string(entry.item.event) + ")";
    return (start ? "the start of " : "") + text +
           (entry.item.step ? " of the second step" : "");
  }

  /// A wait that never ends.
  struct Hop {
    uint32_t from, to;
  };

  /// Follows open waits until one comes again.
  std::string cycle(uint32_t start, const std::vector<bool> &ended) const {
    std::vector<std::vector<uint32_t>> members(nodes_.size());
    for (uint32_t node = 0; node < nodes_.size(); ++node)
      members[root(node)].push_back(node);
    std::vector<uint32_t> path;
    std::vector<Hop> hops;
    uint32_t at = start;
    auto seen = path.end();
    while ((seen = std::find(path.begin(), path.end(), at)) == path.end()) {
      path.push_back(at);
      hops.push_back(openWait(members[at], ended));
      at = root(hops.back().to);
    }
    hops.erase(hops.begin(), hops.begin() + (seen - path.begin()));
    return describeCycle(hops);
  }

  /// An open wait of one of the parties of an operation.
  Hop openWait(const std::vector<uint32_t> &parties,
               const std::vector<bool> &ended) const {
    for (uint32_t node : parties)
      for (uint32_t i = nodes_[node].firstWait; i < lastWait(node); ++i)
        if (!ended[root(waits_[i])])
          return {node, waits_[i]};
    RECKON_CHECK(false); // what waits for nothing has ended
  }

  std::string describeCycle(const std::vector<Hop> &hops) const {
    auto isOwnStart = [&](const Hop &hop) {
      return nodes_[hop.to].start && hop.to + 1 == hop.from;
    };
    std::string text;
    for (size_t i = 0; i < hops.size(); ++i) {
      const Hop &hop = hops[i], &before = hops[(i ? i : hops.size()) - 1];
      if (isOwnStart(hop)) // the next hop speaks for the operation
        continue;
      bool start = nodes_[hop.from].start && !isOwnStart(before);
      text += (text.empty() ? "" : "; ") + name(hop.from, start) +
              " waits for " + name(hop.to, nodes_[hop.to].start);
      uint32_t party = hops[(i + 1) % hops.size()].from;
      if (party != hop.to)
        text += ", which ends with " + name(party, false);
    }
    return text;
  }

  const Program &program_;
  std::vector<Node> nodes_;
  size_t starts_ = 0;
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
