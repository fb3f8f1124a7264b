//===- EfficiencyTest.cpp - which constants a job gets --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/TimeModel.h"
#include "tests/unit/time/Jobs.h"

#include <gtest/gtest.h>

#include <map>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::model::test;

namespace {

TEST(Efficiency, EveryConstantHasAGlobalValue) {
  const std::vector<EfficiencyRow> &table = efficiencyTable();
  std::map<std::string, int> globals, others;
  for (const EfficiencyRow &row : table)
    ++(row.scope == "global" ? globals : others)[row.constant];
  for (const auto &[name, count] : globals)
    EXPECT_EQ(count, 1) << name;
  for (const auto &[name, count] : others)
    EXPECT_EQ(globals.count(name), 1u) << name;
}

// The bar of the accuracy: one fitted constant of a (chip, precision, family).
TEST(Efficiency, OneFactorOfAGroup) {
  std::map<std::string, int> factors;
  for (const EfficiencyRow &row : efficiencyTable())
    if (row.scope == "factor" && row.constant == "factor")
      ++factors[row.key];
  EXPECT_GT(factors.size(), 20u);
  for (const auto &[key, count] : factors)
    EXPECT_EQ(count, 1) << key;
}

TEST(Efficiency, FamiliesAreLongestPrefixesAtWords) {
  const std::vector<EfficiencyRow> &table = efficiencyTable();
  EXPECT_EQ(profileFamily("NeMo (dgxc v25.02)", table), "NeMo");
  EXPECT_EQ(profileFamily("NeMo AutoModel (PyTorch)", table), "NeMo AutoModel");
  EXPECT_EQ(profileFamily("Megatron-LM 285068c8", table), "Megatron-LM");
  EXPECT_EQ(profileFamily("Megatron-LMX", table), "");
  EXPECT_EQ(profileFamily("", table), "");
}

TEST(Efficiency, ReleasesAndFactorsComeOverTheFamily) {
  Job job = llama70b(64, 64);
  job.profile = "NeMo 24.03";
  Efficiency old = efficiencyFor(job, efficiencyTable());
  EXPECT_EQ(old.attentionKernel, 2);
  EXPECT_TRUE(old.fitted);
  job.profile = "NeMo 25.04";
  EXPECT_EQ(efficiencyFor(job, efficiencyTable()).attentionKernel, 3);
  job.device = *findAccelerator("h800-sxm");
  EXPECT_FALSE(efficiencyFor(job, efficiencyTable()).fitted);
  EXPECT_EQ(TimeModel(job).warnings().size(), 1u);
  job.profile = "something else";
  EXPECT_FALSE(efficiencyFor(job, efficiencyTable()).known);
  EXPECT_EQ(TimeModel(job).warnings().size(), 1u);
  for (const char *none : {"", "reckon"}) {
    job.profile = none;
    EXPECT_TRUE(TimeModel(job).warnings().empty());
  }
}

TEST(Efficiency, ACalibrationWins) {
  Job job = llama70b(64, 64);
  job.calibration = {{"eta", 0.5}, {"memory", 0.4}};
  Efficiency e = efficiencyFor(job, efficiencyTable());
  EXPECT_EQ(e.eta, 0.5);
  EXPECT_EQ(e.memory, 0.4);
  EXPECT_TRUE(TimeModel(job).warnings().empty());
  job.calibration.emplace_back("warp", 9);
  EXPECT_EQ(TimeModel(job).warnings().size(), 1u);
}

TEST(Efficiency, BrokenTablesNameTheirLine) {
  const std::string header = "scope,key,constant,value,tag,date,source\n";
  auto error = [&](const std::string &line) {
    auto parsed = parseEfficiency(header + line);
    return parsed.ok() ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(error("global,,eta,0.9,G,,\n"), "");
  EXPECT_NE(error("planet,,eta,0.9,G,,\n").find(":2: expected a scope"),
            std::string::npos);
  EXPECT_NE(error("global,,zeal,0.9,G,,\n").find("expected a constant"),
            std::string::npos);
  EXPECT_NE(error("global,,eta,fast,G,,\n").find("expected a number"),
            std::string::npos);
  EXPECT_NE(error("global,,eta,0.9,X,,\n").find("expected one of P"),
            std::string::npos);
  EXPECT_NE(error("global,,eta,0.9,G\n").find("expected 7 cells"),
            std::string::npos);
}

// Names of models are for people: renaming one changes nothing.
TEST(Efficiency, ModelNamesDoNotMatter) {
  Job job = llama70b(1024, 512);
  job.profile = "NeMo (dgxc v25.02)";
  double step = TimeModel(job).quickStep(choice70b(job));
  job.model.name = "something else";
  EXPECT_EQ(TimeModel(job).quickStep(choice70b(job)), step);
}

} // namespace
