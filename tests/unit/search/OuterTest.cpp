//===- OuterTest.cpp - the search against the evaluation of everything ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Outer.h"

#include "frontends/spec/Load.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace reckon;
using namespace reckon::search;

namespace {

constexpr const char *kModel = R"(
model: {name: m, architecture: llama, vocab_size: 1024, hidden_size: 512,
        intermediate_size: 1536, num_hidden_layers: 12,
        num_attention_heads: 16, num_key_value_heads: 8}
cluster: {accelerator: h100-sxm, nodes: 4, gpus_per_node: 8}
training: {sequence_length: 4096, global_batch_size: 64}
)";

Spec load(std::vector<std::string> sets = {}) {
  FakeFileSystem files;
  files.files["spec.yaml"] = kModel;
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec({"spec.yaml"}, sets, errors, files);
  if (!spec) {
    ADD_FAILURE() << spec.error().message;
    std::abort();
  }
  return *spec;
}

/// Costs that have nothing to do with machines: sums of terms drawn from a
/// seed, one for every value of every key, so that the optimum is anywhere.
/// The bounds leave the terms of open keys out.
class RandomCost : public CostModel {
public:
  explicit RandomCost(uint64_t seed) : seed_(seed) {}

  double step(const model::Choice &c) override {
    ++steps;
    return outerTime(c) + term(20, c.v) + term(21, c.zero) +
           term(22, static_cast<int64_t>(c.recompute)) +
           term(23, static_cast<int64_t>(c.schedule)) +
           term(24, c.sequenceParallel) +
           term(25, static_cast<int64_t>(c.contextMethod));
  }
  uint64_t memory(const model::Choice &c, int64_t rank) override {
    return outerBytes(c) + bytes(20, c.v) + bytes(21, c.zero) +
           bytes(22, static_cast<int64_t>(c.recompute)) +
           bytes(23, static_cast<int64_t>(c.schedule)) + bytes(30, rank);
  }
  Peak peak(const model::Choice &c) override {
    Peak peak;
    for (int64_t rank = 0; rank < c.pp; ++rank)
      if (memory(c, rank) > peak.bytes)
        peak = {memory(c, rank), rank};
    return peak;
  }
  double bubble(const model::Choice &c) override {
    return static_cast<double>(c.pp - 1) /
           static_cast<double>(c.v * c.numMicroBatches);
  }
  uint64_t hostBytes(const model::Choice &c) override {
    return bytes(40, c.tp);
  }
  std::string forbids(const model::Choice &c) override {
    return c.zero == 3 && c.tp > 4 ? "no" : "";
  }
  /// Failures cost some choices more than others, and end some.
  double wallStep(const model::Choice &c, double step) override {
    if (c.zero == 1 && c.pp > 2)
      return HUGE_VAL;
    return step * (1.01 + 0.3 * term(26, c.zero) + 0.3 * term(27, c.pp));
  }
  double wallStepBound(double step) override { return step * 1.01; }
  double stepBound(const model::Choice &c) override { return outerTime(c); }
  double wayBound(const model::Choice &c) override {
    return outerTime(c) + term(20, c.v) +
           term(23, static_cast<int64_t>(c.schedule));
  }
  double assignmentBound(const model::Choice &c) override {
    return outerTime(c);
  }
  uint64_t memoryBound(const model::Choice &c) override {
    return outerBytes(c);
  }

  int64_t steps = 0;

private:
  uint64_t draw(int key, int64_t value) const {
    // splitmix64
    uint64_t x = seed_ * 1000003 + static_cast<uint64_t>(key) * 7919 +
                 static_cast<uint64_t>(value) * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (x ^ (x >> 31)) % 1000;
  }
  double term(int key, int64_t value) const {
    return 1e-3 * static_cast<double>(draw(key, value));
  }
  uint64_t bytes(int key, int64_t value) const {
    return draw(100 + key, value) << 20;
  }
  double outerTime(const model::Choice &c) const {
    return term(1, c.tp) + term(2, c.cp) + term(3, c.pp) +
           term(4, c.microBatch) + term(5, c.tp * 64 + c.pp);
  }
  uint64_t outerBytes(const model::Choice &c) const {
    return bytes(1, c.tp) + bytes(2, c.cp) + bytes(3, c.pp) +
           bytes(4, c.microBatch);
  }

  uint64_t seed_;
};

