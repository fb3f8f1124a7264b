//===- ChecksTest.cpp - values against each other -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/spec/SpecTesting.h"

namespace reckon::testing_spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The good spec (world 8, batch 16, 4 layers, 4 heads) with settings.
struct Conflict {
  const char *name;
  std::vector<std::string> sets;
  std::vector<std::string> words; ///< none: it must load
};

class Conflicts : public ::testing::TestWithParam<Conflict> {};

TEST_P(Conflicts, AreReported) {
  std::string text = goodAnd("parallelism: {zero_stage: auto}\n");
  Loaded loaded = load(text, GetParam().sets);
  EXPECT_EQ(loaded.spec.ok(), GetParam().words.empty()) << loaded.text();
  for (const std::string &word : GetParam().words)
    EXPECT_THAT(loaded.text(), HasSubstr(word));
}

const std::string P = "parallelism.";

INSTANTIATE_TEST_SUITE_P(
    All, Conflicts,
    ::testing::Values(
        Conflict{"AllFixedAndRight",
                 {P + "tensor_parallel=2", P + "pipeline_parallel=2",
                  P + "data_parallel=2", P + "micro_batch_size=4"},
                 {}},
        // 2 * 2 * 1 = 4 of 8 ranks.
        Conflict{"AllFixedTooFew",
                 {P + "tensor_parallel=2", P + "context_parallel=1",
                  P + "pipeline_parallel=2", P + "data_parallel=1"},
                 {"to equal the world size 8", "got 4 ranks"}},
        Conflict{"TwoFixedTooMany",
                 {P + "pipeline_parallel=4", P + "data_parallel=4"},
                 {"pipeline_parallel 4 * data_parallel 4",
                  "to divide the world size 8", "got 16 ranks"}},
        Conflict{"DataParallelIsTheRest",
                 {P + "tensor_parallel=2", P + "pipeline_parallel=2"},
                 {}},
        Conflict{"PipelineDeeperThanTheModel",
                 {P + "pipeline_parallel=8"},
                 {"of at most num_hidden_layers 4", "use 1, 2 or 4"}},
        Conflict{"EmbeddingAndLossOnStagesOfTheirOwn",
                 {"model.num_hidden_layers=6", P + "pipeline_parallel=8"},
                 {}},
        // 4 heads, 2 of keys: copies, or an error where there are none.
        Conflict{"KeyHeadsAreCopied", {P + "tensor_parallel=4"}, {}},
        Conflict{"MegatronPartsKeyHeads",
                 {P + "tensor_parallel=4", P + "representation=megatron"},
                 {}},
        Conflict{"TorchTitanCopiesNoKeyHeads",
                 {P + "tensor_parallel=4", P + "representation=torchtitan"},
                 {"to divide num_key_value_heads 2 (torchtitan copies no head)",
                  "got 4", "use 1 or 2"}},
        Conflict{"PipelineDoesNotDivideWorld",
                 {P + "pipeline_parallel=3"},
                 {"pipeline_parallel to divide the world size 8", "got 3"}},
        Conflict{"UnevenStagesAreFine",
                 {"model.num_hidden_layers=7", P + "pipeline_parallel=4"},
                 {}},
        Conflict{"DataParallelDoesNotDivideWorld",
                 {P + "data_parallel=5"},
                 {"data_parallel to divide the world size 8", "got 5"}},
        Conflict{"OneGoodEntryOfAListIsEnough",
                 {P + "tensor_parallel=[3, 5, 2]"},
                 {}},
        Conflict{"NoGoodEntry", {P + "tensor_parallel=[3, 5]"}, {"got 3 or 5"}},
        // 16 / 8 = 2 sequences a replica.
        Conflict{"MicroBatchDoesNotDivide",
                 {P + "data_parallel=8", P + "micro_batch_size=4"},
                 {"micro_batch_size to divide global_batch_size 16 / "
                  "data_parallel 8 = 2",
                  "got 4", "use 1 or 2"}},
        Conflict{"MicroBatchAgainstTheWholeBatch",
                 {P + "micro_batch_size=3"},
                 {"to divide global_batch_size 16, got 3"}},
        Conflict{"DerivedDataParallelAgainstTheBatch",
                 {P + "tensor_parallel=1", P + "context_parallel=1",
                  P + "pipeline_parallel=1", "training.global_batch_size=12"},
                 {"global_batch_size to be a multiple of data_parallel 8",
                  "got 12", "use 8 or 16"}},
        Conflict{"BatchBelowDataParallel",
                 {P + "data_parallel=8", "training.global_batch_size=4"},
                 {"got 4; use 8"}},
        Conflict{"Layout", {P + "pipeline_layout=[1, 3]"}, {}},
        Conflict{"LayoutSum",
                 {P + "pipeline_layout=[1, 2]"},
                 {"add up to num_hidden_layers 4, got 3 on 2 stages"}},
        Conflict{"LayoutLength",
                 {P + "pipeline_layout=[1, 3]", P + "pipeline_parallel=4"},
                 {"to have a multiple of pipeline_parallel 4 stages, got 2"}},
        Conflict{"LayoutNotDividingTheWorld",
                 {P + "pipeline_layout=[1, 2, 1]"},
                 {"to divide the world size 8", "got 3"}},
        Conflict{"LayoutWithEmptyStage",
                 {P + "pipeline_layout=[2, 0, 1, 1]"},
                 {"at least one layer in each inner stage"}},
        Conflict{
            "LayoutWithEmptyEnds", {P + "pipeline_layout=[0, 2, 2, 0]"}, {}},
        Conflict{
            "LayoutOfWords", {P + "pipeline_layout=[a]"}, {"whole number"}},
        Conflict{"LayoutString", {P + "pipeline_layout=Et|tttL"}, {}},
        Conflict{"LayoutStringBroken",
                 {P + "pipeline_layout=Et|ttt"},
                 {"begin with E and end with L"}},
        Conflict{"OddHead",
                 {"model.head_dim=15"},
                 {"even model.head_dim", "got 15"}},
        Conflict{"OddDerivedHead",
                 {"model.hidden_size=60"},
                 {"even model.head_dim", "got 15"}},
        Conflict{"OwnHeadSize", {"model.head_dim=32"}, {}},
        Conflict{"TooManyParameters",
                 {"model.hidden_size=16777216", "model.num_hidden_layers=65536",
                  "model.intermediate_size=67108864"},
                 {"at most 1e15 parameters"}},
        Conflict{"TooManyActivations",
                 {"training.sequence_length=1073741824",
                  "training.global_batch_size=1073741824"},
                 {"at most 7e16 activation elements"}},
        Conflict{"ByteNeeds256",
                 {"model.vocab_size=128", "training.data.path=a"},
                 {"at least 256", "got 128"}},
        Conflict{"LargerVocabularyThanBytes",
                 {"model.vocab_size=259", "training.data.path=a"},
                 {}},
        Conflict{"DataWithoutPath",
                 {"training.data.format=text"},
                 {"training.data.path"}},
        Conflict{"VocabularyIsPadded",
                 {"model.vocab_size=259", P + "tensor_parallel=2"},
                 {}},
        Conflict{
            "WarmupTooLong",
            {"training.train_steps=10", "training.lr_schedule.warmup_steps=11"},
            {"warmup_steps of at most train_steps 10, got 11"}},
        Conflict{"WsdDoesNotFit",
                 {"training.train_steps=10",
                  "training.lr_schedule={type: wsd, warmup_steps: 6, "
                  "decay_steps: 5}"},
                 {"to fit into train_steps 10, got 6 and 5"}},
        Conflict{"MinLrAboveLr",
                 {"training.lr_schedule={type: cosine, min_lr: 1.0}"},
                 {"min_lr of at most lr 0.0003, got 1"}},
        Conflict{"BetasOfOne",
                 {"training.optimizer.betas=[0.9, 1.0]"},
                 {"training.optimizer.betas", "\"1.0\""}},
        Conflict{
            "OneBeta", {"training.optimizer.betas=[0.9]"}, {"two numbers"}},
        Conflict{"NegativeLr",
                 {"training.optimizer.lr=-1.0"},
                 {"training.optimizer.lr"}},
        Conflict{"InfiniteLr",
                 {"training.optimizer.lr=.inf"},
                 {"training.optimizer.lr"}},
        Conflict{"YesIsNoSwitch",
                 {"training.checkpoint.async=yes"},
                 {"true or false"}},
        Conflict{"ReserveAboveMemory",
                 {"cluster.memory_reserve_gib=80"},
                 {"below the accelerator's memory of 80 GiB"}},
        Conflict{"Llama3RopeNeedsItsNumbers",
                 {"model.rope_scaling={rope_type: llama3, factor: 8.0}"},
                 {"model.rope_scaling.low_freq_factor",
                  "model.rope_scaling.high_freq_factor",
                  "model.rope_scaling.original_max_position_embeddings"}},
        Conflict{"RopeTypeIsRequired",
                 {"model.rope_scaling={factor: 8.0}"},
                 {"model.rope_scaling.rope_type"}},
        Conflict{"RopeFrequenciesSwapped",
                 {"model.rope_scaling={rope_type: llama3, factor: 8.0, "
                  "low_freq_factor: 4.0, high_freq_factor: 1.0, "
                  "original_max_position_embeddings: 8192}"},
                 {"high_freq_factor above low_freq_factor 4, got 1"}},
        Conflict{"SlurmTextOfTwoLines",
                 {"cluster.slurm.partition=\"a\\nb\""},
                 {"expected one line"}},
        Conflict{
            "EmptyList", {P + "tensor_parallel=[]"}, {"at least one value"}}),
    [](const ::testing::TestParamInfo<Conflict> &info) {
      return std::string(info.param.name);
    });

