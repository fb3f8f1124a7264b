//===- FamiliesTest.cpp - keys and defaults of every family ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Compilable.h"
#include "tests/unit/spec/SpecTesting.h"

namespace reckon::testing_spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string M = "model.", P = "parallelism.";

Spec family(const std::string &name, std::vector<std::string> sets = {}) {
  sets.push_back(M + "architecture=" + name);
  return loadGood(goodSpec, sets);
}

TEST(Families, Gpt2) {
  const ModelSpec m = family("gpt2").model;
  EXPECT_TRUE(*m.tieWordEmbeddings);
  EXPECT_EQ(*m.hiddenAct, "gelu_new");
  EXPECT_EQ(*m.layerNormEpsilon, 1e-5);
  EXPECT_EQ(*m.maxPositionEmbeddings, 64); // the sequence length
  EXPECT_FALSE(*family("gpt2", {M + "tie_word_embeddings=false"})
                    .model.tieWordEmbeddings);
  // Learned positions need no even head; the feed-forward is 4 * 60 wide.
  std::string text = edited(goodSpec, "  intermediate_size: 176\n", "");
  Spec odd = loadGood(text, {M + "architecture=gpt2", M + "hidden_size=60"});
  EXPECT_EQ(*odd.model.intermediateSize, 240);
  EXPECT_EQ(*odd.model.headDim, 15);
  Loaded loaded = load(
      goodSpec, {M + "architecture=gpt2", M + "max_position_embeddings=32"});
  EXPECT_THAT(loaded.text(), HasSubstr("positions that gpt2 learns, got 64"));
}

TEST(Families, Qwen) {
  Spec two = family("qwen2"), three = family("qwen3");
  EXPECT_TRUE(*two.model.attentionBias);
  EXPECT_FALSE(*two.model.qkNorm);
  EXPECT_EQ(*two.model.headDim, 16);
  EXPECT_FALSE(*three.model.attentionBias);
  EXPECT_TRUE(*three.model.qkNorm);
  EXPECT_EQ(*three.model.headDim, 128);
  EXPECT_FALSE(*two.model.tieWordEmbeddings);
  EXPECT_FALSE(
      *family("qwen2", {M + "attention_bias=false"}).model.attentionBias);
}

TEST(Families, Mixtral) {
  const ModelSpec m = family("mixtral").model;
  EXPECT_EQ(*m.numExperts, 8);
  EXPECT_EQ(*m.numExpertsPerTok, 2);
  EXPECT_EQ(*m.moeIntermediateSize, 176);
  EXPECT_EQ(*m.nSharedExperts, 0);
  EXPECT_EQ(*m.firstKDenseReplace, 0);
  EXPECT_EQ(*m.ropeTheta, 1e6);
  EXPECT_EQ(*m.rmsNormEps, 1e-5);
  EXPECT_EQ(*family("mixtral", {M + "n_routed_experts=4"}).model.numExperts, 4);
}

TEST(Families, Deepseek) {
  Spec spec = family("deepseek_v3");
  const ModelSpec &m = spec.model;
  EXPECT_EQ(*m.numExperts, 256);
  EXPECT_EQ(*m.numExpertsPerTok, 8);
  EXPECT_EQ(*m.moeIntermediateSize, 2048);
  EXPECT_EQ(*m.nSharedExperts, 1);
  EXPECT_EQ(*m.firstKDenseReplace, 3);
  EXPECT_EQ(*m.qLoraRank, 1536);
  EXPECT_EQ(*m.kvLoraRank, 512);
  EXPECT_EQ(*m.vHeadDim, 128);
  EXPECT_EQ(*m.headDim, 192); // 128 + 64
  EXPECT_EQ(*m.numNextnPredictLayers, 0);
  // Experts leave the degrees open, unless one of them is fixed.
  EXPECT_THAT(spec.parallelism.expertParallel.values, IsEmpty());
  EXPECT_THAT(spec.parallelism.expertTensorParallel.values, IsEmpty());
  spec = family("deepseek_v3", {P + "expert_parallel=8"});
  EXPECT_THAT(spec.parallelism.expertTensorParallel.values, ElementsAre(1));
  // A dense family has none of these.
  EXPECT_EQ(*loadGood(goodSpec).model.kvLoraRank, 0);
}