/// Plain evaluation of everything, without nodes, bounds or an order.
struct BruteForce {
  std::vector<Ranked> feasible;
  int64_t space = 0;

  BruteForce(const Space &space, RandomCost &cost, const Bounds &bounds,
             Objective objective) {
    SpaceVisitor visitor;
    auto rejected = [&](int64_t count, const Misfit &) {
      this->space += count;
    };
    visitor.rejected = rejected;
    visitor.node = [&](const model::Choice &node, int64_t) {
      space.leaves(
          node,
          [&](model::Choice &leaf) {
            ++this->space;
            Ranked ranked{.choice = leaf,
                          .seconds = cost.step(leaf),
                          .wall = cost.wallStep(leaf, cost.step(leaf)),
                          .peak = cost.peak(leaf),
                          .bubble = cost.bubble(leaf),
                          .hostBytes = cost.hostBytes(leaf)};
            rank(ranked, objective);
            if (cost.forbids(leaf).empty() &&
                ranked.peak.bytes <= bounds.memoryBytes &&
                ranked.bubble <= bounds.maxBubble &&
                (!bounds.hostBytes || ranked.hostBytes <= *bounds.hostBytes))
              feasible.push_back(ranked);
          },
          rejected);
    };
    space.nodes(visitor);
    std::sort(
        feasible.begin(), feasible.end(),
        [](const Ranked &a, const Ranked &b) { return a.key() < b.key(); });
  }
};

TEST(Outer, EqualsBruteForce) {
  Spec spec = liftRestrictions(load());
  Space space(spec);
  int64_t pruned = 0, found = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed)
    for (Objective objective :
         {Objective::StepTime, Objective::TimeToTrain, Objective::Memory}) {
      RandomCost cost(seed);
      Bounds bounds{.memoryBytes = (2000 + 400 * (seed % 7)) << 20,
                    .maxBubble = 0.1 * static_cast<double>(seed % 5),
                    .hostBytes = {}};
      if (seed % 3 == 0)
        bounds.hostBytes = 500ull << 20;
      BruteForce all(space, cost, bounds, objective);
      ASSERT_GT(all.space, kWholeSpace) << "nothing would be pruned";
      OuterResult result =
          searchOuter(space, cost, bounds,
                      {.top = 7, .distinct = false, .objective = objective});
      ASSERT_EQ(result.best.size(), std::min<size_t>(7, all.feasible.size()));
      for (size_t i = 0; i < result.best.size(); ++i)
        EXPECT_EQ(result.best[i].key(), all.feasible[i].key()) << seed;
      const Counts &c = result.counts;
      EXPECT_EQ(c.space, all.space);
      EXPECT_EQ(c.divisibility + c.representation + c.compilable + c.limits +
                    c.feasible + c.bound,
                c.space);
      pruned += c.bound;
      found += !result.best.empty();
    }
  EXPECT_GT(pruned, 0);
  EXPECT_GT(found, 18);
}

// Where nothing makes progress the step decides, and nothing is lost to the
// bound.
TEST(Outer, WithoutProgressTheStepDecides) {
  struct Hopeless final : RandomCost {
    using RandomCost::RandomCost;
    double wallStep(const model::Choice &, double) override { return HUGE_VAL; }
    double wallStepBound(double) override { return HUGE_VAL; }
  };
  Spec spec = liftRestrictions(load());
  Space space(spec);
  Hopeless cost(4);
  Bounds bounds{.memoryBytes = 4000ull << 20, .maxBubble = 1, .hostBytes = {}};
  OuterResult steps = searchOuter(space, cost, bounds, {.top = 5});
  OuterResult train = searchOuter(
      space, cost, bounds, {.top = 5, .objective = Objective::TimeToTrain});
  ASSERT_EQ(steps.best.size(), train.best.size());
  for (size_t i = 0; i < steps.best.size(); ++i)
    EXPECT_EQ(steps.best[i].choice, train.best[i].choice);
}

