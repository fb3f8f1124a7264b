//===- AssignTest.cpp - layers and recomputation of each stage ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Space.h"
#include "passes/search/assign/Program.h"

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

/// Whether the chunks of each rank are as spreadOver() has them, so that brute
/// force walks the same space: of several chunks the later ones are raised
/// first, the head's last of all.
bool asSpread(const model::Choice &choice, Evaluator &evaluator) {
  if (choice.v == 1)
    return true;
  AssignOptions options;
  Frame frame(choice, evaluator, UINT64_MAX, options);
  for (int64_t rank = 0; rank < choice.pp; ++rank) {
    std::vector<int64_t> counts;
    int64_t sum = 0;
    for (int64_t stage : frame.stagesOf(rank)) {
      counts.push_back(choice.layout[static_cast<size_t>(stage)]);
      sum += counts.back();
    }
    if (counts != spreadOver(frame, rank, sum))
      return false;
  }
  return true;
}

/// The shortest step of all layouts within the window and all recompute counts
/// that fit, of a rank's chunks the first ones first; infinite when none does.
/// Whole choices are priced, nothing is reused.
double bruteForce(const model::Choice &choice, int64_t layers,
                  Evaluator &evaluator, uint64_t limit) {
  double least = std::numeric_limits<double>::infinity();
  model::LayerWindow window = model::layerWindow(layers, choice);
  model::Choice trial = choice;
  auto stages = static_cast<size_t>(choice.stages());
  std::vector<std::vector<size_t>> own(static_cast<size_t>(choice.pp));
  for (size_t k = 0; k < stages; ++k)
    own[static_cast<size_t>(model::rankOfStage(
            choice.schedule, choice.pp, choice.v, static_cast<int64_t>(k)))]
        .push_back(k);
  std::function<void(size_t)> recompute = [&](size_t rank) {
    if (rank == own.size()) {
      double step = evaluator.timed(trial);
      if (step < least && evaluator.peak(trial).bytes <= limit)
        least = step;
      return;
    }
    int64_t most = 0;
    for (size_t k : own[rank])
      most += trial.layout[k];
    for (int64_t n = 0; n <= most; ++n) {
      int64_t left = n;
      for (size_t k : own[rank]) {
        trial.recomputeLayers[k] = std::min(left, trial.layout[k]);
        left -= trial.recomputeLayers[k];
      }
      recompute(rank + 1);
    }
  };
  std::function<void(size_t, int64_t)> place = [&](size_t k, int64_t left) {
    bool end = k == 0 || k == stages - 1;
    for (int64_t n = end ? window.leastEnd : window.least;
         n <= std::min(window.most, left); ++n) {
      trial.layout[k] = n;
      if (k + 1 < stages) {
        place(k + 1, left - n);
      } else if (n == left && asSpread(trial, evaluator)) {
        trial.recompute = Recompute::Full;
        trial.recomputeLayers.assign(stages, 0);
        recompute(0);
      }
    }
  };
  place(0, layers);
  return least;
}

/// Limits between what recomputing everything and nothing need.
std::vector<uint64_t> limits(const model::Choice &choice,
                             Evaluator &evaluator) {
  model::Choice full = choice;
  full.recompute = Recompute::Full;
  uint64_t low = evaluator.peak(full).bytes;
  uint64_t high = evaluator.peak(choice).bytes;
  if (low > high) // little to save, and recomputing needs room of its own
    std::swap(low, high);
  return {low / 2, low,     low + (high - low) / 4, low + (high - low) / 2,
          high,    2 * high};
}

struct Closeness {
  int64_t found = 0, infeasible = 0, optimal = 0;
  double worst = 0, sum = 0; ///< of step / bound - 1
};

