//===- ImportTest.cpp - Megatron arguments to a spec and back -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/export/ExportTesting.h"

#include "frontends/import/hf/Import.h"
#include "frontends/import/megatron/Flags.h"
#include "frontends/import/megatron/Import.h"
#include "frontends/import/megatron/Importer.h"
#include "frontends/import/megatron/Words.h"
#include "runtime/base/Os.h"

using namespace reckon;
using namespace reckon::megatron;
using namespace reckon::testing_export;
using exports::Target;

namespace {

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

const char *kSmall = R"(--num-layers 8 --hidden-size 64 --num-attention-heads 4
--seq-length 128 --max-position-embeddings 128 --micro-batch-size 1
--global-batch-size 8 --vocab-size 256 --normalization RMSNorm --swiglu
--position-embedding-type rope --disable-bias-linear
)";

Imported importText(const std::string &text) {
  return importArguments("job.args", text, "");
}

std::string errorsOf(const std::string &text) {
  return joinDiagnostics(importText(text).errors);
}

/// A spec from text in memory, on the test's devices.
Spec specOf(const std::string &yaml) {
  FakeFileSystem files;
  files.files["imported.yaml"] = yaml;
  files.files["cluster.yaml"] =
      *systemFiles().read(folder() + "specs/cluster.yaml");
  std::vector<Diagnostic> errors;
  Result<Spec> spec =
      loadSpec({"imported.yaml", "cluster.yaml"}, {}, errors, files);
  EXPECT_TRUE(spec.ok()) << joinDiagnostics(errors) << yaml;
  return spec.ok() ? *spec : Spec{};
}

std::vector<std::string> texts(const Command &command) {
  std::vector<std::string> list;
  for (const Word &word : command)
    list.push_back(word.text + (word.unknown.empty() ? "" : "?"));
  return list;
}

using List = std::vector<std::string>;

} // namespace

// spec -> arguments -> spec -> arguments: the same text, for the argument file
// and for the launch script, of dense, expert, latent-attention models with
// even and uneven layouts.
TEST(Import, IsAFixedPointWithExport) {
  for (const char *name : {"dense", "ends", "moe", "mla", "gpt2"}) {
    exports::Exported first = exported(Target::Megatron, load(name));
    for (const char *file : {"megatron.args", "megatron.sh"}) {
      Imported imported = importArguments(file, fileOf(first, file), "");
      ASSERT_EQ(joinDiagnostics(imported.errors), "") << name;
      exports::Exported second =
          exported(Target::Megatron, specOf(imported.yaml));
      EXPECT_EQ(fileOf(second, "megatron.args"), fileOf(first, "megatron.args"))
          << name << "\n"
          << imported.yaml;
      EXPECT_EQ(fileOf(second, "megatron.sh"), fileOf(first, "megatron.sh"));
      // And import of the export of the import is the import.
      EXPECT_EQ(importArguments(file, fileOf(second, file), "").yaml,
                imported.yaml);
    }
  }
}

TEST(Import, KeepsTheModelsParameters) {
  for (const char *name : {"dense", "ends", "moe", "mla", "gpt2"}) {
    Spec spec = load(name);
    Imported imported = importArguments(
        "a", fileOf(exported(Target::Megatron, spec), "megatron.args"), "");
    EXPECT_EQ(model::modelShape(specOf(imported.yaml)).parameters(),
              model::modelShape(spec).parameters())
        << name;
  }
}

TEST(Import, UnknownFlagHasItsLineAndTheNearest) {
  std::string errors =
      errorsOf(std::string(kSmall) + "--tensor-model-paralel-size 2\n");
  EXPECT_TRUE(has(errors, "job.args:5:1: error: expected a Megatron flag, got "
                          "the unknown --tensor-model-paralel-size; did you "
                          "mean --tensor-model-parallel-size?"))
      << errors;
}