TEST(Values, EveryEnumeration) {
  Spec spec = family(
      "llama", {"training.precision=fp8", "training.grad_reduce_dtype=bf16",
                "search.objective=cost", P + "representation=torchtitan",
                P + "context_parallel=2", P + "context_parallel_method=ring",
                P + "recompute={layers: 1}"});
  EXPECT_EQ(*spec.training.precision, Precision::Fp8);
  EXPECT_EQ(*spec.training.gradReduceDtype, GradReduceDtype::Bf16);
  EXPECT_EQ(*spec.search.objective, Objective::Cost);
  EXPECT_EQ(*spec.parallelism.representation, Representation::TorchTitan);
  EXPECT_EQ(spec.parallelism.contextParallelMethod.value(),
            ContextMethod::Ring);
  EXPECT_EQ(spec.parallelism.recompute.value(), Recompute::Full);
  EXPECT_EQ(spec.parallelism.recomputeLayers, 1);
  using S = PipelineSchedule;
  const std::pair<const char *, S> schedules[] = {
      {"gpipe", S::GPipe},
      {"1f1b", S::OneFOneB},
      {"bfs", S::Bfs},
      {"interleaved_1f1b", S::Interleaved},
      {"zb_h1", S::ZbH1},
      {"zb_h2", S::ZbH2},
      {"zbv", S::ZbV},
      {"dualpipe_v", S::DualPipeV},
      {"synthesized", S::Synthesized}};
  for (const auto &[word, value] : schedules) {
    spec = family("llama", {P + "pipeline_schedule=" + word});
    EXPECT_EQ(spec.parallelism.pipelineSchedule.value(), value) << word;
  }
  EXPECT_FALSE(family("llama", {P + "moe_capacity_factor=auto"})
                   .parallelism.moeCapacityFactor.given);
  EXPECT_TRUE(family("mixtral", {P + "moe_capacity_factor=none"})
                  .parallelism.moeCapacityFactor.given);
  EXPECT_EQ(*family("mixtral", {P + "moe_capacity_factor=1.25"})
                 .parallelism.moeCapacityFactor,
            1.25);
}

TEST(Values, PathsAreRelativeToTheirFile) {
  FakeFileSystem files;
  files.files["jobs/spec.yaml"] =
      edited(goodSpec, "cluster:\n", "cluster:\n  calibration: c.yaml\n");
  files.files["jobs/c.yaml"] = "constants: {eta: 1}\n";
  files.files["more/b.yaml"] =
      "parallelism: {pipeline_schedule: [1f1b, \"csv:t.csv\"]}\n";
  std::vector<Diagnostic> errors;
  Result<Spec> spec =
      loadSpec({"jobs/spec.yaml", "more/b.yaml"}, {}, errors, files);
  ASSERT_TRUE(spec.ok()) << joinDiagnostics(errors);
  EXPECT_EQ(*spec->cluster.calibration, "jobs/c.yaml");
  EXPECT_EQ(spec->parallelism.scheduleFile, "more/t.csv");
  EXPECT_TRUE(spec->parallelism.pipelineSchedule.allows(PipelineSchedule::Csv));
}

/// What the good spec (world 8, batch 16, 4 layers, 4 heads) does with more
/// dimensions; no words: it must load.
struct Case {
  const char *name;
  std::vector<std::string> sets;
  std::vector<std::string> words;
};

class Dimensions : public ::testing::TestWithParam<Case> {};

TEST_P(Dimensions, AreChecked) {
  Loaded loaded = load(goodSpec, GetParam().sets);
  EXPECT_EQ(loaded.spec.ok(), GetParam().words.empty()) << loaded.text();
  for (const std::string &word : GetParam().words)
    EXPECT_THAT(loaded.text(), HasSubstr(word));
}

const std::string Moe = M + "architecture=mixtral";
const std::string Pp4 = P + "pipeline_parallel=4";
const std::string Deep = M + "num_hidden_layers=8";

