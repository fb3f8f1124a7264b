//===- CalibrationTest.cpp - the file of measured constants ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Calibration.h"
#include "tests/unit/spec/SpecTesting.h"

using namespace reckon;
using namespace reckon::testing_spec;

namespace {

std::string errorsOf(const std::string &text) {
  std::vector<Diagnostic> errors;
  parseCalibration("c.yaml", text, "cpu", errors);
  return joinDiagnostics(errors);
}

TEST(Calibration, KeepsNamesAndOrder) {
  std::vector<Diagnostic> errors;
  auto constants = parseCalibration("c.yaml",
                                    "accelerator: cpu\ndate: x\n"
                                    "constants: {memory: 2.5, eta: 1}\n",
                                    "cpu", errors);
  EXPECT_TRUE(errors.empty());
  ASSERT_EQ(constants.size(), 2u);
  EXPECT_EQ(constants[0].first, "memory");
  EXPECT_EQ(constants[0].second, 2.5);
  EXPECT_EQ(constants[1].second, 1);
}

TEST(Calibration, ErrorsAreLocated) {
  EXPECT_NE(errorsOf("constants: 3\n")
                .find("c.yaml:1:12: error: expected a map of measured"),
            std::string::npos);
  EXPECT_NE(errorsOf("eta: 3\n").find("under constants"), std::string::npos);
  EXPECT_NE(errorsOf("constants:\n  eta: fast\n")
                .find("c.yaml:2:8: error: expected a number of at least 0"),
            std::string::npos);
  EXPECT_NE(errorsOf("constants: {eta: -1}\n").find("at least 0"),
            std::string::npos);
  EXPECT_NE(errorsOf("accelerator: h100-sxm\nconstants: {eta: 1}\n")
                .find("c.yaml:1:14: error: expected a calibration of"),
            std::string::npos);
  EXPECT_EQ(errorsOf("constants: {eta: 1}\n"), "");
}

TEST(Calibration, TheSpecReadsItsFile) {
  std::string spec =
      edited(goodSpec, "  nodes: 1\n", "  nodes: 1\n  calibration: ./c.yaml\n");
  FakeFileSystem files;
  files.files["spec.yaml"] = spec;
  files.files["c.yaml"] = files.files["./c.yaml"] = "constants: {eta: 0.8}\n";
  std::vector<Diagnostic> errors;
  Result<Spec> read = loadSpec({"spec.yaml"}, {}, errors, files);
  ASSERT_TRUE(read.ok()) << joinDiagnostics(errors);
  ASSERT_EQ(read->cluster.calibrated.size(), 1u);
  EXPECT_EQ(read->cluster.calibrated[0].second, 0.8);
  // Without the file the error is at the key.
  EXPECT_NE(load(spec).text().find("spec.yaml:12:3"), std::string::npos)
      << load(spec).text();
}

} // namespace
