//===- CalibrateTest.cpp - what reckon calibrate writes is read back ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Calibrate.h"

#include "frontends/spec/Calibration.h"
#include "passes/model/time/TimeModel.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::calibrate;

namespace {

TEST(Calibrate, MeasuresThisMachine) {
  const Accelerator &cpu = *findAccelerator("cpu");
  Calibration result;
  ASSERT_TRUE(measureCollectives(cpu, 0.01, result).ok());
  ASSERT_TRUE(measureKernels(cpu, 1, 0.01, result).ok());
  std::vector<Diagnostic> errors;
  auto constants =
      parseCalibration("c.yaml", toYaml(result, "2026-01-31"), "cpu", errors);
  EXPECT_TRUE(errors.empty()) << joinDiagnostics(errors);
  ASSERT_EQ(constants.size(), result.constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    EXPECT_EQ(constants[i].first, result.constants[i].first);
    EXPECT_NEAR(constants[i].second, result.constants[i].second,
                1e-5 * result.constants[i].second);
    EXPECT_TRUE(model::isEfficiencyConstant(constants[i].first));
  }

  // The time model prices a step with them: a matmul of this job takes what
  // was measured. 2 * 512^3 FLOPs at matmul_fraction of 0.1 TFLOP/s.
  model::Job job;
  job.device = cpu;
  job.precision = Precision::Fp32;
  job.memoryBandwidth = cpu.memBwGbs * 1e9;
  job.calibration = constants;
  model::Efficiency e = efficiencyFor(job, model::efficiencyTable());
  model::Kernels kernels(job, e);
  double measured = 0;
  for (const Measurement &m : result.measurements)
    if (m.what.starts_with("linear"))
      measured = std::max(measured, m.value * 1e9);
  EXPECT_NEAR(kernels.matmul(512, 512, 512, false),
              2.0 * 512 * 512 * 512 / measured + e.kernelLatency,
              0.01 * 2.0 * 512 * 512 * 512 / measured);
}

} // namespace