TEST(Outer, DistinctKeepsTheBestOfEveryGroup) {
  Spec spec = liftRestrictions(load());
  Space space(spec);
  RandomCost cost(5);
  Bounds bounds{.memoryBytes = 4000ull << 20, .maxBubble = 1, .hostBytes = {}};
  BruteForce all(space, cost, bounds, Objective::StepTime);
  auto group = [](const model::Choice &c) {
    return std::tuple(c.tp, c.cp, c.pp, c.v, c.ep, c.etp, c.microBatch);
  };
  std::vector<Ranked> expected;
  for (const Ranked &ranked : all.feasible)
    if (expected.size() < 9 &&
        std::none_of(expected.begin(), expected.end(), [&](const Ranked &r) {
          return group(r.choice) == group(ranked.choice);
        }))
      expected.push_back(ranked);
  OuterResult result = searchOuter(space, cost, bounds, {.top = 9});
  ASSERT_EQ(result.best.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(result.best[i].key(), expected[i].key());
}

TEST(Outer, CountsEverythingWithoutPruning) {
  Spec spec = liftRestrictions(load());
  Space space(spec);
  RandomCost cost(3);
  Bounds bounds{
      .memoryBytes = 2500ull << 20, .maxBubble = 0.1, .hostBytes = {}};
  BruteForce all(space, cost, bounds, Objective::StepTime);
  OuterResult result =
      searchOuter(space, cost, bounds, {.top = 1, .prune = false});
  EXPECT_EQ(result.counts.feasible, static_cast<int64_t>(all.feasible.size()));
  EXPECT_EQ(result.counts.bound, 0);
}

TEST(Outer, AnyTellsWhetherSomethingFits) {
  Spec spec = liftRestrictions(load());
  Space space(spec);
  int64_t fits = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    RandomCost cost(seed);
    Bounds bounds{.memoryBytes = (900 + 400 * (seed % 6)) << 20,
                  .maxBubble = 0.1 * static_cast<double>(seed % 5),
                  .hostBytes = {}};
    BruteForce all(space, cost, bounds, Objective::StepTime);
    OuterResult result = searchOuter(space, cost, bounds, {.any = true});
    EXPECT_EQ(result.best.empty(), all.feasible.empty()) << seed;
    EXPECT_EQ(result.counts.feasible, all.feasible.empty() ? 0 : 1);
    fits += !all.feasible.empty();
  }
  EXPECT_GT(fits, 0);
  EXPECT_LT(fits, 12);
}

TEST(Masks, MinimalSetsAreThoseOfAllCombinations) {
  // tp, zero and the micro-batch are fixed; max_bubble and memory are tight.
  Spec spec =
      load({"parallelism.tensor_parallel=8", "parallelism.zero_stage=0",
            "parallelism.micro_batch_size=4", "parallelism.recompute=none"});
  spec.constraints.maxBubble.value = 0.01;
  Space lifted(liftRestrictions(spec));
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    RandomCost cost(seed);
    spec.constraints.memoryLimitGib.value =
        1.2 + 0.2 * static_cast<double>(seed);
    Bounds bounds = Bounds::of(spec);
    // By definition: the mask of every combination, then the minimal ones.
    std::map<LimitMask, double> fastest;
    SpaceVisitor visitor;
    visitor.rejected = [](int64_t, const Misfit &) {};
    visitor.node = [&](const model::Choice &node, int64_t) {
      lifted.leaves(
          node,
          [&](model::Choice &leaf) {
            LimitMask mask = restrictionsBroken(spec, leaf);
            if (!cost.forbids(leaf).empty())
              mask |= bit(Limit::Representation);
            if (cost.bubble(leaf) > bounds.maxBubble)
              mask |= bit(Limit::Bubble);
            if (cost.peak(leaf).bytes > bounds.memoryBytes)
              mask |= bit(Limit::Memory);
            auto [at, added] = fastest.try_emplace(mask, 1e9);
            at->second = std::min(at->second, cost.step(leaf));
          },
          [](int64_t, const Misfit &) {});
    };
    lifted.nodes(visitor);
    std::vector<LimitMask> expected;
    for (const auto &[mask, seconds] : fastest)
      if (std::none_of(fastest.begin(), fastest.end(), [m = mask](auto &other) {
            return other.first != m && (other.first & m) == other.first;
          }))
        expected.push_back(mask);
    MaskTable table = violationMasks(spec, cost);
    EXPECT_EQ(table.minimal(), expected) << seed;
    for (LimitMask mask : expected)
      EXPECT_EQ(table.entries.at(mask).fastest.stepSeconds, fastest.at(mask));
    int64_t counted = table.indivisible + table.dominated;
    for (const auto &[mask, entry] : table.entries)
      counted += entry.count;
    EXPECT_EQ(counted, table.space);
  }
}

} // namespace