/// Compares with brute force: what is found is possible and not below the
/// optimum, the bound is not above it, and both are near.
void compare(const model::Choice &choice, int64_t layers, Evaluator &evaluator,
             Closeness &close) {
  for (uint64_t limit : limits(choice, evaluator)) {
    SCOPED_TRACE(testing::Message()
                 << model::scheduleName(choice.schedule) << " p " << choice.pp
                 << " limit " << limit);
    double expected = bruteForce(choice, layers, evaluator, limit);
    Assigned found = assignLayers(choice, evaluator, limit, {});
    ASSERT_EQ(found.choice.has_value(), std::isfinite(expected));
    if (!found.choice) {
      ++close.infeasible;
      continue;
    }
    ++close.found;
    EXPECT_EQ(found.choice->layers(), layers);
    EXPECT_LE(evaluator.peak(*found.choice).bytes, limit);
    EXPECT_EQ(evaluator.timed(*found.choice), found.step);
    EXPECT_GE(found.step, expected * (1 - 1e-12));
    EXPECT_LE(found.bound, expected);
    close.optimal += found.step <= expected * (1 + 1e-9);
    double gap = found.step / found.bound - 1;
    close.worst = std::max(close.worst, gap);
    close.sum += gap;
    // Only what is faster than the optimum is asked for: there is nothing.
    Assigned none = assignLayers(choice, evaluator, limit,
                                 {.freedom = {}, .beat = expected});
    EXPECT_FALSE(none.choice);
    EXPECT_LE(none.bound, expected);
  }
}

constexpr std::initializer_list<PipelineSchedule> kOneChunk = {
    PipelineSchedule::OneFOneB, PipelineSchedule::GPipe, PipelineSchedule::ZbH1,
    PipelineSchedule::ZbH2};
constexpr std::initializer_list<PipelineSchedule> kTwoChunks = {
    PipelineSchedule::Interleaved, PipelineSchedule::Bfs, PipelineSchedule::ZbV,
    PipelineSchedule::DualPipeV};

void equalsBruteForce(const Spec &spec, int64_t layers) {
  Evaluator evaluator(spec);
  Closeness close;
  for (PipelineSchedule schedule : kOneChunk)
    for (int64_t pp : {1, 2, 3, 4}) {
      model::Choice choice = even(pp, layers, 8);
      choice.schedule = schedule;
      compare(choice, layers, evaluator, close);
    }
  for (PipelineSchedule schedule : kTwoChunks)
    for (int64_t pp : {2, 3}) {
      model::Choice choice = even(2 * pp, layers, 6);
      choice.pp = pp, choice.v = 2;
      choice.schedule = schedule;
      compare(choice, layers, evaluator, close);
    }
  double mean = close.sum / static_cast<double>(close.found);
  std::printf("%ld found, %ld of them optimal, bounds within %.2f %%, on "
              "average %.2f %%\n",
              static_cast<long>(close.found), static_cast<long>(close.optimal),
              100 * close.worst, 100 * mean);
  EXPECT_GT(close.infeasible, 0) << "no instance was infeasible";
  EXPECT_GE(close.optimal * 100, close.found * 90);
  // Models that are so small have few layers to even a step out.
  EXPECT_LT(close.worst, 0.2);
  EXPECT_LT(mean, 0.04);
}

TEST(Assign, EqualsBruteForceOnDenseLayers) {
  equalsBruteForce(load(kDense, {"model.num_hidden_layers=7"}), 7);
}

constexpr std::initializer_list<const char *> kTwoKinds = {
    "model.architecture=deepseek_v3",  "model.num_hidden_layers=6",
    "model.n_routed_experts=8",        "model.num_experts_per_tok=2",
    "model.moe_intermediate_size=512", "model.first_k_dense_replace=2"};

TEST(Assign, EqualsBruteForceBehindDenseLayers) {
  // Two kinds: the first 2 of 6 layers have no experts.
  equalsBruteForce(load(kDense, std::vector<std::string>(kTwoKinds.begin(),
                                                         kTwoKinds.end())),
                   6);
}

double slowestStage(const model::Choice &choice, const Evaluator &evaluator) {
  double slowest = 0;
  for (int64_t k = 0; k < choice.pp; ++k) {
    model::StageTime time = evaluator.timeModel().stage(choice, k);
    slowest = std::max(slowest, time.forward + time.backward());
  }
  return slowest;
}

