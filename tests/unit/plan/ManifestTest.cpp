//===- ManifestTest.cpp - manifest.json -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Manifest.h"
#include "runtime/plan/PlanIO.h"

#include <gtest/gtest.h>

#include <functional>

using namespace reckon;
using namespace reckon::plan;
using Json = nlohmann::json;

static Manifest sample() {
  Manifest manifest;
  manifest.name = "tiny";
  manifest.stages = {{"stage-000.rkplan", std::string(32, 'a')},
                     {"stage-001.rkplan", std::string(32, 'b')}};
  manifest.digest = planDigest(manifest.stages);
  manifest.mesh.tp = 2;
  manifest.mesh.cp = manifest.mesh.ep = 1;
  manifest.mesh.dp = 4;
  manifest.mesh.pp = 2;
  manifest.spec = "model:\n  name: tiny\n";
  manifest.choice = {{"zero_stage", 1}};
  manifest.reckonVersion = "0.1.0";
  manifest.cluster = {"h100-sxm", 2, 8};
  Prediction &prediction = manifest.prediction;
  prediction.step = 0.25;
  prediction.pipeline = 0.2;
  prediction.update = 0.04;
  prediction.overhead = 0.01;
  prediction.message = 1e-4;
  prediction.tokensPerSecond = 1e6;
  prediction.tflopsPerDevice = 400;
  prediction.mfu = 1.0 / 3;
  prediction.stages = {{0.01, 0.02}, {0.011, 0.022}};
  prediction.calibration = {{"eta", 1.0 / 3}};
  return manifest;
}

TEST(Manifest, ReadsWhatItWrote) {
  std::string text = writeManifest(sample());
  EXPECT_EQ(text, writeManifest(sample()));
  EXPECT_EQ(text.back(), '\n');
  auto got = readManifest(text, "m");
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(got->name, "tiny");
  EXPECT_EQ(got->stages[1].digest, std::string(32, 'b'));
  EXPECT_EQ(worldSize(got->mesh), 16);
  EXPECT_EQ(got->spec, sample().spec);
  EXPECT_EQ(got->choice["zero_stage"], 1);
  EXPECT_EQ(got->reckonVersion, "0.1.0");
  EXPECT_EQ(got->cluster.accelerator, "h100-sxm");
  EXPECT_EQ(got->cluster.nodes, 2u);
  EXPECT_EQ(got->cluster.gpusPerNode, 8u);
  EXPECT_EQ(writeManifest(*got), text);
  EXPECT_EQ(got->prediction.step, 0.25);
  EXPECT_EQ(got->prediction.mfu, 0.333333333); // nine digits
  EXPECT_EQ(got->prediction.stages.at(1).backward, 0.022);
  EXPECT_EQ(got->prediction.calibration, sample().prediction.calibration);
  Json json = Json::parse(text);
  EXPECT_EQ(json["schema"], "reckon.plan-dir/1");
  EXPECT_EQ(json["rank_order"], (Json{"tp", "cp", "ep", "dp", "pp"}));
  EXPECT_EQ(json["world_size"], 16);
}

TEST(Manifest, ClusterMayBeAbsentButNotDamaged) {
  Json json = Json::parse(writeManifest(sample()));
  json.erase("cluster");
  auto got = readManifest(json.dump(), "m");
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(got->cluster.nodes, 0u);
  for (Json bad : {Json(-1), Json("2"), Json(1.5), Json(1u << 25)}) {
    json["cluster"] = {{"gpus_per_node", bad}};
    got = readManifest(json.dump(), "m");
    ASSERT_FALSE(got.ok()) << bad;
    EXPECT_EQ(got.error().code, ExitCode::Corrupt);
  }
}

TEST(Manifest, PredictionMayBeAbsent) {
  Json json = Json::parse(writeManifest(sample()));
  EXPECT_TRUE(readManifest(json.dump(), "m")->prediction.known());
  json.erase("prediction");
  auto got = readManifest(json.dump(), "m");
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_FALSE(got->prediction.known());
  EXPECT_FALSE(Json::parse(writeManifest(*got)).contains("prediction"));
}

