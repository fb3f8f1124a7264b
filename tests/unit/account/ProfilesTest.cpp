//===- ProfilesTest.cpp - the table of frameworks -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Risk.h"

#include "tests/unit/account/Models.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

using namespace reckon;
using namespace reckon::model;

namespace {

TEST(Profiles, ExactThenLongestPrefixThenRepresentation) {
  auto name = [](const char *profile, Representation representation) {
    return memoryProfile(profile, representation).name;
  };
  EXPECT_EQ(name("nanotron", Representation::Megatron), "nanotron");
  EXPECT_EQ(name("NeMo 24.07", Representation::Megatron), "NeMo");
  EXPECT_EQ(name("NeMo AutoModel (PyTorch)", Representation::TorchTitan),
            "NeMo AutoModel");
  EXPECT_EQ(name("something else", Representation::DeepSpeed), "deepspeed");
  EXPECT_EQ(name("", Representation::TorchTitan), "torchtitan");
  // Our own account does not take another framework's habits.
  EXPECT_EQ(name("nanotron", Representation::Reckon), "reckon");
}

TEST(Profiles, EntriesInheritFromTheirBase) {
  MemoryProfile nemo = memoryProfile("NeMo 25.01", Representation::Megatron);
  MemoryProfile megatron = memoryProfile("", Representation::Megatron);
  EXPECT_EQ(nemo.gradient, 2);
  EXPECT_EQ(megatron.gradient, 4);
  EXPECT_EQ(nemo.vocabularyMultiple, megatron.vocabularyMultiple);
}

TEST(Profiles, ErrorsNameTheLine) {
  std::string head = "profile,key,value,tag,date,source\n";
  auto message = [&](const std::string &text) {
    auto profile = memoryProfile("", Representation::Reckon, text);
    return profile ? std::string() : profile.error().message;
  };
  EXPECT_EQ(message(head), "");
  EXPECT_NE(message("name,key,value,tag,date,source\n")
                .find("memory_profiles.csv:1: expected the column profile, "
                      "got name"),
            std::string::npos);
  EXPECT_NE(message("name,key\n")
                .find("memory_profiles.csv:1: expected 6 cells, got 2"),
            std::string::npos);
  EXPECT_NE(message(head + "a,norms,8,S,2026-11\n")
                .find(":2: expected 6 cells, got 5"),
            std::string::npos);
  EXPECT_NE(message(head + "a,norms,8,S,2026-11,x\na,norm,8,S,2026-11,x\n")
                .find(":3: expected a known key and a number, got norm and 8"),
            std::string::npos);
}

TEST(Profiles, AtMostOneFittedNumberAFamily) {
  std::istringstream table{std::string(memoryProfileTable())};
  std::string line;
  std::map<std::string, int> fitted;
  std::set<std::pair<std::string, std::string>> seen;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream cells(line);
    std::string profile, key, value, tag, date, source;
    std::getline(cells, profile, ',');
    std::getline(cells, key, ',');
    std::getline(cells, value, ',');
    std::getline(cells, tag, ',');
    std::getline(cells, date, ',');
    std::getline(cells, source);
    EXPECT_TRUE(seen.emplace(profile, key).second) << line;
    fitted[profile] += tag == "F";
    if (key == "base")
      continue;
    EXPECT_NE(std::string("SPFA").find(tag), std::string::npos) << line;
    EXPECT_FALSE(tag.empty() || date.empty() || source.empty()) << line;
  }
  for (const auto &[profile, count] : fitted)
    EXPECT_LE(count, 1) << profile;
}

// A free fit of four terms to nanotron's runs without tensor and pipeline
// parallelism: 8.7 P + 11.5 P / (dp if ZeRO-1) + 0.92 L A + 11.1 s b V + 0.8
// GiB, A = (16 + 8 r) s b h. Nothing of our formula was fitted to them but the
// 11 B of a logit; both must agree within a tenth.
TEST(Profiles, NanotronFourTerms) {
  ModelShape m = llama(2048, 8192, 16, 32, 32);
  m.vocab = 131072;
  m.sequence = 4096;
  m.tied = true;
  Accountant accountant(jobOf(m, Representation::Megatron, "nanotron"));
  for (auto [dp, zero, batch] : {std::tuple(8, 0, 1), std::tuple(8, 1, 1),
                                 std::tuple(64, 1, 2), std::tuple(16, 1, 4)}) {
    model::Choice c{.dp = dp,
                    .zero = zero,
                    .microBatch = batch,
                    .numMicroBatches = 4,
                    .layout = {16}};
    double p = static_cast<double>(m.parameters());
    double tokens = 4096.0 * batch;
    double fit = 8.7 * p + 11.5 * p / (zero ? dp : 1) +
                 0.92 * 16 * (16 + 8 * 4) * tokens * 2048 +
                 11.1 * tokens * 131072 + 0.8 * 1073741824.0;
    EXPECT_NEAR(accountant.peak(c).arena / fit, 1, 0.1) << dp << " " << batch;
  }
}

