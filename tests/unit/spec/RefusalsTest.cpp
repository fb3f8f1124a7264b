//===- RefusalsTest.cpp - what reads but cannot be compiled yet -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Compilable.h"
#include "tests/unit/spec/SpecTesting.h"

#include <algorithm>

namespace reckon::testing_spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A key, values that can be compiled, and values that only the planner takes.
struct Support {
  const char *key;
  std::vector<const char *> accepted;
  std::vector<const char *> refused;
};

class Supports : public ::testing::TestWithParam<Support> {};

TEST_P(Supports, WhatCanBeCompiled) {
  for (const char *value : GetParam().accepted) {
    Loaded loaded = load(goodSpec, {std::string(GetParam().key) + "=" + value});
    ASSERT_TRUE(loaded.spec.ok()) << value << ": " << loaded.text();
    EXPECT_THAT(joinDiagnostics(notCompilable(*loaded.spec)), IsEmpty());
  }
}

TEST_P(Supports, RefusesTheRestWithItsPlace) {
  for (const char *value : GetParam().refused) {
    std::string set = std::string(GetParam().key) + "=" + value;
    Loaded loaded = load(goodSpec, {set});
    ASSERT_TRUE(loaded.spec.ok()) << set << "\n" << loaded.text();
    std::vector<Diagnostic> found = notCompilable(*loaded.spec);
    ASSERT_FALSE(found.empty()) << set;
    EXPECT_EQ(found[0].severity, Severity::Error);
    EXPECT_EQ(found[0].loc.file, "--set " + set);
    EXPECT_THAT(found[0].message, HasSubstr("cannot be compiled yet; use"));
    EXPECT_THAT(found[0].message, HasSubstr(GetParam().key));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Supports,
    ::testing::Values(
        Support{"model.architecture",
                {"llama"},
                {"gpt2", "mixtral", "qwen2", "qwen3", "deepseek_v3"}},
        Support{"model.hf_config", {"none", "null"}, {}},
        Support{"model.tie_word_embeddings", {"false", "none"}, {"true"}},
        Support{"model.attention_bias", {"false"}, {"true"}},
        Support{"model.qk_norm", {"false"}, {"true"}},
        Support{"model.hidden_act", {"silu"}, {"gelu", "relu"}},
        Support{"model.rope_scaling",
                {"none", "null", "{rope_type: default}", "{rope_type: none}"},
                {"{rope_type: yarn, factor: 2}", "{rope_type: longrope}"}},
        Support{"cluster.calibration", {"none"}, {}},
        Support{"training.precision", {"fp32", "bf16", "fp8"}, {}},
        Support{"training.grad_reduce_dtype", {"fp32"}, {"bf16"}},
        Support{
            "training.data",
            {"{path: a}"},
            {"{path: a, format: megatron}", "{path: a, tokenizer: t.json}"}},
        Support{"training.checkpoint.interval", {"auto", "none", "0"}, {"100"}},
        Support{"parallelism.sequence_parallel",
                {"false", "true", "auto", "none", "[true, false]"},
                {}},
        Support{"parallelism.context_parallel",
                {"1", "auto", "none", "[1]", "[2, 1]"},
                {"2", "[2, 4]"}},
        Support{"parallelism.context_parallel_method",
                {"auto", "none", "ring", "all_gather", "all_to_all"},
                {}},
        Support{"parallelism.virtual_pipeline", {"1", "auto"}, {"2"}},
        Support{"parallelism.pipeline_schedule",
                {"auto", "none", "gpipe", "1f1b", "[gpipe, 1f1b]"},
                {"interleaved_1f1b", "bfs", "zb_h1", "zb_h2", "zbv",
                 "dualpipe_v", "synthesized", "csv:table.csv"}},
        Support{"parallelism.expert_parallel", {"1", "auto", "none"}, {}},
        Support{"parallelism.expert_tensor_parallel", {"1"}, {}},
        Support{"parallelism.zero_stage", {"0", "1", "auto"}, {"2", "3"}},
        Support{"parallelism.recompute",
                {"none", "full", "auto", "{layers: 0}"},
                {"selective", "{layers: 2}"}},
        Support{"parallelism.moe_capacity_factor",
                {"auto", "none", "1", "1.25"},
                {}},
        Support{"parallelism.representation",
                {"reckon"},
                {"megatron", "deepspeed", "torchtitan"}},
        Support{"search.objective",
                {"step_time", "time_to_train", "cost", "memory"},
                {}}),
    [](const ::testing::TestParamInfo<Support> &info) {
      std::string name = info.param.key;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(Refusals, ListsAreNarrowedWithAWarning) {
  Loaded loaded = load(goodAnd("parallelism:\n"
                               "  zero_stage: [1, 3]\n"
                               "  recompute: [full, selective]\n"
                               "  pipeline_schedule: [zbv, gpipe]\n"));
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  Spec spec = *loaded.spec;
  EXPECT_THAT(spec.parallelism.zeroStage.values, ElementsAre(1, 3));
  EXPECT_THAT(notCompilable(spec), IsEmpty());
  EXPECT_THAT(spec.warnings, IsEmpty());
  restrictToCompilable(spec);
  const ParallelismSpec &p = spec.parallelism;
  EXPECT_EQ(*spec.search.space, SearchSpace::Compilable);
  EXPECT_THAT(p.zeroStage.values, ElementsAre(1));
  EXPECT_THAT(p.recompute.values, ElementsAre(Recompute::Full));
  EXPECT_THAT(p.pipelineSchedule.values, ElementsAre(PipelineSchedule::GPipe));
  EXPECT_THAT(p.virtualPipeline.values, ElementsAre(1));
  EXPECT_EQ(spec.warnings.size(), 3u) << joinDiagnostics(spec.warnings);
  EXPECT_THAT(joinDiagnostics(spec.warnings),
              HasSubstr("spec.yaml:17:3: warning: parallelism.zero_stage: 3"));
  // Once more changes nothing.
  restrictToCompilable(spec);
  EXPECT_EQ(spec.warnings.size(), 3u);
}

TEST(Refusals, EveryKeyIsNamedAtOnce) {
  Spec spec = loadGood(goodAnd("parallelism: {zero_stage: 2, recompute: "
                               "selective}\n"),
                       {"model.architecture=qwen2", "model.vocab_size=257",
                        "parallelism.tensor_parallel=2",
                        "parallelism.pipeline_layout=[0, 4]"});
  std::string text = joinDiagnostics(notCompilable(spec));
  for (const char *words :
       {"model.architecture: qwen2 cannot be compiled yet; use llama",
        "spec.yaml:16:15: error: parallelism.zero_stage: 2",
        "parallelism.recompute: selective", "does not divide vocab_size 257",
        "a stage without layers"})
    EXPECT_THAT(text, HasSubstr(words));
  EXPECT_EQ(notCompilable(spec).size(), 5u) << text;
}

TEST(Refusals, CopiedKeyHeadsAndEmptyStagesAreOnlyAccounted) {
  Spec spec = loadGood(goodSpec, {"parallelism.tensor_parallel=4"});
  EXPECT_THAT(joinDiagnostics(notCompilable(spec)),
              HasSubstr("4 does not divide num_key_value_heads 2"));
  spec = loadGood(goodSpec, {"model.num_hidden_layers=6",
                             "parallelism.pipeline_parallel=8"});
  EXPECT_THAT(joinDiagnostics(notCompilable(spec)),
              HasSubstr("8 stages for 6 layers"));
}

TEST(Refusals, UnknownWordsAreNotCalledUnsupported) {
  Loaded loaded = load(goodSpec, {"parallelism.pipeline_schedule=1f1"});
  EXPECT_THAT(loaded.text(), HasSubstr("did you mean 1f1b?"));
  loaded = load(goodSpec, {"parallelism.recompute={layers: x}"});
  EXPECT_THAT(loaded.text(), HasSubstr("a map"));
  loaded = load(goodSpec, {"parallelism.zero_stage=4"});
  EXPECT_THAT(loaded.text(), HasSubstr("from 0 to 3"));
}

TEST(Refusals, KeysOfOtherModelsAreWarnings) {
  Loaded loaded = load(edited(goodSpec, "cluster:",
                              "  num_local_experts: 8\n"
                              "  q_lora_rank: 0\n"
                              "  layer_norm_epsilon: 1.0e-5\n"
                              "cluster:"));
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  EXPECT_EQ(loaded.warnings(),
            "spec.yaml:9:3: warning: model.num_local_experts does not apply "
            "to llama and is ignored\n"
            "spec.yaml:11:3: warning: model.layer_norm_epsilon does not apply "
            "to llama and is ignored");
  EXPECT_THAT(load(goodSpec, {"model.num_local_experts=x"}).text(),
              HasSubstr("whole number"));
}

TEST(Refusals, SequenceParallelWithOneTensorRankIsANoOp) {
  Loaded loaded = load(goodAnd("parallelism:\n  tensor_parallel: 1\n"
                               "  sequence_parallel: true\n"));
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  EXPECT_THAT(loaded.spec->parallelism.sequenceParallel.values,
              ElementsAre(false));
  EXPECT_THAT(loaded.warnings(), HasSubstr("spec.yaml:18:3: warning"));
}

} // namespace
} // namespace reckon::testing_spec
