//===- ObjectiveTest.cpp - what the search makes smallest -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Load.h"
#include "passes/goodput/Analysis.h"
#include "passes/search/Evaluate.h"
#include "passes/search/Goodput.h"
#include "passes/search/Space.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace reckon;
using namespace reckon::search;

namespace {

// A small step against much state and slow copies, failures every 11
// minutes: training stands still for a save, and longer with heavier stages.
// Schedules that go forth and back have embedding and head on one rank.
constexpr const char *kStalls = R"(
model: {name: m, architecture: llama, vocab_size: 128256, hidden_size: 2048,
        intermediate_size: 8192, num_hidden_layers: 16,
        num_attention_heads: 32, num_key_value_heads: 8}
cluster:
  accelerator: h100-sxm
  nodes: 2
  gpus_per_node: 8
  gpu_mtbf_hours: 3
  price_per_gpu_hour: 3
  resilience: {copy_bandwidth_gbs: 0.1}
training: {sequence_length: 2048, global_batch_size: 32, train_steps: 5000}
parallelism:
  pipeline_parallel: 4
  pipeline_schedule: [zbv, zb_h1, 1f1b]
constraints: {max_bubble: 10}
)";

Spec load(std::vector<std::string> sets = {}) {
  FakeFileSystem files;
  files.files["spec.yaml"] = kStalls;
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec({"spec.yaml"}, sets, errors, files);
  if (!spec) {
    ADD_FAILURE() << spec.error().message;
    std::abort();
  }
  return *spec;
}

double trainSeconds(const Spec &spec, const Candidate &candidate) {
  return goodput::trainingCost(goodput::makeInputs(spec, planFacts(candidate)))
      .wallSeconds.value_or(HUGE_VAL);
}

// Every combination by the whole arithmetic of `reckon goodput`, without keys
// or bounds.
TEST(Objective, TimeToTrainIsTheLeastOfAll) {
  Spec spec = load({"search.objective=time_to_train"});
  Evaluator evaluator(spec);
  Space space(spec);
  double least = HUGE_VAL, fastestStep = HUGE_VAL, ofFastest = 0;
  int64_t compared = 0;
  SpaceVisitor visitor;
  visitor.rejected = [](int64_t, const Misfit &) {};
  visitor.node = [&](const model::Choice &node, int64_t) {
    double nodeBound = evaluator.wallStepBound(evaluator.stepBound(node));
    space.leaves(
        node,
        [&](model::Choice &leaf) {
          double step = evaluator.step(leaf);
          Candidate candidate = evaluator.candidate(leaf);
          double seconds = trainSeconds(spec, candidate);
          // What the search asks is the same figure, and its bounds hold for
          // choices that break a limit too.
          double wall = evaluator.wallStep(leaf, step);
          ASSERT_NEAR(wall * 5000 / seconds, 1, 1e-12);
          ASSERT_LE(nodeBound, wall * (1 + 1e-12));
          ASSERT_LE(evaluator.wallStepBound(step), wall * (1 + 1e-12));
          ++compared;
          if (!evaluator.judge(leaf).fits() || !evaluator.forbids(leaf).empty())
            return;
          least = std::min(least, seconds);
          if (step < fastestStep) {
            fastestStep = step;
            ofFastest = seconds;
          }
        },
        [](int64_t, const Misfit &) {});
  };
  space.nodes(visitor);
  EXPECT_GT(compared, 1000);
  SearchOptions even{.top = 1, .refine = false};
  SearchResult result = search::search(spec, even);
  ASSERT_FALSE(result.candidates.empty());
  EXPECT_NEAR(trainSeconds(spec, result.candidates[0]) / least, 1, 1e-9);
  EXPECT_EQ(result.proof.bound, trainSeconds(spec, result.candidates[0]));
  // The fastest step is not the shortest training here.
  EXPECT_GT(ofFastest, least * 1.01);
  SearchResult byStep = search::search(load(), even);
  EXPECT_NEAR(byStep.candidates[0].time.step, fastestStep, 1e-9);
  EXPECT_EQ(byStep.candidates[0].choice.schedule, PipelineSchedule::ZbV);
  EXPECT_GT(result.candidates[0].time.step, fastestStep * 1.001);
  // Nor is it with layers assigned, where both are shorter.
  SearchResult assigned = search::search(spec, 1);
  EXPECT_LT(trainSeconds(spec, assigned.candidates[0]), least);
  EXPECT_LE(trainSeconds(spec, assigned.candidates[0]),
            trainSeconds(spec, search::search(load(), 1).candidates[0]));
}

TEST(Objective, CostIsDollarsOfTheSameChoice) {
  SearchResult time =
      search::search(load({"search.objective=time_to_train"}), 3);
  Spec spec = load({"search.objective=cost"});
  SearchResult cost = search::search(spec, 3);
  ASSERT_EQ(cost.candidates.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cost.candidates[i].choice, time.candidates[i].choice);
    ObjectiveValue value = objectiveValue(spec, cost.candidates[i]);
    EXPECT_STREQ(value.unit, "dollars");
    // 16 devices at $3 an hour.
    EXPECT_NEAR(value.value,
                trainSeconds(spec, time.candidates[i]) / 3600 * 16 * 3, 1e-6);
  }
  EXPECT_EQ(cost.proof.parts[0].unit, "dollars");
  // The bound of all assignments is in dollars too.
  double dollars = objectiveValue(spec, cost.candidates[0]).value;
  EXPECT_NEAR(cost.proof.bound * (1 + cost.proof.gap), dollars,
              1e-9 * dollars);
}

// What stalls no choice more than another ranks as the step does.
TEST(Objective, WithHiddenCopiesTheStepDecides) {
  for (const char *hidden : {"cluster.resilience.copy_bandwidth_gbs=100",
                             "cluster.resilience.checkpoint_stall_s=3",
                             "training.checkpoint.async=false"}) {
    SearchResult step = search::search(load({hidden}), 5);
    SearchResult train =
        search::search(load({hidden, "search.objective=time_to_train"}), 5);
    ASSERT_EQ(step.candidates.size(), train.candidates.size());
    for (size_t i = 0; i < step.candidates.size(); ++i)
      EXPECT_EQ(step.candidates[i].choice, train.candidates[i].choice)
          << hidden << " " << i;
  }
}

TEST(Objective, WithoutProgressThereIsNoValue) {
  Spec spec = load({"search.objective=cost", "cluster.gpu_mtbf_hours=0.1"});
  SearchResult result = search::search(spec, 1);
  ASSERT_FALSE(result.candidates.empty());
  EXPECT_EQ(objectiveValue(spec, result.candidates[0]).value, HUGE_VAL);
}

} // namespace
