//===- BoundsTest.cpp - the proof stands on these -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// OuterTest shows that the loop is right for any valid bounds. Here the bounds
// of the real models are compared with every combination of real specs.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Load.h"
#include "passes/search/Evaluate.h"
#include "passes/search/Space.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::search;

namespace {

constexpr const char *kDense = R"(
model: {name: 8b, architecture: llama, vocab_size: 128256, hidden_size: 4096,
        intermediate_size: 14336, num_hidden_layers: 32,
        num_attention_heads: 32, num_key_value_heads: 8}
cluster: {accelerator: h100-sxm, nodes: 2, gpus_per_node: 8}
training: {sequence_length: 8192, global_batch_size: 64}
)";

constexpr const char *kExperts = R"(
model: {name: moe, architecture: mixtral, vocab_size: 32000, hidden_size: 4096,
        intermediate_size: 14336, num_hidden_layers: 16,
        num_attention_heads: 32, num_key_value_heads: 8, num_local_experts: 8,
        num_experts_per_tok: 2}
cluster: {accelerator: h100-sxm, nodes: 1, gpus_per_node: 8}
training: {sequence_length: 4096, global_batch_size: 16}
)";

Spec load(const char *text) {
  FakeFileSystem files;
  files.files["spec.yaml"] = text;
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec({"spec.yaml"}, {}, errors, files);
  if (!spec) {
    ADD_FAILURE() << spec.error().message;
    std::abort();
  }
  return *spec;
}

class Bounds : public testing::TestWithParam<const char *> {};

TEST_P(Bounds, NeverExceedACombination) {
  Spec spec = load(GetParam());
  Evaluator evaluator(spec);
  Space space(spec);
  int64_t compared = 0;
  double loosest = 1; // of what single combinations are pruned by
  double nearest = 0; // largest bound / least step under its node
  double nearestWay = 0;
  SpaceVisitor visitor;
  visitor.rejected = [](int64_t, const Misfit &) {};
  visitor.node = [&](const model::Choice &node, int64_t) {
    double step = evaluator.stepBound(node);
    uint64_t bytes = evaluator.memoryBound(node);
    double least = 0, below = 0;
    LeafVisitor leaves;
    leaves.rejected = visitor.rejected;
    leaves.way = [&](const model::Choice &way, int64_t) {
      below = evaluator.wayBound(way);
      EXPECT_LE(step, below * (1 + 1e-12));
      return true;
    };
    leaves.leaf = [&](model::Choice &leaf) {
      // Simulating all of them would take minutes.
      double seconds =
          compared % 5 == 0 ? evaluator.timed(leaf) : evaluator.step(leaf);
      if (compared % 5 == 0) {
        double bound = evaluator.timedBound(leaf);
        ASSERT_LE(bound, seconds * (1 + 1e-12));
        loosest = std::min(loosest, bound / seconds);
      }
      ASSERT_LE(step, seconds * (1 + 1e-12));
      ASSERT_LE(below, seconds);
      nearestWay = std::max(nearestWay, below / seconds);
      ASSERT_LE(bytes, evaluator.peak(leaf).bytes);
      ASSERT_LE(evaluator.assignmentBound(leaf), seconds);
      least = least > 0 ? std::min(least, seconds) : seconds;
      ++compared;
    };
    space.leaves(node, leaves);
    if (least > 0)
      nearest = std::max(nearest, step / least);
  };
  space.nodes(visitor);
  EXPECT_GT(compared, 10000);
  // Bounds of nothing would pass the above.
  EXPECT_GT(nearest, 0.7);
  EXPECT_GT(loosest, 0.7);
  EXPECT_GT(nearestWay, nearest);
}

INSTANTIATE_TEST_SUITE_P(Specs, Bounds, testing::Values(kDense, kExperts));

} // namespace
