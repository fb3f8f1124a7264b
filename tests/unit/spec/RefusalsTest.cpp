//===- RefusalsTest.cpp - what this version cannot do yet -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/spec/SpecTesting.h"

#include <algorithm>

namespace reckon::testing_spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A key, values that mean nothing special, and values that are refused.
struct Support {
  const char *key;
  std::vector<const char *> accepted;
  std::vector<const char *> refused;
};

class Supports : public ::testing::TestWithParam<Support> {};

TEST_P(Supports, NeutralValues) {
  for (const char *value : GetParam().accepted) {
    Loaded loaded = load(goodSpec, {std::string(GetParam().key) + "=" + value});
    EXPECT_TRUE(loaded.spec.ok()) << value << ": " << loaded.text();
  }
}

TEST_P(Supports, RefusesTheRestWithItsPlace) {
  for (const char *value : GetParam().refused) {
    std::string set = std::string(GetParam().key) + "=" + value;
    Loaded loaded = load(goodSpec, {set});
    ASSERT_EQ(loaded.errors.size(), 1u) << set << "\n" << loaded.text();
    EXPECT_EQ(loaded.spec.error().code, ExitCode::BadSpec);
    EXPECT_EQ(loaded.errors[0].loc.file, "--set " + set);
    EXPECT_THAT(loaded.errors[0].message,
                HasSubstr("is not supported by this version; "));
    EXPECT_THAT(loaded.errors[0].message, HasSubstr(GetParam().key));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Supports,
    ::testing::Values(
        Support{"model.architecture",
                {"llama"},
                {"gpt2", "mixtral", "qwen2", "qwen3", "deepseek_v3"}},
        Support{"model.hf_config", {"none", "null"}, {"./config.json"}},
        Support{"model.tie_word_embeddings", {"false", "none"}, {"true"}},
        Support{"model.attention_bias", {"false"}, {"true"}},
        Support{"model.qk_norm", {"false"}, {"true"}},
        Support{"model.hidden_act", {"silu"}, {"gelu", "relu"}},
        Support{
            "model.rope_scaling", {"none", "null", "{rope_type: default}"}, {}},
        Support{"model.rope_scaling.rope_type", {"none"}, {"yarn", "linear"}},
        Support{"cluster.calibration", {"none"}, {"./c.yaml"}},
        Support{"training.precision", {"fp32", "bf16"}, {"fp8"}},
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
                {"1", "auto", "none", "[1]"},
                {"2", "[2, 4]"}},
        Support{"parallelism.context_parallel_method",
                {"auto", "none", "ring", "all_gather", "all_to_all"},
                {}},
        Support{"parallelism.virtual_pipeline", {"1", "auto"}, {"2"}},
        Support{"parallelism.pipeline_schedule",
                {"auto", "none", "gpipe", "1f1b", "[gpipe, 1f1b]"},
                {"interleaved_1f1b", "bfs", "zb_h1", "zb_h2", "zbv",
                 "dualpipe_v", "synthesized", "csv:table.csv"}},
        Support{"parallelism.expert_parallel", {"1", "auto", "none"}, {"2"}},
        Support{"parallelism.expert_tensor_parallel", {"1"}, {"2"}},
        Support{"parallelism.zero_stage", {"0", "1", "auto"}, {"2", "3"}},
        Support{"parallelism.recompute",
                {"none", "full", "auto", "{layers: 0}"},
                {"selective", "{layers: 2}"}},
        Support{"parallelism.moe_capacity_factor",
                {"auto", "none", "1", "1.0"},
                {"1.25"}},
        Support{"parallelism.representation",
                {"reckon"},
                {"megatron", "deepspeed", "torchtitan"}},
        Support{"search.objective",
                {"step_time"},
                {"time_to_train", "cost", "memory"}}),
    [](const ::testing::TestParamInfo<Support> &info) {
      std::string name = info.param.key;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(Refusals, ListsKeepWhatIsSupportedWithAWarning) {
  Loaded loaded = load(goodAnd("parallelism:\n"
                               "  zero_stage: [1, 3]\n"
                               "  recompute: [full, selective, {layers: 3}]\n"
                               "  pipeline_schedule: [zbv, gpipe]\n"));
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  const ParallelismSpec &p = loaded.spec->parallelism;
  EXPECT_THAT(p.zeroStage.values, ElementsAre(1));
  EXPECT_THAT(p.recompute.values, ElementsAre(Recompute::Full));
  EXPECT_THAT(p.pipelineSchedule.values, ElementsAre(PipelineSchedule::GPipe));
  EXPECT_EQ(loaded.spec->warnings.size(), 4u) << loaded.warnings();
  EXPECT_THAT(loaded.warnings(),
              HasSubstr("spec.yaml:17:19: warning: parallelism.zero_stage: 3"));
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