TEST(Import, RefusesWhatItCannotPlan) {
  EXPECT_TRUE(has(errorsOf(std::string(kSmall) + "--use-megatron-fsdp\n"),
                  "job.args:5:1: error"));
  EXPECT_TRUE(has(errorsOf(std::string(kSmall) + "--optimizer sgd\n"),
                  "expected --optimizer adam"));
  EXPECT_TRUE(has(errorsOf(std::string(kSmall) + "--exp-avg-dtype fp8\n"),
                  "--exp-avg-dtype"));
  for (const auto &[flag, remedy] : refusedFlags())
    EXPECT_TRUE(findFlag(flag)) << flag;
}

// A file of a model alone leaves the run to another file.
TEST(Import, ReadsAModelAlone) {
  Imported imported = importText(
      "MODEL_ARGS=\" --num-layers 8 --hidden-size 64 --num-attention-heads 4 "
      "\\\n"
      " --max-position-embeddings 128 --padded-vocab-size 512 --swiglu \\\n"
      " --normalization RMSNorm --position-embedding-type rope \\\n"
      " --disable-bias-linear\"\n");
  ASSERT_EQ(joinDiagnostics(imported.errors), "");
  EXPECT_TRUE(has(imported.yaml, "vocab_size: 512\n"));
  EXPECT_TRUE(has(imported.yaml,
                  "beside this file: training.sequence_length "
                  "training.global_batch_size cluster.accelerator "
                  "cluster.nodes cluster.gpus_per_node\n"))
      << imported.yaml;
}

TEST(Import, ListsFlagsWithoutABearing) {
  Imported imported = importText(std::string(kSmall) +
                                 "--log-interval 10 --tensorboard-dir logs\n");
  ASSERT_TRUE(imported.errors.empty());
  EXPECT_TRUE(has(imported.yaml, "# without a bearing on a plan: "
                                 "--log-interval --tensorboard-dir\n"))
      << imported.yaml;
}

// Megatron's defaults, not the spec's: 4 groups are 4 heads without the flag;
// tied; RMSNorm with 1e-5; ffn of SwiGLU 64 * 8 / 3 = 170, down to 64s: 128.
TEST(Import, WritesMegatronsDefaults) {
  std::string yaml = importText(kSmall).yaml;
  EXPECT_TRUE(has(yaml, "intermediate_size: 128\n")) << yaml;
  EXPECT_TRUE(has(yaml, "num_key_value_heads: 4\n"));
  EXPECT_TRUE(has(yaml, "tie_word_embeddings: true\n"));
  EXPECT_TRUE(has(yaml, "rms_norm_eps: 1e-05\n"));
  EXPECT_TRUE(has(yaml, "weight_decay: 0.01\n"));
  EXPECT_TRUE(has(yaml, "betas: [0.9, 0.999]\n"));
  EXPECT_TRUE(has(yaml, "precision: fp32\n"));
  EXPECT_TRUE(has(yaml, "zero_stage: 0\n"));
}

TEST(Import, FollowsAShellScript) {
  std::string script = R"sh(#!/bin/bash
GPUS_PER_NODE=8
NNODES=${NNODES:-4}
TP=2 # tensor
ARGS="--num-layers 8 --hidden-size 64 \
  --num-attention-heads 4 --tensor-model-parallel-size $TP"
MORE=(
    --seq-length 128        # tokens
    --max-position-embeddings 128
    --micro-batch-size 1 --global-batch-size 8
    --vocab-size 256 --normalization RMSNorm --swiglu
    --position-embedding-type rope --disable-bias-linear
    --save "$1"
)
DISTRIBUTED=(--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES)
torchrun ${DISTRIBUTED[@]} pretrain_gpt.py $ARGS "${MORE[@]}"
)sh";
  Imported imported = importArguments("run.sh", script, "h100-sxm");
  // Where a checkpoint goes, a plan need not know.
  EXPECT_TRUE(has(imported.yaml, "# --save is left out"));
  ASSERT_EQ(joinDiagnostics(imported.errors), "");
  EXPECT_TRUE(has(imported.yaml, "accelerator: h100-sxm\n  nodes: 4\n"
                                 "  gpus_per_node: 8\n"))
      << imported.yaml;
  EXPECT_TRUE(has(imported.yaml, "tensor_parallel: 2\n"));
  // The number of ranks it must know.
  script.replace(script.find("TP=2"), 4, "TP=$2");
  EXPECT_TRUE(has(joinDiagnostics(importArguments("run.sh", script, "").errors),
                  "run.sh:4:4: error: expected a value of "
                  "--tensor-model-parallel-size in the file, got $2"));
}

