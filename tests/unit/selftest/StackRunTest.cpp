//===- StackRunTest.cpp - tests of memory and speed -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/exec/TinyPlan.h"

#include "runtime/device/CpuDevice.h"
#include "runtime/selftest/SelfTest.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::selftest;
using namespace reckon::test;
using device::DeviceMemory;
using device::Kernel;

namespace {

constexpr int64_t kGib = int64_t{1} << 30;

LoadedPlan stack(const std::string &accelerator, const std::string &precision,
                 int layers, int64_t gib) {
  LoadedPlan plan;
  plan.name = accelerator + "-" + precision + "-" + std::to_string(layers);
  plan.manifest.cluster.accelerator = accelerator;
  plan.manifest.choice = {{"pipeline_layout", {layers}}};
  plan.stage = std::make_unique<plan::StagePlanT>();
  plan.stage->precision = precision;
  plan.stage->arena_bytes = static_cast<uint64_t>(gib * kGib);
  return plan;
}

std::vector<std::string> chosen(const std::vector<LoadedPlan> &plans,
                                const std::string &device,
                                std::optional<DeviceMemory> memory) {
  std::vector<std::string> names;
  for (const LoadedPlan *plan : chooseStacks(plans, device, memory))
    names.push_back(plan->name);
  return names;
}

TEST(Stacks, AsManyLayersAsFit) {
  std::vector<LoadedPlan> plans;
  for (int layers : {2, 4, 8}) {
    plans.push_back(stack("h100-sxm", "bf16", layers, 10 * layers));
    plans.push_back(stack("h100-sxm", "fp8", layers, 9 * layers));
    plans.push_back(stack("h200-sxm", "bf16", 2 * layers, 10 * layers));
  }
  using Names = std::vector<std::string>;
  DeviceMemory h100{80 * kGib, 78 * kGib};
  EXPECT_EQ(chosen(plans, "cuda (NVIDIA H100 80GB HBM3, sm_90)", h100),
            (Names{"h100-sxm-bf16-4", "h100-sxm-fp8-8"}));
  EXPECT_EQ(chosen(plans, "cuda (NVIDIA H200, sm_90)",
                   DeviceMemory{140 * kGib, 139 * kGib}),
            (Names{"h200-sxm-bf16-16"}));
  // An arena that fills it would leave nothing for the libraries.
  EXPECT_EQ(chosen(plans, "NVIDIA H100", DeviceMemory{80 * kGib, 40 * kGib}),
            (Names{"h100-sxm-bf16-2", "h100-sxm-fp8-4"}));
  EXPECT_EQ(chosen(plans, "cpu", std::nullopt),
            (Names{"h200-sxm-bf16-16", "h100-sxm-fp8-8"}));
  EXPECT_TRUE(chosen(plans, "NVIDIA H100", DeviceMemory{kGib, kGib}).empty());
}

class StackRun : public testing::Test {
protected:
  void SetUp() override {
    auto stages = tinyPlan({});
    plan::Manifest manifest = tinyManifest(*stages[0]);
    manifest.cluster.accelerator = "h100-sxm";
    std::string path = folder / "stacks/two";
    ASSERT_TRUE(plan::writePlanDirectory(systemFiles(), path, manifest,
                                         {stages[0].get()})
                    .ok());
    ASSERT_TRUE(systemFiles()
                    .write(path + "/prediction.json",
                           R"({"candidates": [{
                             "time": {"step_s": 0.5},
                             "throughput": {"tokens_per_s": 64.0, "mfu": 0.25,
                                            "tflops_per_gpu": 8.0},
                             "memory": {"stages": [{"reserve": 1000}]}}]})")
                    .ok());
    ASSERT_TRUE(systemFiles()
                    .write(path + "/accelerator.json",
                           R"({"fp32_tflops": 1e-3, "bf16_dense_tflops": 1,
                               "mem_bw_gbs": 1})")
                    .ok());
    plans = take(loadPlans(folder / "stacks"));
    scratch = take(Scratch::create());
    target.kind = "cpu";
    target.makeDevice = [] { return device::makeCpuDevice({.threads = 1}); };
  }

  TemporaryFolder folder;
  std::vector<LoadedPlan> plans;
  std::unique_ptr<Scratch> scratch;
  Target target;
};

