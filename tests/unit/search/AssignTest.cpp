//===- AssignTest.cpp - layers and recomputation of each stage ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Assign.h"

#include "frontends/spec/Load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

using namespace reckon;
using namespace reckon::search;

namespace {

constexpr const char *kDense = R"(
model: {name: small, architecture: llama, vocab_size: 32000, hidden_size: 1024,
        intermediate_size: 2816, num_hidden_layers: 8, num_attention_heads: 16,
        num_key_value_heads: 4}
cluster: {accelerator: h100-sxm, nodes: 1, gpus_per_node: 4}
training: {sequence_length: 2048, global_batch_size: 8}
)";

constexpr const char *k8B = R"(
model: {name: llama3-8b, architecture: llama, vocab_size: 128256,
        hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32,
        num_attention_heads: 32, num_key_value_heads: 8}
cluster: {accelerator: h100-sxm, nodes: 1, gpus_per_node: 8}
training: {sequence_length: 4096, global_batch_size: 64}
)";

Spec load(const char *text, std::vector<std::string> sets = {}) {
  FakeFileSystem files;
  files.files["spec.yaml"] = text;
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec({"spec.yaml"}, sets, errors, files);
  if (!spec) {
    ADD_FAILURE() << spec.error().message;
    std::abort();
  }
  return *spec;
}

model::Choice even(int64_t pp, int64_t layers, int64_t micro,
                   Recompute recompute = Recompute::None) {
  model::Choice choice;
  choice.pp = pp;
  choice.numMicroBatches = micro;
  choice.recompute = recompute;
  for (int64_t k = 0; k < pp; ++k)
    choice.layout.push_back(layers / pp + (k < layers % pp ? 1 : 0));
  return choice;
}

/// Every layout of `layers` on choice.pp stages, each with a layer or more.
void layouts(const model::Choice &choice, int64_t layers,
             const std::function<void(model::Choice &)> &visit) {
  model::Choice trial = choice;
  std::function<void(int64_t, int64_t)> place = [&](int64_t k, int64_t left) {
    auto stage = static_cast<size_t>(k);
    if (k == choice.pp - 1) {
      trial.layout[stage] = left;
      visit(trial);
      return;
    }
    for (int64_t n = 1; n <= left - (choice.pp - k - 1); ++n) {
      trial.layout[stage] = n;
      place(k + 1, left - n);
    }
  };
  place(0, layers);
}

/// The least slowest stage of all layouts and recompute counts that fit;
/// infinite when none does. Whole choices are priced, nothing is reused.
double bruteForce(const model::Choice &choice, int64_t layers,
                  Evaluator &evaluator, uint64_t limit) {
  double least = std::numeric_limits<double>::infinity();
  layouts(choice, layers, [&](model::Choice &trial) {
    trial.recompute = Recompute::Full;
    trial.recomputeLayers.assign(trial.layout.size(), 0);
    std::function<void(size_t)> split = [&](size_t k) {
      if (k == trial.layout.size()) {
        double slowest = slowestStage(trial, evaluator);
        if (slowest < least && evaluator.peak(trial).bytes <= limit)
          least = slowest;
        return;
      }
      for (int64_t n = 0; n <= trial.layout[k]; ++n) {
        trial.recomputeLayers[k] = n;
        split(k + 1);
      }
    };
    split(0);
  });
  return least;
}

/// Limits between what recomputing everything and nothing need.
std::vector<uint64_t> limits(const model::Choice &choice,
                             Evaluator &evaluator) {
  model::Choice full = choice;
  full.recompute = Recompute::Full;
  uint64_t low = evaluator.peak(full).bytes;
  uint64_t high = evaluator.peak(choice).bytes;
  EXPECT_LT(low, high);
  return {low / 2, low,     low + (high - low) / 4, low + (high - low) / 2,
          high,    2 * high};
}

void equalsBruteForce(const Spec &spec, int64_t layers) {
  Evaluator evaluator(spec);
  bool tight = false;
  for (int64_t pp : {1, 2, 3, 4}) {
    model::Choice choice = even(pp, layers, 8);
    for (uint64_t limit : limits(choice, evaluator)) {
      double expected = bruteForce(choice, layers, evaluator, limit);
      std::optional<Assignment> found =
          assignLayers(choice, evaluator, limit, {});
      ASSERT_EQ(found.has_value(), std::isfinite(expected)) << pp;
      if (!found) {
        tight = true;
        continue;
      }
      EXPECT_EQ(found->slowest, expected) << "pp " << pp << " limit " << limit;
      EXPECT_EQ(slowestStage(found->choice, evaluator), expected);
      EXPECT_LE(evaluator.peak(found->choice).bytes, limit);
      EXPECT_EQ(found->choice.layers(), layers);
    }
  }
  EXPECT_TRUE(tight) << "no instance was infeasible";
}

