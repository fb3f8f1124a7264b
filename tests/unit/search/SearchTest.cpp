//===- SearchTest.cpp - what is enumerated, and failures explained --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Search.h"

#include "frontends/spec/Load.h"
#include "passes/search/Report.h"
#include "passes/search/Space.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace reckon;
using namespace reckon::search;

namespace {

constexpr const char *kSmall = R"(
model: {name: small, architecture: llama, vocab_size: 256, hidden_size: 64,
        intermediate_size: 176, num_hidden_layers: 4, num_attention_heads: 4,
        num_key_value_heads: 2}
cluster: {accelerator: h100-sxm, nodes: 1, gpus_per_node: 4}
training: {sequence_length: 64, global_batch_size: 8}
parallelism: {sequence_parallel: false}
)";

constexpr const char *k70B = R"(
model: {name: llama3-70b, architecture: llama, vocab_size: 128256,
        hidden_size: 8192, intermediate_size: 28672, num_hidden_layers: 80,
        num_attention_heads: 64, num_key_value_heads: 8}
cluster: {accelerator: h100-sxm, nodes: 128, gpus_per_node: 8}
training: {sequence_length: 8192, global_batch_size: 512}
parallelism: {sequence_parallel: false}
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

/// In the space of what can be compiled, which is small enough to count.
Spec loadCompilable(const char *text, std::vector<std::string> sets = {}) {
  Spec spec = load(text, std::move(sets));
  spec.search.space.value = SearchSpace::Compilable;
  return spec;
}

/// Every combination, not only the best of each set of degrees.
SearchResult everything(const Spec &spec) {
  return search::search(spec, SearchOptions{.top = 1000,
                                            .distinct = false,
                                            .prune = false,
                                            .refine = false});
}

TEST(Search, CountsTheWholeSpace) {
  // World 4, tp divides the 2 key-value heads: 1 or 2. Sequences of a replica
  // 8 / dp. Two recomputes, two schedules where there is a pipeline, two ZeRO
  // stages where dp > 1.
  //   tp pp dp  micro-batches of 8/dp   zero  rest
  //   1  1  4   1 2                     2     2       8
  //   1  2  2   1 2 4                   2     4      24
  //   1  4  1   1 2 4 8                 1     4      16
  //   2  1  2   1 2 4                   2     2      12
  //   2  2  1   1 2 4 8                 1     4      16
  //   4  1  1   does not divide the 2 kv heads        2
  SearchResult result = search::search(loadCompilable(kSmall), 5);
  EXPECT_EQ(result.space, 78);
  EXPECT_EQ(result.evaluated, 76);
  EXPECT_EQ(result.rejected.divisibility, 2);
  // max_bubble 0.1: m >= 10 (p - 1) is out of reach for 8 sequences.
  EXPECT_EQ(result.rejected.bubble, 24 + 16 + 16);
  EXPECT_EQ(result.rejected.memory, 0);
  EXPECT_EQ(result.feasible, 20);
  EXPECT_FALSE(result.infeasible);
}

TEST(Search, SequenceParallelismDoublesTheChoicesUnderTensorParallelism) {
  std::vector<std::string> sets{"constraints.max_bubble=10"};
  SearchResult without = everything(loadCompilable(kSmall, sets));
  sets.push_back("parallelism.sequence_parallel=auto");
  SearchResult with = everything(loadCompilable(kSmall, sets));
  int64_t tensor = 0;
  for (const Candidate &candidate : without.candidates)
    tensor += candidate.choice.tp == 2;
  EXPECT_EQ(tensor, 12 + 16); // the two lines with tp 2 above
  EXPECT_EQ(with.evaluated, without.evaluated + tensor);
  for (const Candidate &candidate : with.candidates)
    EXPECT_TRUE(candidate.choice.tp == 2 || !candidate.choice.sequenceParallel);
}