// Flags quoted with their values, a test of the program's file, an eval.
TEST(Import, FollowsAnEval) {
  std::string script = R"sh(
P=pretrain_gpt.py
if [ ! -f "$P" ]; then exit 1; fi
A=("--num-layers 8" "--wandb-exp-name '${NAME:-"tiny"}'" "--hidden-size 64" "--num-attention-heads 4")
B=(--seq-length 128 --max-position-embeddings 128 --micro-batch-size 1
   --global-batch-size 8 --normalization RMSNorm --swiglu
   --position-embedding-type rope --disable-bias-linear)
CMD="torchrun --nnodes 2 $P ${A[*]} ${B[*]}"
eval $CMD
)sh";
  Imported imported = importArguments("run.sh", script, "");
  ASSERT_EQ(joinDiagnostics(imported.errors), "");
  EXPECT_TRUE(has(imported.yaml, "name: tiny\n")) << imported.yaml;
  EXPECT_TRUE(has(imported.yaml, "num_hidden_layers: 8\n"));
  EXPECT_TRUE(has(imported.yaml,
                  "# not in the arguments, to be given beside this file: "
                  "model.vocab_size cluster.accelerator "
                  "cluster.gpus_per_node\n"))
      << imported.yaml;
}

TEST(Import, Layouts) {
  auto layout = [](const std::string &flags) {
    return importText(std::string(kSmall) + flags);
  };
  // 8 layers, 2 ranks, chunks of 2: 8 / 2 / 2 = 2 chunks a rank.
  EXPECT_TRUE(has(layout("--pipeline-model-parallel-size 2 "
                         "--num-layers-per-virtual-pipeline-stage 2\n")
                      .yaml,
                  "pipeline_layout: [2, 2, 2, 2]\n"));
  // Embedding and loss count as layers: 10 units over 2 ranks, less one each.
  EXPECT_TRUE(has(layout("--pipeline-model-parallel-size 2 "
                         "--account-for-embedding-in-pipeline-split "
                         "--account-for-loss-in-pipeline-split\n")
                      .yaml,
                  "pipeline_layout: [4, 4]\n"));
  // 1 + 5 + 2: the middle rank has the rest, 8 - 1 - 2 = 5.
  EXPECT_TRUE(has(layout("--pipeline-model-parallel-size 3 "
                         "--decoder-first-pipeline-num-layers 1 "
                         "--decoder-last-pipeline-num-layers 2\n")
                      .yaml,
                  "pipeline_layout: [1, 5, 2]\n"));
  EXPECT_TRUE(
      has(joinDiagnostics(layout("--pipeline-model-parallel-size 3\n").errors),
          "8 layers over 3 ranks"));
}

TEST(Import, LayerPatterns) {
  using Layers = std::vector<int64_t>;
  EXPECT_EQ(layerPattern("([0]*2+[1]*3)", 5), (Layers{0, 0, 1, 1, 1}));
  EXPECT_EQ(layerPattern("([1]*1+[0])*2", 4), (Layers{1, 0, 1, 0}));
  EXPECT_EQ(layerPattern("[0,1]", 2), (Layers{0, 1}));
  EXPECT_EQ(layerPattern("2", 4), (Layers{1, 0, 1, 0}));
  EXPECT_FALSE(layerPattern("[0", 1));
  EXPECT_FALSE(layerPattern("[1]*99999999", 1));
  EXPECT_FALSE(layerPattern("x", 1));
}