/// Z3 is free in how chunks share a rank's layers; with one chunk a rank there
/// is nothing to arrange, and with two a rank's layers are in the later one
/// first, which the program takes as well.
void equalsZ3(const Spec &spec, int64_t layers) {
  Evaluator evaluator(spec);
  int64_t same = 0, faster = 0;
  auto compare = [&](const model::Choice &choice) {
    for (uint64_t limit : limits(choice, evaluator)) {
      SCOPED_TRACE(testing::Message()
                   << model::scheduleName(choice.schedule) << " p " << choice.pp
                   << " limit " << limit);
      Assigned program = assignLayers(choice, evaluator, limit, {});
      Assigned z3 = assignLayers(choice, evaluator, limit, {.z3 = true});
      EXPECT_STREQ(z3.method, "z3");
      ASSERT_EQ(z3.choice.has_value(), program.choice.has_value());
      if (!z3.choice)
        continue;
      EXPECT_LE(evaluator.peak(*z3.choice).bytes, limit);
      EXPECT_EQ(evaluator.timed(*z3.choice), z3.step);
      EXPECT_LE(z3.bound, z3.step);
      EXPECT_LE(z3.step, program.step * (1 + 1e-9));
      if (choice.v == 1) {
        double slowest = slowestStage(*program.choice, evaluator);
        EXPECT_NEAR(slowestStage(*z3.choice, evaluator), slowest,
                    1e-9 * slowest);
        EXPECT_GE(z3.step, program.bound);
      }
      // Told what the program found, it finds nothing better than before.
      Assigned more =
          assignLayers(choice, evaluator, limit, {.beat = z3.step, .z3 = true});
      EXPECT_FALSE(more.choice);
      (z3.step < program.step * (1 - 1e-9) ? faster : same) += 1;
    }
  };
  for (PipelineSchedule schedule :
       {PipelineSchedule::ZbH1, PipelineSchedule::ZbH2})
    for (int64_t pp : {2, 3, 4}) {
      model::Choice choice = even(pp, layers, 8);
      choice.schedule = schedule;
      compare(choice);
    }
  for (PipelineSchedule schedule : kTwoChunks)
    for (int64_t pp : {2, 3}) {
      model::Choice choice = even(2 * pp, layers, 6);
      choice.pp = pp, choice.v = 2;
      choice.schedule = schedule;
      compare(choice);
    }
  std::printf("%ld the same, %ld faster with Z3's arrangement\n",
              static_cast<long>(same), static_cast<long>(faster));
  EXPECT_GT(same, 20);
}

TEST(Assign, Z3EqualsTheProgramOnDenseLayers) {
  equalsZ3(load(kDense, {"model.num_hidden_layers=7"}), 7);
}

