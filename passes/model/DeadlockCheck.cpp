//===- DeadlockCheck.cpp - rendezvous proof over all stages ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Under rendezvous semantics an action ends exactly when everything it waits
// for has ended, and a send and its receive end together. So the lists can
// finish if and only if the graph of waits, with each send and its receive as
// one node, has no cycle; no timing enters.
//
//===----------------------------------------------------------------------===//
#include "passes/model/ActionList.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace reckon;
using namespace reckon::model;

namespace {

struct Wait {
  int node;
  const char *why;
};

class WaitGraph {
public:
  explicit WaitGraph(std::span<const StageActions> stages) : stages_(stages) {}

  Status build() {
    // Two steps, since a step's last uses of a slot meet the next one's first.
    for (int step = 0; step < 2; ++step) {
      std::vector<int> updates;
      for (const StageActions &stage : stages_)
        for (const StageAction &action : stage.actions) {
          int node = addNode(stage.stage, step, action);
          RECKON_TRY(bindSlots(stage.stage, node, action));
          if (action.kind == ActionKind::Update)
            updates.push_back(node);
        }
      // The gradient norm is reduced over all ranks: all updates meet.
      for (size_t i = 1; i < updates.size(); ++i)
        join(updates[0], updates[i]);
    }
    return matchChannels();
  }

  Status checkAcyclic() const {
    // By union representative: what must still end before it.
    std::vector<std::vector<std::pair<int, int>>> waits(nodes_.size());
    std::vector<std::vector<int>> dependents(nodes_.size());
    std::vector<int> open(nodes_.size(), 0), ready;
    size_t groups = 0, done = 0;
    for (int node = 0; node < size(); ++node)
      for (size_t w = 0; w < nodes_[node].waits.size(); ++w) {
        waits[root(node)].push_back({node, static_cast<int>(w)});
        dependents[root(nodes_[node].waits[w].node)].push_back(root(node));
        ++open[root(node)];
      }
    for (int node = 0; node < size(); ++node) {
      if (root(node) != node)
        continue;
      ++groups;
      if (open[node] == 0)
        ready.push_back(node);
    }
    std::vector<bool> ended(nodes_.size(), false);
    while (!ready.empty()) {
      int node = ready.back();
      ready.pop_back();
      ended[node] = true;
      ++done;
      for (int dependent : dependents[node])
        if (--open[dependent] == 0)
          ready.push_back(dependent);
    }
    if (done == groups)
      return Status::success();
    return makeError(ExitCode::Internal,
                     "the action lists deadlock: " + cycle(waits, ended));
  }

private:
  struct Node {
    std::string name;
    std::vector<Wait> waits;
    int parent;
  };

  struct Slot {
    bool held = false;
    std::vector<int> users; ///< since the last acquire, with it
  };

  int size() const { return static_cast<int>(nodes_.size()); }

  int root(int node) const {
    while (nodes_[node].parent != node)
      node = nodes_[node].parent;
    return node;
  }

  void join(int a, int b) { nodes_[root(b)].parent = root(a); }

  int addNode(int64_t stage, int step, const StageAction &action) {
    int node = size();
    std::string name = action.label;
    if (action.channel < 0 && action.kind != ActionKind::Run)
      name = "stage " + std::to_string(stage) + " " + name;
    if (step)
      name += " of the next step";
    nodes_.push_back({name, {}, node});

    auto [previous, isFirst] =
        streamTail_.try_emplace({stage, action.stream}, node);
    if (!isFirst) {
      wait(node, previous->second, "is issued after");
      previous->second = node;
    }
    if (action.kind == ActionKind::Send)
      sends_[action.channel].push_back({node, action.microBatch});
    if (action.kind == ActionKind::Recv)
      receives_[action.channel].push_back({node, action.microBatch});
    return node;
  }

  /// Adds the waits that come from slots. In list order a slot must be taken
  /// when it is free and used only while it is held.
  Status bindSlots(int64_t stage, int node, const StageAction &action) {
    for (const SlotUse &use : action.uses) {
      Slot &slot = slots_[{stage, use.cls, use.index}];
      if (slot.held == use.acquire)
        return makeError(
            ExitCode::Internal,
            nodes_[node].name + " of stage " + std::to_string(stage) +
                (use.acquire ? " takes " : " uses ") + slotClassName(use.cls) +
                " slot " + std::to_string(use.index) + ", which is " +
                (use.acquire ? "still held" : "not held"));
      if (use.acquire) {
        for (int user : slot.users)
          wait(node, user, "needs the slot of");
        slot.users.clear();
      } else {
        wait(node, slot.users.front(), "needs the result of");
      }
      slot.users.push_back(node);
      slot.held = !use.release;
    }
    return Status::success();
  }

  void wait(int node, int on, const char *why) {
    nodes_[node].waits.push_back({on, why});
  }

  Status matchChannels() {
    std::map<int64_t, bool> channels;
    for (const auto *side : {&sends_, &receives_})
      for (const auto &entry : *side)
        channels[entry.first] = true;
    for (const auto &[channel, unused] : channels) {
      const auto &sent = sends_[channel], &received = receives_[channel];
      if (sent.size() != received.size())
        return makeError(ExitCode::Internal,
                         "channel " + std::to_string(channel) + " has " +
                             std::to_string(sent.size()) + " sends but " +
                             std::to_string(received.size()) + " receives");
      for (size_t i = 0; i < sent.size(); ++i) {
        if (sent[i].second != received[i].second)
          return makeError(ExitCode::Internal,
                           "channel " + std::to_string(channel) + ": message " +
                               std::to_string(i) + " is " +
                               nodes_[sent[i].first].name + " but " +
                               nodes_[received[i].first].name + " is received");
        join(sent[i].first, received[i].first);
      }
    }
    return Status::success();
  }

  /// Follows open waits from one that cannot end until one comes again.
  std::string cycle(const std::vector<std::vector<std::pair<int, int>>> &waits,
                    const std::vector<bool> &ended) const {
    int at = 0;
    while (root(at) != at || ended[at])
      ++at;
    std::vector<int> path;
    std::vector<std::string> steps;
    auto seen = path.end();
    while ((seen = std::find(path.begin(), path.end(), at)) == path.end()) {
      path.push_back(at);
      for (auto [node, index] : waits[at]) {
        const Wait &wait = nodes_[node].waits[index];
        if (ended[root(wait.node)])
          continue;
        steps.push_back(nodes_[node].name + " " + wait.why + " " +
                        nodes_[wait.node].name);
        at = root(wait.node);
        break;
      }
    }
    std::string text;
    for (size_t i = seen - path.begin(); i < steps.size(); ++i)
      text += (text.empty() ? "" : ", ") + steps[i];
    return text;
  }

  std::span<const StageActions> stages_;
  std::vector<Node> nodes_;
  std::map<std::pair<int64_t, int>, int> streamTail_;
  std::map<std::tuple<int64_t, SlotClassId, int64_t>, Slot> slots_;
  std::map<int64_t, std::vector<std::pair<int, int64_t>>> sends_, receives_;
};

} // namespace

Status model::checkDeadlockFree(std::span<const StageActions> stages) {
  WaitGraph graph(stages);
  RECKON_TRY(graph.build());
  return graph.checkAcyclic();
}
