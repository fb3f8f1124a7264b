//===- EventGraphTest.cpp - dropping implied waits ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/Hazards.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace reckon::planir;

namespace {

constexpr unsigned kSteps = 3;

/// What is done before each piece of work starts, over three steps: sets of
/// positions step * size + node. Written for clarity, not for speed.
std::vector<std::set<unsigned>> ordered(const EventGraph &graph) {
  unsigned size = graph.streams.size();
  unsigned steps = graph.repeats ? kSteps : 1;
  std::vector<std::set<unsigned>> before(size * steps);
  for (unsigned position = 0; position < size * steps; ++position) {
    unsigned node = position % size, step = position / size;
    auto add = [&](unsigned earlier) {
      before[position].insert(earlier);
      before[position].insert(before[earlier].begin(), before[earlier].end());
    };
    for (unsigned earlier = 0; earlier < position; ++earlier)
      if (graph.streams[earlier % size] == graph.streams[node])
        add(earlier);
    for (unsigned source : graph.waits[node]) {
      if (source < node)
        add(step * size + source);
      else if (step > 0)
        add((step - 1) * size + source);
    }
  }
  return before;
}

size_t countWaits(const EventGraph &graph) {
  size_t count = 0;
  for (const auto &sources : graph.waits)
    count += sources.size();
  return count;
}

class EventGraphTest : public testing::Test {
protected:
  /// Random work on a few streams with random waits, each earlier in the list
  /// or, in a list that repeats, from the step before.
  EventGraph random(bool repeats) {
    EventGraph graph;
    graph.repeats = repeats;
    unsigned size = 4 + engine() % 12;
    for (unsigned node = 0; node < size; ++node) {
      graph.streams.push_back(mlir::StringAttr::get(
          &context, llvm::Twine("s") + llvm::Twine(engine() % 3)));
      graph.waits.emplace_back();
    }
    for (unsigned node = 0; node < size; ++node) {
      std::set<unsigned> sources;
      for (unsigned k = 0; k < engine() % 4; ++k)
        sources.insert(engine() % size);
      for (unsigned source : sources)
        if (graph.streams[source] != graph.streams[node] &&
            (repeats || source < node))
          graph.waits[node].push_back(source);
    }
    return graph;
  }

  mlir::MLIRContext context;
  std::mt19937 engine{1234};
};

TEST_F(EventGraphTest, KeepsTheOrderAndIsMinimal) {
  size_t dropped = 0;
  for (int round = 0; round < 400; ++round) {
    EventGraph graph = random(round % 2 == 1);
    auto expected = ordered(graph);
    size_t waits = countWaits(graph);
    unsigned reported = graph.reduce();
    EXPECT_EQ(waits - countWaits(graph), reported);
    ASSERT_EQ(ordered(graph), expected) << "round " << round;
    dropped += reported;
    // Taking any other wait away loses order.
    for (unsigned node = 0; node < graph.waits.size(); ++node)
      for (size_t k = 0; k < graph.waits[node].size(); ++k) {
        EventGraph less = graph;
        less.waits[node].erase(less.waits[node].begin() + k);
        ASSERT_NE(ordered(less), expected)
            << "round " << round << ", node " << node;
      }
  }
  EXPECT_GT(dropped, 0u);
}

TEST_F(EventGraphTest, DropsWhatAChainOfOtherStreamsImplies) {
  auto stream = [&](const char *name) {
    return mlir::StringAttr::get(&context, name);
  };
  // a0 -> b1 -> c2, and c2 also waits for a0.
  EventGraph graph;
  graph.streams = {stream("a"), stream("b"), stream("c")};
  graph.waits = {{}, {0}, {0, 1}};
  EXPECT_EQ(graph.reduce(), 1u);
  EXPECT_EQ(graph.waits[2], std::vector<unsigned>{1});
}

TEST_F(EventGraphTest, KeepsTheWaitForTheStepBefore) {
  auto stream = [&](const char *name) {
    return mlir::StringAttr::get(&context, name);
  };
  // A load waits for the last step's run, the run for its load.
  EventGraph graph;
  graph.repeats = true;
  graph.streams = {stream("load"), stream("compute")};
  graph.waits = {{1}, {0}};
  EXPECT_EQ(graph.reduce(), 0u);
}

} // namespace
