//===- ExportTest.cpp - exported files against goldens --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// golden/ has the files that tests/export/validate.py gave to the frameworks'
// own parsers; RECKON_UPDATE_GOLDENS=1 writes them anew.
//
//===----------------------------------------------------------------------===//
#include "tests/export/ExportTesting.h"

#include "frontends/export/Megatron.h"
#include "runtime/base/Os.h"

#include <cstdlib>

using namespace reckon;
using namespace reckon::exports;
using namespace reckon::testing_export;

namespace {

void expectGolden(const std::string &spec, Target target,
                  const std::vector<std::string> &sets = {}) {
  Exported out = exported(target, load(spec, sets));
  ASSERT_EQ(joinDiagnostics(out.errors), "");
  for (const ExportFile &file : out.files) {
    std::string path = folder() + "golden/" + spec + "." + file.name;
    if (std::getenv("RECKON_UPDATE_GOLDENS")) {
      ASSERT_TRUE(systemFiles().write(path, file.text).ok());
      continue;
    }
    Result<std::string> golden = systemFiles().read(path);
    ASSERT_TRUE(golden.ok()) << path;
    EXPECT_EQ(file.text, *golden) << path;
  }
}

std::string refusal(Target target, const std::string &spec,
                    const std::vector<std::string> &sets) {
  return joinDiagnostics(exported(target, load(spec, sets)).errors);
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(Export, MegatronGoldens) {
  for (const char *spec : {"dense", "ends", "moe", "mla", "gpt2"})
    expectGolden(spec, Target::Megatron);
}

// Experts without what AutoEP does not go with: tensor ranks beside a
// pipeline, several chunks, a capacity.
const std::vector<std::string> kAutoEp = {
    "parallelism.tensor_parallel=1",
    "parallelism.sequence_parallel=auto",
    "parallelism.pipeline_parallel=1",
    "parallelism.virtual_pipeline=1",
    "parallelism.pipeline_schedule=1f1b",
    "parallelism.pipeline_layout=auto",
    "parallelism.zero_stage=2",
    "parallelism.recompute=full",
    "parallelism.moe_capacity_factor=none"};

TEST(Export, DeepSpeedGoldens) {
  for (const char *spec : {"zero3", "pipeline"})
    expectGolden(spec, Target::DeepSpeed);
  expectGolden("moe", Target::DeepSpeed, kAutoEp);
}

// A config.json of qwen3_moe is read as mixtral with qk_norm.
TEST(Export, AutoEpPresetOfTheModel) {
  auto preset = [](std::vector<std::string> more) {
    std::vector<std::string> sets = kAutoEp;
    sets.insert(sets.end(), more.begin(), more.end());
    std::string text = fileOf(exported(Target::DeepSpeed, load("moe", sets)),
                              "ds_config.json");
    size_t at = text.find("\"preset_model\": ");
    return at == std::string::npos ? "" : text.substr(at, 29);
  };
  EXPECT_TRUE(has(preset({}), "\"mixtral\""));
  EXPECT_TRUE(has(preset({"model.qk_norm=true"}), "\"qwen3_moe\""));
}

TEST(Export, DeepSpeedRefusesWhatAutoEpDoes) {
  auto with = [](std::vector<std::string> more) {
    std::vector<std::string> sets = kAutoEp;
    sets.insert(sets.end(), more.begin(), more.end());
    return refusal(Target::DeepSpeed, "moe", sets);
  };
  std::string both =
      with({"parallelism.tensor_parallel=2", "parallelism.pipeline_parallel=2",
            "parallelism.zero_stage=1"});
  EXPECT_TRUE(has(both, "specs/moe.yaml:26:3")) << both;
  EXPECT_TRUE(has(both, "not with both")) << both;
  std::string capacity = with({"parallelism.moe_capacity_factor=1.25"});
  EXPECT_TRUE(has(capacity, "set it to none")) << capacity;
}

TEST(Export, TorchTitanGoldens) {
  for (const char *spec : {"zero3", "qwen3"})
    expectGolden(spec, Target::TorchTitan);
  // Two key heads on two ranks, since torchtitan copies none.
  expectGolden("ends", Target::TorchTitan,
               {"parallelism.tensor_parallel=2", "parallelism.zero_stage=0",
                "parallelism.recompute=full"});
  // Plain replicas, torchtitan's routing, bf16: what it has.
  expectGolden("mla", Target::TorchTitan,
               {"parallelism.zero_stage=0", "training.precision=bf16"});
}

// Layers as they are: 3, six stages of 4, 5.
TEST(Export, LayoutString) {
  EXPECT_EQ(layoutString({3, 4, 4, 4, 4, 4, 4, 5}, 0), "Et*3|(t*4|)*6t*5L");
  EXPECT_EQ(layoutString({1, 2, 3, 2}, 1), "Et|t*2|t*3|t*2mL");
  EXPECT_EQ(layoutString({0, 4, 0}, 0), "E|t*4|L");
  EXPECT_EQ(layoutString({2}, 0), "Et*2L");
}

// 64 devices, ZeRO-3, 2 sequences: 2 * 2 * 64 = 256 sequences.
TEST(Export, DeepSpeedBatchTriple) {
  std::string json =
      fileOf(exported(Target::DeepSpeed, load("zero3")), "ds_config.json");
  EXPECT_TRUE(has(json, "\"train_batch_size\": 256"));
  EXPECT_TRUE(has(json, "\"train_micro_batch_size_per_gpu\": 2"));
  EXPECT_TRUE(has(json, "\"gradient_accumulation_steps\": 2"));
  EXPECT_TRUE(has(json, "\"stage\": 3"));
}

// A local batch is what a pipeline splits: 4 micro-batches of 1.
TEST(Export, TorchTitanBatches) {
  Spec spec =
      load("mla", {"parallelism.zero_stage=0", "training.precision=bf16"});
  std::string text =
      fileOf(exported(Target::TorchTitan, spec), "torchtitan_config.py");
  EXPECT_TRUE(has(text, "local_batch_size=4,"));
  EXPECT_TRUE(has(text, "pipeline_parallel_microbatch_size=1,"));
  EXPECT_TRUE(has(text, "disable_cuda_graphs=True"));
  text = fileOf(exported(Target::TorchTitan, load("zero3")),
                "torchtitan_config.py");
  EXPECT_TRUE(has(text, "local_batch_size=2,"));
  EXPECT_TRUE(has(text, "fsdp_reshard_after_forward=\"always\""));
}

TEST(Export, RefusalsNameTheKeysLine) {
  std::string zero3 = refusal(Target::Megatron, "zero3", {});
  EXPECT_TRUE(has(zero3, "specs/zero3.yaml:24:3: error: expected a choice that "
                         "megatron can run"))
      << zero3;
  EXPECT_TRUE(
      has(refusal(Target::Megatron, "dense", {"model.rope_theta=500000.5"}),
          "--set model.rope_theta=500000.5"));
  EXPECT_TRUE(has(refusal(Target::Megatron, "dense",
                          {"model.rope_scaling.low_freq_factor=2"}),
                  "built into Megatron"));
  EXPECT_TRUE(
      has(refusal(Target::DeepSpeed, "zero3", {"training.precision=fp8"}),
          "got fp8"));
  EXPECT_TRUE(has(refusal(Target::DeepSpeed, "zero3",
                          {"parallelism.recompute={layers: 3}"}),
                  "recompute none or full"));
  std::string gpt2 = refusal(Target::TorchTitan, "gpt2", {});
  EXPECT_TRUE(has(gpt2, "specs/gpt2.yaml:4:3: error: expected a model that "
                        "torchtitan 0.3.0 has"))
      << gpt2;
  EXPECT_TRUE(has(
      refusal(Target::TorchTitan, "zero3", {"training.grad_reduce_dtype=bf16"}),
      "the only one of torchtitan"));
}

// Models and precisions that a target has no words for: what, and what to do.
TEST(Export, RefusalsNameWhatAndARemedy) {
  struct Case {
    Target target;
    const char *spec;
    std::vector<std::string> sets;
    const char *got, *remedy;
  };
  for (const Case &c : {
           Case{Target::TorchTitan,
                "gpt2",
                {},
                "model.architecture gpt2",
                "export to megatron"},
           {Target::TorchTitan,
            "moe",
            {},
            "model.architecture mixtral",
            "export to megatron"},
           {Target::TorchTitan,
            "zero3",
            {"model.architecture=qwen2"},
            "model.architecture qwen2",
            "export to megatron"},
           {Target::TorchTitan,
            "zero3",
            {"training.precision=fp8"},
            "got fp8",
            "change it"},
           {Target::TorchTitan,
            "zero3",
            {"parallelism.recompute={layers: 3}"},
            "got layers 3",
            "set parallelism.recompute"},
           {Target::DeepSpeed,
            "zero3",
            {"training.precision=fp8"},
            "got fp8",
            "change it"},
       }) {
    std::string text = refusal(c.target, c.spec, c.sets);
    EXPECT_TRUE(has(text, c.got)) << text;
    EXPECT_TRUE(has(text, c.remedy)) << text;
  }
}

// {layers: n}: the first n of each virtual stage, or all where there are
// fewer; lists that are not that are an error.
TEST(Export, MegatronRecomputesSomeLayers) {
  Spec spec = load("ends", {"parallelism.recompute={layers: 2}",
                            "parallelism.virtual_pipeline=1",
                            "parallelism.pipeline_schedule=1f1b",
                            "parallelism.pipeline_layout=[1, 2, 3, 0]"});
  std::string text = fileOf(exported(Target::Megatron, spec), "megatron.args");
  EXPECT_TRUE(has(text, "--recompute-method block\n"
                        "--recompute-num-layers 2\n"))
      << text;
  model::Choice choice = onlyChoice(spec);
  EXPECT_EQ(choice.recomputeLayers, (std::vector<int64_t>{1, 2, 2, 0}));
  choice.recomputeLayers = {0, 2, 2, 0};
  EXPECT_TRUE(
      has(joinDiagnostics(exportTo(Target::Megatron, {spec, choice}).errors),
          "one number of recomputed layers"));
}

TEST(Export, ListsWhatIsNotExpressed) {
  Exported out = exported(Target::DeepSpeed, load("zero3"));
  std::string notes = fileOf(out, "ds_config.notes.txt");
  EXPECT_TRUE(has(notes, "# not expressed: training.seed"));
  for (const std::string &line : out.notExpressed)
    EXPECT_TRUE(has(notes, line)) << line;
}

// Parameters of a Llama 1B, 1,498,482,688, at 4 + 4 + 8 bytes over 64 ranks.
TEST(Export, AccountingHasTheFrameworksStates) {
  Spec spec = load("zero3");
  model::Choice choice = onlyChoice(spec);
  std::string text = accountingText(Target::TorchTitan, {spec, choice});
  EXPECT_TRUE(has(text, "torchtitan"));
  // 1,498,482,688 * 8 / 64 = 187,310,336 bytes of moments.
  EXPECT_TRUE(has(text, "187,310,336")) << text;
}

// What torchtitan 0.3.0 counted in the models of the goldens, built on its
// meta device by validate.py.
TEST(Export, ModelsHaveTorchTitansParameters) {
  EXPECT_EQ(model::modelShape(load("ends")).parameters(), 883'976'192);
  EXPECT_EQ(model::modelShape(load("zero3")).parameters(), 1'498'482'688);
  EXPECT_EQ(model::modelShape(load("mla")).parameters(), 4'707'376'384);
  EXPECT_EQ(model::modelShape(load("qwen3")).parameters(), 8'190'735'360);
}

TEST(Export, NarrowsOpenKeysOnly) {
  Spec spec = load("zero3");
  narrowToTarget(Target::TorchTitan, spec);
  EXPECT_EQ(*spec.parallelism.representation, Representation::TorchTitan);
  EXPECT_FALSE(
      spec.parallelism.contextParallelMethod.allows(ContextMethod::Ring));
}