INSTANTIATE_TEST_SUITE_P(
    All, Dimensions,
    ::testing::Values(
        // 2 * 2 * 2 * 2 = 16 of 8 ranks.
        Case{"World",
             {P + "tensor_parallel=2", P + "context_parallel=2",
              P + "pipeline_parallel=2", P + "data_parallel=2"},
             {"context_parallel 2", "to equal the world size 8",
              "got 16 ranks"}},
        Case{"ContextDerivesData",
             {P + "tensor_parallel=1", P + "context_parallel=2",
              P + "pipeline_parallel=2", "training.global_batch_size=6"},
             {}},
        // 8 / 2 / 2 = 2 replicas of 5 sequences do not exist.
        Case{"ContextDerivesDataForTheBatch",
             {P + "tensor_parallel=2", P + "context_parallel=2",
              P + "pipeline_parallel=1", "training.global_batch_size=5"},
             {"multiple of data_parallel 2"}},
        Case{"SequenceSplitInTwoBlocksARank",
             {P + "context_parallel=4", "training.sequence_length=36"},
             {"half of training.sequence_length 36", "got 4"}},
        // 4 heads / tp 2 = 2 heads, cp 4.
        Case{"HeadsForAllToAll",
             {P + "tensor_parallel=2", P + "context_parallel=4",
              P + "context_parallel_method=all_to_all"},
             {"context_parallel 4 to divide the 2 heads of a rank"}},
        Case{"ContextNeedsAMethod",
             {P + "context_parallel=2", P + "context_parallel_method=none"},
             {"expected ring, all_gather or all_to_all"}},
        Case{"ExpertsOfADenseModel",
             {P + "expert_parallel=2"},
             {"of 1 for a model without experts"}},
        Case{"ExpertsDoNotDivide",
             {Moe, P + "expert_parallel=16", "cluster.nodes=2"},
             {"to divide the 8 experts, got 16"}},
        // 4 * 2 = 8 of the 8 / 4 = 2 ranks of a stage.
        Case{
            "ExpertGroupLargerThanAStage",
            {Moe, Pp4, P + "expert_parallel=4", P + "expert_tensor_parallel=2"},
            {"expert_parallel 4 * expert_tensor_parallel 2 to divide the 2 "
             "ranks",
             "got 8"}},
        Case{"ExpertGroupFits",
             {Moe, P + "pipeline_parallel=1", P + "expert_parallel=4",
              P + "expert_tensor_parallel=2"},
             {}},
        Case{"ExpertWidth",
             {Moe, P + "expert_tensor_parallel=3"},
             {"to divide moe_intermediate_size 176"}},
        Case{"MoreExpertsThanThereAre",
             {Moe, M + "num_experts_per_tok=9"},
             {"at most the 8 experts, got 9"}},
        Case{"TwoNamesOfExperts",
             {Moe, M + "num_local_experts=4", M + "n_routed_experts=8"},
             {"to equal num_local_experts 4, got 8"}},
        Case{"ChunksNeedLayers",
             {Pp4, P + "virtual_pipeline=2"},
             {"virtual_pipeline times pipeline_parallel 4", "got 2"}},
        Case{
            "ChunksNeedASchedule",
            {Deep, Pp4, P + "virtual_pipeline=2", P + "pipeline_schedule=1f1b"},
            {"virtual_pipeline 1 for pipeline_schedule 1f1b, got 2"}},
        Case{"Interleaved",
             {Deep, Pp4, P + "virtual_pipeline=2",
              P + "pipeline_schedule=interleaved_1f1b"},
             {}},
        // 16 / (2 * 4) = 2 micro-batches on 4 pipeline ranks.
        Case{"InterleavedGroups",
             {Deep, Pp4, P + "virtual_pipeline=2", P + "tensor_parallel=1",
              P + "data_parallel=2", P + "micro_batch_size=4",
              P + "pipeline_schedule=interleaved_1f1b"},
             {"that pipeline_parallel 4 divides", "got 2"}},
        Case{"VShape",
             {Deep, Pp4, P + "virtual_pipeline=3", P + "pipeline_schedule=zbv"},
             {"virtual_pipeline 2 for pipeline_schedule zbv"}},
        // 16 / 2 / 2 = 4 micro-batches, 8 needed.
        Case{"DualPipeFill",
             {Deep, Pp4, P + "data_parallel=2", P + "micro_batch_size=2",
              P + "tensor_parallel=1", P + "pipeline_schedule=dualpipe_v"},
             {"at least 8 micro-batches", "got 4"}},
        Case{"RecomputeMoreThanAStage",
             {Pp4, P + "virtual_pipeline=1", P + "recompute={layers: 2}"},
             {"at most the 1 layers of a stage, got {layers: 2}"}},
        Case{"RecomputeInAList",
             {P + "recompute=[none, {layers: 2}]"},
             {"write it alone"}},
        Case{"LayoutOfChunks",
             {P + "pipeline_parallel=2", P + "virtual_pipeline=2",
              P + "pipeline_layout=Et|t|t|tL"},
             {}},
        Case{"LayoutOfTooFewChunks",
             {P + "pipeline_parallel=2", P + "virtual_pipeline=2",
              P + "pipeline_layout=Ett|ttL"},
             {"to have pipeline_parallel 2 * virtual_pipeline 2 stages, got "
              "2"}},
        Case{"LayoutWithPredictionLayers",
             {P + "pipeline_layout=Ett|ttmL"},
             {"as many m", "num_nextn_predict_layers 0, got 1"}},
        Case{
            "MegatronSchedules",
            {Pp4, P + "representation=megatron", P + "pipeline_schedule=zb_h1"},
            {"what megatron can do", "pipeline_schedule zb_h1",
             "interleaved_1f1b"}},
        Case{"DeepSpeedPipelines",
             {Pp4, P + "representation=deepspeed", P + "zero_stage=3"},
             {"zero_stage 3 with pipeline_parallel 4"}},
        Case{"TorchTitanPipelines",
             {Pp4, P + "representation=torchtitan", P + "zero_stage=3"},
             {}},
        Case{"TorchTitanContext",
             {P + "representation=torchtitan", P + "context_parallel=2",
              P + "context_parallel_method=all_to_all"},
             {"use ring or all_gather"}},
        Case{"TwoTables",
             {P + "pipeline_schedule=[\"csv:a\", \"csv:b\"]"},
             {"one csv: file"}},
        Case{"NoTable", {P + "pipeline_schedule=\"csv:\""}, {"a file behind"}},
        Case{"CapacityBelowOne",
             {Moe, P + "moe_capacity_factor=0.5"},
             {"moe_capacity_factor", "from 1 to", "too small"}}),
    [](const ::testing::TestParamInfo<Case> &info) {
      return std::string(info.param.name);
    });