TEST(Manifest, DigestNamesTheStages) {
  Manifest other = sample();
  other.stages[1].digest[0] = 'c';
  EXPECT_NE(planDigest(other.stages), sample().digest);
  EXPECT_EQ(sample().digest.size(), 32u);
  // Published vectors of XXH3-128: empty input.
  EXPECT_EQ(digestHex(""), "99aa06d3014798d86001c324468d497f");
}

TEST(Manifest, AnotherVersionIsIncompatible) {
  Json json = Json::parse(writeManifest(sample()));
  json["schema"] = "reckon.plan-dir/2";
  EXPECT_EQ(readManifest(json.dump(), "m").error().code,
            ExitCode::Incompatible);
  json = Json::parse(writeManifest(sample()));
  for (uint64_t format : {uint64_t(2), (uint64_t(1) << 32) + 1}) {
    json["versions"]["plan_format"] = format;
    auto got = readManifest(json.dump(), "m");
    EXPECT_EQ(got.error().code, ExitCode::Incompatible);
    EXPECT_NE(got.error().message.find("expected plan format 1, got " +
                                       std::to_string(format)),
              std::string::npos);
  }
}

TEST(Manifest, DamageIsCorruptAndNamesTheFile) {
  std::vector<std::function<void(Json &)>> damages = {
      [](Json &j) { j = Json::array(); },
      [](Json &j) { j.erase("schema"); },
      [](Json &j) { j["schema"] = 1; },
      [](Json &j) { j.erase("versions"); },
      [](Json &j) { j["versions"] = 3; },
      [](Json &j) { j["versions"]["plan_format"] = "one"; },
      [](Json &j) { j.erase("name"); },
      [](Json &j) { j["spec"] = nullptr; },
      [](Json &j) { j.erase("mesh"); },
      [](Json &j) { j["mesh"]["tp"] = 0; },
      [](Json &j) { j["mesh"]["tp"] = -2; },
      [](Json &j) { j["mesh"]["dp"] = 1000000000000; },
      [](Json &j) { j["mesh"]["tp"] = j["mesh"]["dp"] = 1 << 20; },
      [](Json &j) { j["mesh"]["pp"] = 3; },
      [](Json &j) { j["stages"].erase(0); },
      [](Json &j) { j["stages"][0] = "x"; },
      [](Json &j) { j["stages"][0].erase("digest"); },
      [](Json &j) { j["stages"][0]["file"] = "../../etc/passwd"; },
      [](Json &j) { j["stages"][0]["digest"] = "00"; },
      [](Json &j) { j["digest"] = std::string(32, '0'); },
      [](Json &j) { j["prediction"] = 1; },
      [](Json &j) { j["prediction"].erase("step_s"); },
      [](Json &j) { j["prediction"]["mfu"] = "much"; },
      [](Json &j) { j["prediction"]["update_s"] = -1; },
      [](Json &j) { j["prediction"]["stages"].erase(0); },
      [](Json &j) { j["prediction"]["stages"][0] = 3; },
      [](Json &j) { j["prediction"]["stages"][1].erase("backward_s"); },
      [](Json &j) { j["prediction"]["calibration"] = 3; },
      [](Json &j) { j["prediction"]["calibration"]["eta"] = "x"; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Json json = Json::parse(writeManifest(sample()));
    damages[i](json);
    auto got = readManifest(json.dump(), "dir/manifest.json");
    ASSERT_FALSE(got.ok()) << i;
    EXPECT_EQ(got.error().code, ExitCode::Corrupt) << i;
    EXPECT_EQ(got.error().message.find("dir/manifest.json: "), 0u) << i;
  }
  std::string text = writeManifest(sample());
  for (size_t length = 0; length + 1 < text.size(); length += 7)
    EXPECT_EQ(readManifest(text.substr(0, length), "m").error().code,
              ExitCode::Corrupt);
}
