//===- InputsTest.cpp - terms from a spec ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Inputs.h"

#include "frontends/spec/Load.h"

#include <gtest/gtest.h>

#include <fstream>

using namespace reckon;
using namespace reckon::goodput;

namespace {

Spec load(std::vector<std::string> sets) {
  std::string path = testing::TempDir() + "goodput-inputs.yaml";
  std::ofstream(path) << R"(model:
  architecture: llama
  vocab_size: 128256
  hidden_size: 16384
  intermediate_size: 53248
  num_hidden_layers: 126
  num_attention_heads: 128
  num_key_value_heads: 8
cluster: {accelerator: h100-sxm, nodes: 2048, gpus_per_node: 8}
training: {sequence_length: 8192, global_batch_size: 2048}
)";
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec({path}, sets, errors);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  return *spec;
}

TEST(Inputs, ACheckpointOf405B) {
  Inputs in =
      makeInputs(load({"cluster.resilience.checkpoint_bandwidth_gbs=500"}), {});
  // 405 853 388 800 x 14 B = 5.682 TB, / 16 384 = 346.8 MB, / 500 GB/s = 11.4
  // s.
  EXPECT_DOUBLE_EQ(in.checkpointBytes, 405853388800.0 * 14);
  EXPECT_NEAR(in.bytesPerGpu, 346.8e6, 0.05e6);
  EXPECT_NEAR(in.writeSeconds, 11.36, 5e-3);
  EXPECT_NEAR(in.terms.load, 11.36, 5e-3);
  EXPECT_NEAR(in.terms.mtbf, 50000 * 3600.0 / 16384, 1e-9);
  // Nothing to hide behind: 0.5 s + 346.8 MB / 20 GB/s = 0.517 s.
  EXPECT_NEAR(in.terms.delta, 0.5173, 1e-4);
}

TEST(Inputs, CopiesHideBehindForwardAndBackward) {
  Spec spec = load({"cluster.resilience.copy_bandwidth_gbs=0.1"});
  // 3.468 s of copy, the heaviest stage 1.1 times the average: 3.815 s.
  Inputs in = makeInputs(
      spec, {.stepSeconds = 4, .readOnlySeconds = 3, .heaviestStage = 1.1});
  EXPECT_NEAR(in.terms.delta, 0.5 + 3.8148 - 3, 1e-3);
  in = makeInputs(spec, {.stepSeconds = 5, .readOnlySeconds = 4});
  EXPECT_NEAR(in.terms.delta, 0.5, 1e-9);
}

TEST(Inputs, SynchronousSavesWaitForTheStorage) {
  Inputs in = makeInputs(load({"cluster.resilience.checkpoint_bandwidth_gbs=5",
                               "training.checkpoint.async=false"}),
                         {});
  // 5682 GB / 5 GB/s = 1136 s = 18.9 min.
  EXPECT_NEAR(in.terms.delta / 60, 18.9, 0.05);
}

TEST(Inputs, GivenTermsAreTaken) {
  Inputs in = makeInputs(load({"cluster.resilience.checkpoint_stall_s=300",
                               "cluster.resilience.detect_s=600",
                               "cluster.resilience.restart_s=300",
                               "cluster.resilience.load_s=120"}),
                         {});
  EXPECT_EQ(in.terms.delta, 300);
  EXPECT_EQ(in.terms.recovery(), 1020);
  // Young's interval gives 70.76 % and the best one 0.26 points more.
  EXPECT_NEAR(100 * goodput::goodput(in.terms, *in.interval()), 71.02, 0.01);
}

TEST(Inputs, AnIntervalIsNotShorterThanTheWriteBehindIt) {
  // 2 machines' worth of storage for 405B: 5682 GB / 4 GB/s = 1420 s.
  Inputs in =
      makeInputs(load({"cluster.resilience.checkpoint_bandwidth_gbs=4"}), {});
  EXPECT_NEAR(in.leastInterval(), 1.1 * 1420.5, 0.1);
  EXPECT_LT(*bestInterval(in.terms), in.leastInterval());
  EXPECT_EQ(*in.interval(), in.leastInterval());
}

} // namespace