TEST(Dimensions, ALayoutNarrowsRanksAndChunks) {
  const std::string layout = P + "pipeline_layout=[1, 1, 1, 1]";
  // One chunk a rank unless a key says otherwise.
  ParallelismSpec p = family("llama", {layout}).parallelism;
  EXPECT_THAT(p.pipelineParallel.values, ElementsAre(4));
  EXPECT_THAT(p.virtualPipeline.values, ElementsAre(1));
  p = family("llama", {layout, P + "pipeline_parallel=2"}).parallelism;
  EXPECT_THAT(p.virtualPipeline.values, ElementsAre(2));
  p = family("llama", {layout, P + "virtual_pipeline=2"}).parallelism;
  EXPECT_THAT(p.pipelineParallel.values, ElementsAre(2));
  p = family("llama", {layout, P + "pipeline_parallel=[1, 2, 8]"}).parallelism;
  EXPECT_THAT(p.pipelineParallel.values, ElementsAre(1, 2));
  EXPECT_THAT(p.virtualPipeline.values, ElementsAre(4, 2));
}

TEST(Dimensions, NoOpsAreWarnings) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{P + "moe_capacity_factor=2"}, "model without experts"},
      {{P + "pipeline_parallel=1", P + "virtual_pipeline=2"},
       "no effect with pipeline_parallel 1"},
      {{Pp4, P + "virtual_pipeline=1",
        P + "pipeline_schedule=interleaved_1f1b"},
       "is 1f1b with virtual_pipeline 1"},
      {{"training.precision=fp8", "cluster.accelerator=a100-sxm-80gb"},
       "fp8 has no peak on a100-sxm-80gb"}};
  for (const auto &[sets, word] : cases) {
    Loaded loaded = load(goodSpec, sets);
    EXPECT_TRUE(loaded.spec.ok()) << loaded.text();
    EXPECT_THAT(loaded.warnings(), HasSubstr(word));
  }
}

} // namespace
} // namespace reckon::testing_spec