TEST(Import, Words) {
  std::vector<Diagnostic> errors;
  std::vector<Command> commands = readCommands(
      "f", "A=(x 'y z')\nrun \"${A[@]}\" $B a\"b c\"d # no\nnext --k='(t|)*2'",
      errors);
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(texts(commands[0]), (List{"run", "x", "y z", "?", "ab cd"}));
  EXPECT_EQ(texts(commands[1]), (List{"next", "--k=(t|)*2"}));
  EXPECT_EQ(commands[1][1].loc.str(), "f:3:6");
  EXPECT_TRUE(errors.empty());
  // What it does not understand, it passes over.
  commands = readCommands(
      "f",
      "f() { case $x in a) b;; *) c;; esac; }\n(d) | e `g` <<EOF\n)))\nEOF",
      errors);
  EXPECT_TRUE(errors.empty());
  commands = readCommands("f", "A=\"--k 1\"\nB=(x)\nexport C=2", errors);
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(texts(commands[0]), (List{"--k", "1"}));
  readCommands("f", "A=(x", errors);
  EXPECT_EQ(errors.size(), 1u);
}

// The section that `import --from hf` prints gives the same model as naming
// the file with hf_config, and survives Megatron arguments.
TEST(Import, FromHuggingFace) {
  const char *config = R"({"model_type": "llama", "vocab_size": 32000,
    "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "tie_word_embeddings": true, "use_cache": true})";
  std::vector<Diagnostic> errors;
  std::string yaml = hf::importConfig("m/config.json", config, errors);
  ASSERT_EQ(joinDiagnostics(errors), "");
  EXPECT_EQ(yaml.find("# From the Hugging Face configuration config.json.\n"),
            0u);
  EXPECT_TRUE(has(yaml, "use_cache")) << yaml; // listed, not dropped
  Spec spec = specOf(yaml + "training:\n  sequence_length: 128\n"
                            "  global_batch_size: 64\n"
                            "parallelism: {tensor_parallel: 1, "
                            "context_parallel: 1, pipeline_parallel: 1, "
                            "zero_stage: 1, micro_batch_size: 1, "
                            "recompute: none}\n");
  EXPECT_TRUE(*spec.model.tieWordEmbeddings);
  // 32000 * 512 + 4 * (512 * (512 + 2 * 128 + 512) + 3 * 512 * 1408 + 1024)
  // + 512 = 16384000 + 4 * (655360 + 2162688 + 1024) + 512
  EXPECT_EQ(model::modelShape(spec).parameters(), 27'660'800);
  std::string arguments =
      fileOf(exported(Target::Megatron, spec), "megatron.args");
  Spec again = specOf(importArguments("a", arguments, "").yaml);
  EXPECT_EQ(model::modelShape(again).parameters(), 27'660'800);
  EXPECT_FALSE(has(arguments, "--untie"));

  EXPECT_EQ(hf::importConfig("c.json", "{\"model_type\": \"mamba\"}", errors),
            "");
  EXPECT_TRUE(has(joinDiagnostics(errors), "c.json:1:"))
      << joinDiagnostics(errors);
}

// Any prefix of a script, and a script with any one character replaced, is
// read to its end.
TEST(Import, ReadsBrokenScriptsToTheirEnd) {
  Result<std::string> script =
      systemFiles().read(folder() + "golden/moe.megatron.sh");
  ASSERT_TRUE(script.ok());
  for (size_t i = 0; i < script->size(); i += 13) {
    importArguments("a", script->substr(0, i), "");
    std::string broken = *script;
    broken[i] = "()\"'$\\{}|;#\n"[i % 12];
    importArguments("a", broken, "");
  }
}
