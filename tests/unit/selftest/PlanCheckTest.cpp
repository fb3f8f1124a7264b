//===- PlanCheckTest.cpp - what the check of plans must find --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/exec/TinyPlan.h"
#include "tests/unit/selftest/FaultyDevice.h"

#include "runtime/selftest/SelfTest.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::selftest;
using namespace reckon::test;
using device::Kernel;

namespace {

class PlanCheck : public testing::Test {
protected:
  void SetUp() override {
    auto stages = tinyPlan({});
    plan::Manifest manifest = tinyManifest(*stages[0]);
    manifest.cluster.accelerator = "h100-sxm";
    auto written = plan::writePlanDirectory(systemFiles(),
                                            folder / "small/plans/two-matrices",
                                            manifest, {stages[0].get()});
    ASSERT_TRUE(written.ok()) << written.error().message;
    plans = take(loadPlans(folder / "small/plans"));
    scratch = take(Scratch::create());
    reference = take(device::makeCpuDevice({.threads = 1}));
  }

  PlanOutcome check(Kernel kernel, Fault fault) {
    Target target;
    target.kind = "cpu";
    target.makeDevice = [&] {
      return Result<std::unique_ptr<device::Device>>(
          std::make_unique<FaultyDevice>(
              take(device::makeCpuDevice({.threads = 1})), kernel, fault));
    };
    return checkPlan(plans[0], *reference, target, *scratch);
  }

  TemporaryFolder folder;
  std::vector<LoadedPlan> plans;
  std::unique_ptr<Scratch> scratch;
  std::unique_ptr<device::Device> reference;
};

TEST_F(PlanCheck, PassesTheSameDevice) {
  PlanOutcome outcome = check(Kernel::None, {});
  EXPECT_TRUE(outcome.passed()) << outcome.fault;
  EXPECT_EQ(outcome.gradient, 0);
  EXPECT_EQ(outcome.losses, outcome.expected);
  EXPECT_EQ(outcome.losses.size(), size_t(kPlanSteps));
  EXPECT_LT(outcome.losses.back(), outcome.losses.front());
  EXPECT_EQ(outcome.allocatedBytes, outcome.plannedBytes);
}

TEST_F(PlanCheck, FindsAWrongGradientAndNamesIt) {
  PlanOutcome outcome =
      check(Kernel::EmbeddingGrad, [](std::vector<Touched> &outputs, int64_t) {
        if (int64_t at = outputs[0].largest(); at >= 0)
          outputs[0].scale(at, 1.001);
      });
  EXPECT_NE(outcome.fault.find("gradient of " + outcome.tensor),
            std::string::npos)
      << outcome.fault;
  EXPECT_NE(outcome.tensor.find("embed"), std::string::npos) << outcome.tensor;
}

TEST_F(PlanCheck, FindsAWrongUpdate) {
  // The first step's gradient is right, the weights after it are not.
  PlanOutcome outcome =
      check(Kernel::Adamw, [](std::vector<Touched> &outputs, int64_t) {
        std::memcpy(outputs[0].data, outputs[0].before.data(),
                    outputs[0].before.size());
      });
  EXPECT_NE(outcome.fault.find("a loss differs"), std::string::npos)
      << outcome.fault;
}

TEST_F(PlanCheck, FindsRunsThatDiffer) {
  // Far below the tolerance, in a different element for each device.
  int64_t devices = 0;
  PlanOutcome outcome =
      check(Kernel::Adamw, [&](std::vector<Touched> &outputs, int64_t run) {
        devices += run == 0;
        if (int64_t at = outputs[0].largest(); at >= 0 && devices == 2)
          outputs[0].scale(at, 1 + 0x1p-22);
      });
  EXPECT_NE(outcome.fault.find("not deterministic"), std::string::npos)
      << outcome.fault;
}

TEST_F(PlanCheck, LeavesNothingBehind) {
  (void)check(Kernel::None, {});
  EXPECT_EQ(take(systemFiles().list(scratch->path(""))),
            std::vector<std::string>{"text.txt"});
  std::string path = scratch->path("");
  scratch.reset();
  EXPECT_FALSE(systemFiles().exists(path));
}

TEST_F(PlanCheck, AFolderWithoutPlansIsRefused) {
  auto none = loadPlans(folder / "small");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ExitCode::Environment);
}

TEST_F(PlanCheck, TheReportIsJson) {
  Options options;
  options.sizes = Sizes::Small;
  options.seed = 3;
  options.kernels = options.stacks = false;
  options.plansDirectory = folder.path;
  options.out = scratch->sink();
  Target target;
  target.kind = "cpu";
  target.makeDevice = [] { return device::makeCpuDevice({.threads = 1}); };
  auto report = runSelfTest(options, *reference, target);
  ASSERT_TRUE(report.ok()) << report.error().message;
  report->plans[0].losses[1] = std::nan("");
  auto json = nlohmann::json::parse(reportJson(*report, "1.2.3"));
  EXPECT_EQ(json["schema"], "reckon.selftest/1");
  EXPECT_EQ(json["reckon"], "1.2.3");
  EXPECT_EQ(json["target"], "cpu");
  EXPECT_EQ(json["seed"], 3);
  EXPECT_EQ(json["sizes"], "small");
  EXPECT_EQ(json["passed"], true);
  const auto &plan = json["plans"][0];
  EXPECT_EQ(plan["name"], "two-matrices");
  EXPECT_EQ(plan["precision"], "fp32");
  EXPECT_EQ(plan["arena_bytes"], plan["planned_bytes"]);
  EXPECT_EQ(plan["gradient_tolerance"], 1e-5);
  EXPECT_TRUE(plan["losses"][1].is_null());
  EXPECT_TRUE(json["kernels"].empty());
}

} // namespace