// Two layers on four stages, asked for: the embedding and the loss alone. The
// compiler makes no stage without layers.
TEST(Search, EmbeddingAndLossMayStandAlone) {
  std::vector<std::string> sets{"model.num_hidden_layers=2",
                                "parallelism.pipeline_parallel=4",
                                "constraints.max_bubble=10"};
  SearchResult result = everything(load(kSmall, sets));
  ASSERT_FALSE(result.candidates.empty());
  for (const Candidate &candidate : result.candidates)
    EXPECT_EQ(candidate.choice.layout, (std::vector<int64_t>{0, 1, 1, 0}));
  EXPECT_TRUE(everything(loadCompilable(kSmall, sets)).infeasible);
  // Left open, no more stages than layers are tried.
  sets[1] = "parallelism.pipeline_parallel=auto";
  for (const Candidate &candidate : everything(load(kSmall, sets)).candidates)
    EXPECT_LE(candidate.choice.stages(), 2);
  // Three stages of one rank leave the last one the loss alone.
  sets = {"model.num_hidden_layers=2", "parallelism.pipeline_layout=[1, 1, 0]",
          "cluster.gpus_per_node=6", "training.global_batch_size=12",
          "constraints.max_bubble=10"};
  result = everything(load(kSmall, sets));
  ASSERT_FALSE(result.candidates.empty());
  EXPECT_EQ(result.candidates[0].choice.layout,
            (std::vector<int64_t>{1, 1, 0}));
}

// Four ranks share two heads of keys when somebody asks for it; frameworks
// that copy none refuse the spec.
TEST(Search, KeyHeadsAreCopiedWhenAskedFor) {
  std::vector<std::string> sets{"parallelism.tensor_parallel=4"};
  SearchResult result = everything(load(kSmall, sets));
  ASSERT_FALSE(result.candidates.empty());
  EXPECT_EQ(result.candidates[0].choice.tp, 4);
  sets[0] = "parallelism.tensor_parallel=auto";
  for (const Candidate &candidate : everything(load(kSmall, sets)).candidates)
    EXPECT_LE(candidate.choice.tp, 2);
}

TEST(Search, BestFirst) {
  SearchResult result =
      everything(loadCompilable(kSmall, {"constraints.max_bubble=10"}));
  ASSERT_EQ(result.candidates.size(), 76u);
  for (size_t i = 1; i < result.candidates.size(); ++i)
    EXPECT_LE(result.candidates[i - 1].time.step,
              result.candidates[i].time.step + 1e-9);
  for (const Candidate &candidate : result.candidates) {
    EXPECT_EQ(candidate.choice.world(), 4);
    EXPECT_EQ(candidate.choice.layers(), 4);
    EXPECT_EQ(candidate.choice.dp * candidate.choice.microBatch *
                  candidate.choice.numMicroBatches,
              8);
    for (const model::StageMemory &stage : candidate.stages)
      EXPECT_LE(stage.total(), candidate.peakBytes());
  }
}

TEST(Search, FixedValuesLeaveOneChoice) {
  SearchResult result = search::search(
      load(k70B,
           {"parallelism.tensor_parallel=8", "parallelism.pipeline_parallel=4",
            "parallelism.data_parallel=32", "parallelism.zero_stage=1",
            "parallelism.micro_batch_size=1", "parallelism.recompute=full",
            "parallelism.pipeline_schedule=1f1b",
            "constraints.max_bubble=0.25"}),
      5);
  EXPECT_EQ(result.space, 1);
  ASSERT_EQ(result.candidates.size(), 1u);
  EXPECT_DOUBLE_EQ(result.candidates[0].bubbleFraction, 3.0 / 16);
  EXPECT_EQ(result.candidates[0].peakStage, 0);
}

TEST(Search, Repeatable) {
  Spec spec = load(k70B, {"constraints.max_bubble=0.5"});
  SearchResult first = search::search(spec, 20),
               second = search::search(spec, 20);
  ASSERT_FALSE(first.candidates.empty());
  ReportInput a{spec, first, 0}, b{spec, second, 0};
  EXPECT_EQ(reportJson(a), reportJson(b));
  EXPECT_EQ(reportText(a), reportText(b));
}

