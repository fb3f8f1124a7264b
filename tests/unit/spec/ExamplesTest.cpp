//===- ExamplesTest.cpp - the ready specs ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/spec/SpecTesting.h"

namespace reckon::testing_spec {
namespace {

std::string example(const std::string &path) {
  return std::string(RECKON_SOURCE_DIR) + "/examples/" + path;
}

Spec loadExamples(std::vector<std::string> paths,
                  const std::vector<std::string> &sets = {}) {
  for (std::string &path : paths)
    path = example(path);
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(paths, sets, errors);
  EXPECT_TRUE(spec.ok()) << joinDiagnostics(errors);
  if (!spec.ok())
    return Spec();
  EXPECT_EQ(joinDiagnostics(spec->warnings), "");
  return *spec;
}

/// Parameters of an untied Llama: embedding and output, per layer attention,
/// gate, up and down projection and two norms, and the last norm.
int64_t parametersOf(const ModelSpec &m) {
  int64_t h = *m.hiddenSize;
  int64_t attention =
      h * *m.headDim * 2 * (*m.numAttentionHeads + *m.numKeyValueHeads);
  return 2 * *m.vocabSize * h + h +
         *m.numHiddenLayers * (attention + 3 * h * *m.intermediateSize + 2 * h);
}

const std::vector<std::string> batch = {"training.sequence_length=8192",
                                        "training.global_batch_size=2048"};

// The published parameter counts of Llama 3.1.
TEST(Examples, Llama8B) {
  Spec spec =
      loadExamples({"models/llama-8b.yaml", "clusters/h100-64.yaml"}, batch);
  EXPECT_EQ(parametersOf(spec.model), 8030261248);
  EXPECT_EQ(*spec.model.ropeScaling.type, RopeType::Llama3);
  EXPECT_EQ(spec.cluster.worldSize(), 64);
}

TEST(Examples, Llama70B) {
  Spec spec =
      loadExamples({"models/llama-70b.yaml", "clusters/h100-1024.yaml"}, batch);
  EXPECT_EQ(parametersOf(spec.model), 70553706496);
}

TEST(Examples, Llama405B) {
  Spec spec = loadExamples(
      {"models/llama-405b.yaml", "clusters/h100-16384.yaml"}, batch);
  EXPECT_EQ(parametersOf(spec.model), 405853388800);
  EXPECT_EQ(spec.cluster.worldSize(), 16384);
}

TEST(Examples, SeventyBOn1024) {
  Spec spec = loadExamples({"models/llama-70b.yaml", "clusters/h100-1024.yaml",
                            "70b-1024/train.yaml"});
  EXPECT_EQ(spec.cluster.worldSize(), 1024);
  EXPECT_EQ(spec.parallelism.tensorParallel.value(), 8);
  EXPECT_EQ(spec.parallelism.pipelineParallel.value(), 4);
  EXPECT_EQ(spec.parallelism.dataParallel.value(), 32);
  EXPECT_EQ(spec.parallelism.recompute.value(), Recompute::Full);
  EXPECT_EQ(*spec.training.precision, Precision::Bf16);
  EXPECT_EQ(*spec.constraints.maxBubble, 0.25);
}

TEST(Examples, Tiny) {
  Spec spec = loadExamples({"tiny/tiny.yaml"});
  EXPECT_GE(parametersOf(spec.model), 3000000);
  EXPECT_EQ(spec.cluster.worldSize(), 4);
  EXPECT_TRUE(spec.cluster.accelerator->isCpu());
  EXPECT_EQ(*spec.training.precision, Precision::Fp32);
  EXPECT_EQ(spec.training.data.resolvedPath(), example("tiny/corpus.txt"));
}

} // namespace
} // namespace reckon::testing_spec