// 372 successful and 484 failed runs in all, and a fuller card fails more
// often.
TEST(Profiles, RiskRises) {
  int64_t failed = 0, runs = 0;
  double last = -1;
  for (double at : {0.5, 0.9, 1.05, 1.15, 2.0}) {
    MemoryRisk risk = memoryRisk(at);
    EXPECT_TRUE(risk.from <= at && at < risk.to);
    EXPECT_GT(risk.share(), last);
    last = risk.share();
    failed += risk.failed;
    runs += risk.runs;
  }
  EXPECT_EQ(failed, 484);
  EXPECT_EQ(runs, 856);
}

// 38 of 97: p 0.3918, z^2 / n 0.0396; (0.3918 + 0.0198 -+ 1.96
// sqrt(0.3918 0.6082 / 97 + 0.0396 / 388)) / 1.0396 = 0.3005, 0.4913.
TEST(Profiles, RiskIsABand) {
  MemoryRisk risk = memoryRisk(0.9);
  EXPECT_EQ(risk.runs, 97);
  EXPECT_NEAR(risk.least(), 0.3005, 5e-4);
  EXPECT_NEAR(risk.most(), 0.4913, 5e-4);
  for (double at : {0.5, 0.9, 1.05, 1.15, 2.0}) {
    risk = memoryRisk(at);
    EXPECT_LT(risk.least(), risk.share());
    EXPECT_GT(risk.most(), risk.share());
    EXPECT_NE(risk.source.find("2311.05610"), std::string::npos);
  }
}

TEST(Profiles, RiskTablesAreChecked) {
  const std::string head = "from,to,failed,runs,date,source\n";
  EXPECT_TRUE(memoryRisks(memoryRiskTable()).ok());
  EXPECT_TRUE(memoryRisks(head + "0,,1,2,d,s\n").ok());
  for (const char *rows :
       {"0,1,1,2,d,s\n", "0,1,1,2,d,s\n1.5,,1,2,d,s\n", "0,,3,2,d,s\n",
        "0,,x,2,d,s\n", "0,0,1,2,d,s\n", "0.5,,1,2,d,s\n", ""}) {
    auto read = memoryRisks(head + rows);
    ASSERT_FALSE(read.ok()) << rows;
    EXPECT_NE(read.error().message.find("memory_risk.csv:"), std::string::npos);
  }
}

// The default efficiency_profile does not make another framework ours.
TEST(Profiles, ReckonIsNoOtherFrameworksProfile) {
  for (Representation each :
       {Representation::Megatron, Representation::DeepSpeed,
        Representation::TorchTitan})
    EXPECT_EQ(memoryProfile("reckon", each).name, toString(each));
}

TEST(Profiles, OnlyCachingAllocatorsAreARisk) {
  for (Representation each :
       {Representation::Reckon, Representation::Megatron,
        Representation::DeepSpeed, Representation::TorchTitan})
    EXPECT_EQ(cachesAllocations(memoryProfile("", each)),
              each != Representation::Reckon);
}

// Frameworks that can gather again do so when they must: with the gathered
// inputs of 2 x 80 matmuls, 80 x 4 x 2 x 4096 x 8192 B = 20 GiB, it is too
// much.
TEST(Profiles, GathersAgainWhenItMust) {
  ModelShape m = llama(8192, 28672, 80, 64, 64);
  m.vocab = 131072;
  m.sequence = 4096;
  Job job = jobOf(m, Representation::Megatron, "nanotron");
  model::Choice c{.tp = 16,
                  .sequenceParallel = true,
                  .dp = 32,
                  .zero = 1,
                  .microBatch = 4,
                  .numMicroBatches = 2,
                  .layout = {80}};
  uint64_t small = Accountant(job).peak(c).arena;
  job.device.memGb = 400;
  uint64_t large = Accountant(job).peak(c).arena;
  EXPECT_NEAR(large - small, 1.05 * 80 * 4 * 4 * 4096 * 8192, 0.2e9);
}

} // namespace