TEST_F(StackRun, MeasuresBesideThePrediction) {
  StackOutcome outcome = runStack(plans[0], target, *scratch, 0.2, 0.2);
  EXPECT_TRUE(outcome.passed()) << outcome.fault;
  EXPECT_EQ(outcome.allocatedBytes, outcome.plannedBytes);
  EXPECT_GT(outcome.steps, 0);
  EXPECT_GT(outcome.measured.stepSeconds, 0);
  EXPECT_NEAR(outcome.measured.tokensPerSecond * outcome.measured.stepSeconds,
              static_cast<double>(outcome.tokensPerStep), 1e-6);
  ASSERT_TRUE(outcome.predicted);
  EXPECT_EQ(outcome.predicted->stepSeconds, 0.5);
  EXPECT_EQ(outcome.predicted->tflops, 8);
  EXPECT_EQ(outcome.reserveBytes, 1000);
  EXPECT_TRUE(outcome.memory.empty());
  EXPECT_NE(stackLines(outcome).find("predicted"), std::string::npos);
}

TEST_F(StackRun, TimesEveryCallOfTheStep) {
  std::vector<PlannedCall> calls = plannedCalls(*plans[0].stage);
  int64_t linear = 0, launches = 0;
  for (const PlannedCall &call : calls) {
    launches += call.perStep;
    linear += call.kernel == Kernel::Linear ? call.perStep : 0;
  }
  int64_t expected = 0;
  for (const auto &action : plans[0].stage->lists[0]->actions)
    if (action->kind == plan::ActionKind::run)
      for (const auto &instruction :
           plans[0].stage->fragments[action->fragment]->instructions)
        expected += instruction->op == plan::Opcode::launch;
  EXPECT_EQ(launches, expected);
  EXPECT_EQ(linear, 2); // one a micro-batch
  StackOutcome outcome = runStack(plans[0], target, *scratch, 0.2, 0.2);
  ASSERT_EQ(outcome.calls.size(), calls.size());
  for (const CallTime &time : outcome.calls) {
    EXPECT_GT(time.seconds, 0) << time.call.text();
    EXPECT_GT(time.roofline, 0) << time.call.text();
  }
}

TEST_F(StackRun, MoreThanTheReserveIsFound) {
  // Others and the context use 400 bytes, libraries 100; set-up takes the
  // arena and 200 more,
  // the first step 300.
  auto planned = static_cast<int64_t>(plans[0].stage->arena_bytes);
  int64_t asked = 0;
  target.memory = [&](device::Device &) -> std::optional<DeviceMemory> {
    int64_t free[] = {planned + 9500, 9300, 9000, planned + 9000};
    return DeviceMemory{.total = planned + 10000,
                        .free = free[std::min<int64_t>(asked++, 3)],
                        .context = 400};
  };
  StackOutcome outcome = runStack(plans[0], target, *scratch, 0.1, 0.1);
  EXPECT_TRUE(outcome.passed()) << outcome.fault;
  std::vector<int64_t> bytes;
  for (const MemoryItem &item : outcome.memory)
    bytes.push_back(item.bytes);
  EXPECT_EQ(bytes, (std::vector<int64_t>{400, 100, 200, 300, 0}));
  EXPECT_EQ(outcome.besideArena(), 1000);
  asked = 0;
  plans[0].prediction["candidates"][0]["memory"]["stages"][0]["reserve"] = 999;
  outcome = runStack(plans[0], target, *scratch, 0.1, 0.1);
  EXPECT_NE(outcome.fault.find("raise cluster.memory_reserve_gib"),
            std::string::npos)
      << outcome.fault;
}

} // namespace