TEST(Assign, Z3EqualsTheProgramBehindDenseLayers) {
  equalsZ3(load(kDense,
                std::vector<std::string>(kTwoKinds.begin(), kTwoKinds.end())),
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
  Assigned found = assignLayers(choice, evaluator, UINT64_MAX, {});
  ASSERT_TRUE(found.choice);
  EXPECT_LT(found.choice->layout.back(), 8);
  EXPECT_LT(slowestStage(*found.choice, evaluator),
            slowestStage(choice, evaluator));
  EXPECT_LT(found.step, evaluator.step(choice));
  EXPECT_TRUE(found.choice->recomputeLayers.empty());
  EXPECT_EQ(found.choice->recompute, Recompute::None);
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
  Assigned found =
      assignLayers(choice, evaluator, limit, {.freedom = {.layout = false}});
  ASSERT_TRUE(found.choice);
  EXPECT_EQ(found.choice->layout, choice.layout);
  const std::vector<int64_t> &full = found.choice->recomputeLayers;
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
  // What a framework cannot be told is not assigned for it.
  AssignFreedom megatron =
      assignFreedom(load(kDense, {"parallelism.representation=megatron"}));
  EXPECT_TRUE(megatron.layout);
  EXPECT_FALSE(megatron.recompute);
  AssignFreedom deepspeed =
      assignFreedom(load(kDense, {"parallelism.representation=deepspeed"}));
  EXPECT_FALSE(deepspeed.layout);
  EXPECT_FALSE(deepspeed.recompute);
  EXPECT_FALSE(
      assignFreedom(load(kDense, {"parallelism.pipeline_parallel=2",
                                  "parallelism.pipeline_layout=[3,5]"}))
          .layout);
}

TEST(Assign, TheBestAssignmentIsTheChoice) {
  Spec spec = load(k8B, {"parallelism.pipeline_parallel=4",
                         "parallelism.tensor_parallel=1",
                         "parallelism.virtual_pipeline=1"});
  SearchResult result = searchAndExplain(spec, 3);
  SearchResult even = search::search(
      spec, SearchOptions{.top = 3, .refine = false, .runnable = false});
  ASSERT_FALSE(result.candidates.empty());
  EXPECT_GT(result.assignments, 0);
  EXPECT_FALSE(result.refined);
  const Candidate &best = result.candidates.front();
  EXPECT_LT(best.time.step, even.candidates.front().time.step);
  EXPECT_GE(best.time.step, result.proof.bound * (1 - 1e-9));
  EXPECT_LT(result.proof.gap, 0.01);
  EXPECT_TRUE(Evaluator(spec).judge(best.choice).fits());
  EXPECT_EQ(result.proof.parts[1].what, "assignment");
  // How many are asked for does not change the first one.
  EXPECT_EQ(searchAndExplain(spec, 1).candidates.front().choice, best.choice);
}

// The search assigns only what its bounds leave open. Here every combination is
// assigned, and none is faster than the choice.
TEST(Assign, TheChoiceIsTheBestOfAllCombinations) {
  int64_t others = 0; // limits under which it is not the best even choice's
  for (const char *limit : {"36", "40", "44", "48", "66"}) {
    SCOPED_TRACE(limit);
    Spec spec = load(
        k8B, {"parallelism.context_parallel=1", "parallelism.zero_stage=0",
              "parallelism.sequence_parallel=true",
              "parallelism.virtual_pipeline=1", "constraints.max_bubble=0.5",
              std::string("constraints.memory_limit_gib=") + limit});
    Evaluator evaluator(spec);
    Space space(spec);
    double least = std::numeric_limits<double>::infinity();
    int64_t moved = 0; // combinations that assignment makes faster
    LeafVisitor leaves;
    leaves.rejected = [](int64_t, const Misfit &) {};
    leaves.leaf = [&](model::Choice &leaf) {
      if (!space.refuses(leaf).empty() || !evaluator.forbids(leaf).empty() ||
          evaluator.bubble(leaf) > evaluator.bounds().maxBubble)
        return;
      double even = std::numeric_limits<double>::infinity();
      if (evaluator.judge(leaf).fits())
        even = evaluator.timed(leaf);
      Assigned found = assignLayers(leaf, evaluator, evaluator.limitBytes(),
                                    {.freedom = assignFreedom(spec)});
      double step = found.choice ? std::min(found.step, even) : even;
      moved += step < even;
      least = std::min(least, step);
    };
    SpaceVisitor nodes;
    nodes.rejected = leaves.rejected;
    nodes.node = [&](const model::Choice &node, int64_t) {
      space.leaves(node, leaves);
    };
    space.nodes(nodes);
    SearchResult result = search::search(spec, 1);
    ASSERT_FALSE(result.candidates.empty());
    EXPECT_GT(moved, 0);
    EXPECT_LE(result.candidates.front().time.step, least * (1 + 1e-9));
    EXPECT_LE(result.proof.bound, least * (1 + 1e-9));
    model::Choice even =
        search::search(spec, SearchOptions{.top = 1, .refine = false})
            .candidates.front()
            .choice;
    model::Choice best = result.candidates.front().choice;
    others +=
        degreesOf(best) != degreesOf(even) || best.schedule != even.schedule;
  }
  EXPECT_GT(others, 0) << "only the best even choices were ever assigned";
}

TEST(Assign, ARunIsEvaluatedAsItIs) {
  // Everything but the layout is fixed: what a better one would gain is shown
  // beside it.
  SearchResult result = searchAndExplain(
      load(k8B,
           {"parallelism.pipeline_parallel=4", "parallelism.tensor_parallel=1",
            "parallelism.context_parallel=1", "parallelism.virtual_pipeline=1",
            "parallelism.micro_batch_size=1", "parallelism.recompute=none"}),
      1);
  ASSERT_FALSE(result.candidates.empty());
  const Candidate &run = result.candidates.front();
  EXPECT_EQ(run.choice.layout, (std::vector<int64_t>{8, 8, 8, 8}));
  ASSERT_TRUE(result.refined);
  EXPECT_LT(result.refined->candidate.time.step, run.time.step);
}

} // namespace