TEST(Assign, EqualsBruteForceOnDenseLayers) {
  equalsBruteForce(load(kDense, {"model.num_hidden_layers=7"}), 7);
}

TEST(Assign, EqualsBruteForceBehindDenseLayers) {
  // Two kinds: the first 2 of 6 layers have no experts.
  equalsBruteForce(
      load(kDense,
           {"model.architecture=deepseek_v3", "model.num_hidden_layers=6",
            "model.n_routed_experts=8", "model.num_experts_per_tok=2",
            "model.moe_intermediate_size=512",
            "model.first_k_dense_replace=2"}),
      6);
}

TEST(Assign, LeavesTheHeavyHeadFewerLayers) {
  // The head has 128256 x 4096 = 525M weights; a layer has 2 x 4096^2 +
  // 2 x 4096 x 1024 + 3 x 4096 x 14336 = 218M. So the head weighs about 2.4
  // layers: even stages of 8 make the last one do 10.4, while the mean is
  // (32 + 2.4) / 4 = 8.6.
  Evaluator evaluator(load(k8B));
  model::Choice choice = even(4, 32, 32);
  choice.dp = 2;
  std::optional<Assignment> found =
      assignLayers(choice, evaluator, UINT64_MAX, {});
  ASSERT_TRUE(found);
  EXPECT_LT(found->choice.layout.back(), 8);
  EXPECT_LT(found->slowest, slowestStage(choice, evaluator));
  EXPECT_LT(evaluator.step(found->choice), evaluator.step(choice));
  EXPECT_TRUE(found->choice.recomputeLayers.empty());
  EXPECT_EQ(found->choice.recompute, Recompute::None);
}

TEST(Assign, RecomputesOnTheFirstStageOnly) {
  // Of 1F1B the first of p stages holds p micro-batches, the second p - 1: a
  // limit that the second just keeps without recomputation is too low for the
  // first, which holds as many layers.
  Evaluator evaluator(load(kDense));
  model::Choice choice = even(4, 8, 8);
  uint64_t first = evaluator.memory(choice, 0), limit = 0;
  for (int64_t rank : {1, 2, 3})
    limit = std::max(limit, evaluator.memory(choice, rank));
  ASSERT_LT(limit, first);
  std::optional<Assignment> found =
      assignLayers(choice, evaluator, limit, {.layout = false});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->choice.layout, choice.layout);
  const std::vector<int64_t> &full = found->choice.recomputeLayers;
  ASSERT_EQ(full.size(), 4u);
  EXPECT_GT(full[0], 0);
  EXPECT_EQ(full[1] + full[2] + full[3], 0);
}

TEST(Assign, KeepsWhatTheSpecFixes) {
  EXPECT_TRUE(assignFreedom(load(kDense)).layout);
  EXPECT_FALSE(
      assignFreedom(load(kDense, {"parallelism.recompute=full"})).recompute);
  EXPECT_FALSE(
      assignFreedom(load(kDense, {"search.space=compilable"})).recompute);
  EXPECT_TRUE(assignFreedom(load(kDense, {"search.space=compilable"})).layout);
  EXPECT_FALSE(
      assignFreedom(load(kDense, {"parallelism.pipeline_parallel=2",
                                  "parallelism.pipeline_layout=[3,5]"}))
          .layout);
}

TEST(Assign, ChunksAreNotAssigned) {
  Evaluator evaluator(load(kDense));
  model::Choice choice = even(4, 8, 8);
  choice.pp = choice.v = 2;
  choice.schedule = PipelineSchedule::Interleaved;
  EXPECT_FALSE(assignLayers(choice, evaluator, UINT64_MAX, {}));
}

TEST(Assign, ReportsOnlyWhatIsFaster) {
  Spec spec = load(k8B, {"parallelism.pipeline_parallel=4",
                         "parallelism.tensor_parallel=1",
                         "parallelism.virtual_pipeline=1"});
  SearchResult result = searchAndExplain(spec, 1);
  ASSERT_FALSE(result.candidates.empty());
  EXPECT_GT(result.assignments, 0);
  ASSERT_TRUE(result.refined);
  const Candidate &refined = result.refined->candidate;
  EXPECT_LT(refined.time.step, result.candidates.front().time.step);
  EXPECT_TRUE(Evaluator(spec).judge(refined.choice).fits());
  EXPECT_EQ(result.proof.parts.back().what, "assignment");
}

} // namespace