TEST(Search, EqualTimesPreferLessMemory) {
  // Equal stages make GPipe and 1F1B take equally long.
  SearchResult result =
      everything(loadCompilable(kSmall, {"constraints.max_bubble=10",
                                         "parallelism.pipeline_parallel=4"}));
  EXPECT_EQ(result.candidates[0].choice.schedule, PipelineSchedule::OneFOneB);
}

TEST(Search, VocabularyMustDivide) {
  // Two ranks can split heads and feed-forward but not 255 rows.
  SearchResult result = everything(loadCompilable(
      kSmall, {"model.vocab_size=255", "constraints.max_bubble=10"}));
  for (const Candidate &candidate : result.candidates)
    EXPECT_EQ(candidate.choice.tp, 1);
  std::vector<std::string> reasons;
  for (const auto &[why, count] : result.reasons)
    reasons.push_back(why);
  EXPECT_NE(std::find(reasons.begin(), reasons.end(),
                      "tensor_parallel 2 does not divide vocab_size 255"),
            reasons.end());
}

/// Everything that is proposed must really fit when it is applied.
void checkNearest(const char *text, std::vector<std::string> sets,
                  const Infeasible &why) {
  for (const NearestChange &change : why.nearest) {
    std::vector<std::string> changed = sets;
    for (const Setting &setting : change.settings)
      changed.push_back(setting.key + "=" + setting.value);
    SearchResult again = search::search(load(text, changed), 1);
    ASSERT_FALSE(again.candidates.empty()) << changed.back();
    EXPECT_EQ(again.candidates[0].choice, change.candidate.choice)
        << changed.back();
  }
}

TEST(Infeasible, Memory) {
  // 70B on 8 devices: 18 bytes a parameter are 1.2 TB.
  std::vector<std::string> sets{"cluster.nodes=1"};
  SearchResult result = search::searchAndExplain(load(k70B, sets), 5);
  ASSERT_TRUE(result.infeasible);
  EXPECT_TRUE(result.candidates.empty());
  const Infeasible &why = *result.infeasible;
  ASSERT_TRUE(why.closest);
  EXPECT_EQ(why.conflict[0],
            "memory_limit stage " + std::to_string(why.closest->peakStage));
  EXPECT_EQ(why.closest->peakArena() - why.shortfallBytes,
            78ull << 30); // 80 GiB - 2 GiB
  ASSERT_FALSE(why.nearest.empty());
  EXPECT_EQ(why.nearest.back().settings[0].key, "cluster.nodes");
  checkNearest(k70B, sets, why);
  Spec spec = load(k70B, sets);
  std::string said = infeasibleText({spec, result, 0});
  EXPECT_NE(said.find("GiB more than the limit of 78.00 GiB"),
            std::string::npos)
      << said;
}

TEST(Infeasible, Bubble) {
  // Zero-bubble schedules would do with less.
  std::vector<std::string> sets{"parallelism.pipeline_parallel=4",
                                "search.space=compilable"};
  SearchResult result = search::searchAndExplain(load(kSmall, sets), 5);
  ASSERT_TRUE(result.infeasible);
  const Infeasible &why = *result.infeasible;
  // With another pipeline, or another limit, something would fit.
  EXPECT_EQ(why.conflict,
            (std::vector<std::string>{"max_bubble", "pipeline_parallel"}));
  EXPECT_TRUE(why.checked);
  EXPECT_EQ(why.shortfallBytes, 0u);
  // Eight micro-batches of one sequence: 3/8.
  ASSERT_FALSE(why.nearest.empty());
  EXPECT_EQ(why.nearest[0].settings[0].key, "constraints.max_bubble");
  EXPECT_EQ(why.nearest[0].settings[0].value, "0.375");
  bool freed = false;
  for (const NearestChange &change : why.nearest)
    freed |= change.settings[0].key == "parallelism.pipeline_parallel";
  EXPECT_TRUE(freed);
  checkNearest(kSmall, sets, why);
}