TEST(Checks, ALayoutSettlesTheNumberOfStages) {
  Spec spec = loadGood(goodSpec, {P + "pipeline_layout=[1, 3]"});
  EXPECT_THAT(*spec.parallelism.pipelineLayout, ElementsAre(1, 3));
  EXPECT_TRUE(spec.parallelism.pipelineParallel.fixed());
  EXPECT_EQ(spec.parallelism.pipelineParallel.value(), 2);
}

/// Settings that are unusual, not wrong, and a word of the warning.
TEST(Checks, Warnings) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{P + "tensor_parallel=4", "cluster.nodes=4", "cluster.gpus_per_node=2",
        "model.num_key_value_heads=4"},
       "crosses nodes of 2 devices"},
      {{P + "zero_stage=1", P + "data_parallel=1"}, "no effect with data_par"},
      {{P + "zero_stage=1", "cluster.gpus_per_node=1", P + "tensor_parallel=1",
        P + "context_parallel=1", P + "pipeline_parallel=1"},
       "no effect with data_par"},
      {{"constraints.memory_limit_gib=90"}, "above the 78 GiB"},
      {{"cluster.gpus_per_node=16"}, "more than the 8 devices"},
      {{"model.max_position_embeddings=32"}, "max_position_embeddings 32"},
      {{"cluster.accelerator=h100-sxm-94gb-hbm2e"}, "no peak is published"},
      {{"training.lr_schedule.decay_steps=3"}, "belongs to wsd"},
      {{"training.checkpoint.keep=2"}, "writes no checkpoints"}};
  for (const auto &[sets, word] : cases) {
    Loaded loaded = load(goodAnd("parallelism: {zero_stage: auto}\n"), sets);
    EXPECT_TRUE(loaded.spec.ok()) << loaded.text();
    EXPECT_THAT(loaded.warnings(), HasSubstr(word));
  }
}

TEST(Checks, MemoryLimitOfTheUser) {
  Spec spec = loadGood(goodSpec, {"constraints.memory_limit_gib=40.5"});
  // 40.5 * 2^30.
  EXPECT_EQ(spec.constraints.memoryLimitBytes(), 43486543872);
  EXPECT_TRUE(spec.constraints.memoryLimitGib.given);
}

} // namespace
} // namespace reckon::testing_spec