TEST(Infeasible, TwoLimitsTogether) {
  // Without a pipeline the bubble is zero but memory is short; with one it is
  // the other way round.
  std::vector<std::string> sets{"cluster.nodes=16",
                                "training.global_batch_size=16",
                                "parallelism.tensor_parallel=8",
                                "constraints.max_bubble=0.01",
                                "constraints.memory_limit_gib=40",
                                "search.space=compilable"};
  SearchResult result = search::searchAndExplain(load(k70B, sets), 5);
  ASSERT_TRUE(result.infeasible);
  EXPECT_EQ(result.infeasible->conflict,
            (std::vector<std::string>{"memory_limit stage 0", "max_bubble"}));
  checkNearest(k70B, sets, *result.infeasible);
}

TEST(Infeasible, NothingDivides) {
  // Three devices: tp 3 splits no head, pp 3 leaves a batch of 8 to one
  // replica; only that and dp 3 are left, and both are ruled out. Without
  // the fixed pipeline pp 3 would do, so that is the conflict.
  std::vector<std::string> sets{"cluster.gpus_per_node=3",
                                "parallelism.pipeline_parallel=1"};
  SearchResult result = search::searchAndExplain(load(kSmall, sets), 5);
  ASSERT_TRUE(result.infeasible);
  EXPECT_EQ(result.infeasible->conflict,
            std::vector<std::string>{"pipeline_parallel"});
  EXPECT_EQ(result.infeasible->reasons,
            (std::vector<std::string>{
                "data_parallel 3 does not divide global_batch_size 8",
                "tensor_parallel 3 does not divide num_attention_heads 4"}));
}

TEST(Report, JsonHasTheContractsShape) {
  Spec spec = load(k70B, {"constraints.max_bubble=0.5"});
  SearchResult result = search::search(spec, 3);
  auto json = nlohmann::json::parse(reportJson({spec, result, 0.5}));
  EXPECT_EQ(json["schema"], "reckon.plan/1");
  EXPECT_EQ(json["model"]["parameters"], 70553706496);
  EXPECT_EQ(json["cluster"]["gpus"], 1024);
  ASSERT_EQ(json["candidates"].size(), 3u);
  EXPECT_TRUE(json["infeasible"].is_null());
  const auto &best = json["candidates"][0];
  for (const char *key :
       {"tensor_parallel", "sequence_parallel", "context_parallel",
        "context_parallel_method", "pipeline_parallel", "virtual_pipeline",
        "pipeline_schedule", "pipeline_layout", "expert_parallel",
        "data_parallel", "zero_stage", "micro_batch_size", "num_micro_batches",
        "recompute"})
    EXPECT_TRUE(best["parallelism"].contains(key)) << key;
  const auto &memory = best["memory"];
  uint64_t peak = 0;
  for (const auto &stage : memory["stages"]) {
    uint64_t sum = 0;
    for (const char *key :
         {"parameters", "gradients", "optimizer", "activations", "logits",
          "communication", "workspace", "reserve"})
      sum += stage[key].get<uint64_t>();
    EXPECT_EQ(stage["total"], sum);
    peak = std::max(peak, sum);
  }
  EXPECT_EQ(memory["peak_bytes"], peak);
  EXPECT_EQ(memory["limit_bytes"], 78ull << 30);
  double parts = 0;
  for (const char *key : {"compute_s", "bubble_s", "exposed_communication_s",
                          "optimizer_s", "other_s"})
    parts += best["time"][key].get<double>();
  EXPECT_NEAR(parts, best["time"]["step_s"].get<double>(), 1e-9);
  EXPECT_EQ(json["search"]["optimal"], true);
}

TEST(Report, InfeasibleJson) {
  Spec spec = load(
      kSmall, {"parallelism.pipeline_parallel=4", "search.space=compilable"});
  SearchResult result = search::searchAndExplain(spec, 3);
  auto json = nlohmann::json::parse(reportJson({spec, result, 0}));
  EXPECT_TRUE(json["candidates"].empty());
  const auto &why = json["infeasible"];
  EXPECT_EQ(why["conflict"][0], "max_bubble");
  EXPECT_EQ(why["nearest"][0]["change"]["constraints.max_bubble"], 0.375);
  EXPECT_TRUE(why["nearest"][0]["candidate"].contains("memory"));
}

} // namespace
