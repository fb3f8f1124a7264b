//===- PlanFileTest.cpp - stage files and directories ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanIO.h"
#include "tests/unit/exec/TinyPlan.h"

#include <gtest/gtest.h>

#include <functional>

using namespace reckon;
using namespace reckon::plan;
using reckon::test::take;

static std::unique_ptr<StagePlanT> sample(int stage = 0) {
  auto stages =
      test::tinyPlan({.dp = 2, .pp = 2, .microBatches = 3, .zero1 = true});
  return std::move(stages[stage]);
}

TEST(PlanFile, WritesTheSameBytesAndReadsThemBack) {
  std::string bytes = writeStagePlan(*sample());
  EXPECT_EQ(bytes, writeStagePlan(*sample()));
  EXPECT_EQ(bytes.substr(4, 4), "RKPL");
  auto plan = readStagePlan(bytes, "s");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ((*plan)->states.size(), sample()->states.size());
  EXPECT_EQ((*plan)->lists[0]->actions.size(),
            sample()->lists[0]->actions.size());
  EXPECT_EQ(writeStagePlan(**plan), bytes);
}

TEST(PlanFile, EveryTruncationIsCorrupt) {
  std::string bytes = writeStagePlan(*sample());
  for (size_t length = 0; length < bytes.size(); length += 13) {
    auto plan = readStagePlan(bytes.substr(0, length), "file.rkplan");
    // The end of a file may be padding that nothing refers to.
    if (plan.ok()) {
      EXPECT_GT(length + 16, bytes.size());
      continue;
    }
    EXPECT_EQ(plan.error().code, ExitCode::Corrupt);
    EXPECT_EQ(plan.error().message.find("file.rkplan: "), 0u);
  }
}

TEST(PlanFile, FlippedBitsAreNoticedOrHarmless) {
  std::string good = writeStagePlan(*sample());
  int refused = 0;
  for (size_t i = 0; i < good.size(); i += 3)
    for (int bit : {0, 7}) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      auto plan = readStagePlan(bytes, "s");
      refused += !plan.ok();
      ExitCode code = plan.ok() ? ExitCode::Corrupt : plan.error().code;
      EXPECT_TRUE(code == ExitCode::Corrupt || code == ExitCode::Incompatible);
    }
  // Values such as a learning rate cannot be told from good ones here; the
  // digest in the manifest is for that.
  EXPECT_GT(refused, static_cast<int>(good.size()) / 10);
}

TEST(PlanFile, AnotherVersionIsIncompatible) {
  auto plan = sample();
  plan->version = 2;
  auto got = readStagePlan(writeStagePlan(*plan), "s");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, ExitCode::Incompatible);
}

TEST(PlanFile, InconsistentPlansAreRefusedWithThePlace) {
  struct Damage {
    const char *text;
    std::function<void(StagePlanT &)> apply;
  };
  auto instruction = [](StagePlanT &p, const char *fragment,
                        size_t i) -> InstructionT & {
    for (auto &f : p.fragments)
      if (f->name == fragment)
        return *f->instructions[i];
    std::abort();
  };
  auto action = [](StagePlanT &p, const std::string &label) -> ActionT & {
    for (auto &a : p.lists[0]->actions)
      if (a->label == label)
        return *a;
    std::abort();
  };
  std::vector<Damage> damages = {
      {"no mesh", [](StagePlanT &p) { p.mesh.reset(); }},
      {"a degree", [](StagePlanT &p) { p.mesh->dp = 0; }},
      {"stage outside", [](StagePlanT &p) { p.stage = 2; }},
      {"global batch", [](StagePlanT &p) { p.global_batch_size = 5; }},
      {"no optimizer", [](StagePlanT &p) { p.optimizer.reset(); }},
      {"no streams", [](StagePlanT &p) { p.streams.clear(); }},
      {"state 0 (embed): bytes",
       [](StagePlanT &p) { p.states[0]->offset = p.arena_bytes; }},
      {"state 0 (embed): bytes",
       [](StagePlanT &p) { p.states[0]->bytes = ~uint64_t(0); }},
      {"misaligned", [](StagePlanT &p) { p.states[0]->offset = 2; }},
      {"one extent per dimension",
       [](StagePlanT &p) { p.states[0]->box.pop_back(); }},
      {"size is 129",
       [](StagePlanT &p) { p.states[0]->box[0]->size = constantExpr(129); }},
      {"not positive", [](StagePlanT &p) { p.states[0]->global_shape[0] = 0; }},
      {"slot class tokens: bytes",
       [](StagePlanT &p) { p.slot_classes[0]->count = 1 << 20; }},
      {"slot class tokens: no slots",
       [](StagePlanT &p) { p.slot_classes[0]->count = 0; }},
      {"lane workspace: bytes",
       [](StagePlanT &p) { p.lanes[0]->bytes = p.arena_bytes + 1; }},
      {"channel forward: a stage",
       [](StagePlanT &p) { p.channels[0]->target_stage = 2; }},
      {"fragment forward, instruction 0: no such stream",
       [&](StagePlanT &p) { instruction(p, "forward", 0).stream = 5; }},
      {"fragment forward, instruction 0: no such slot",
       [&](StagePlanT &p) {
         instruction(p, "forward", 0).inputs[0]->index = 2;
       }},
      {"no such state",
       [&](StagePlanT &p) {
         instruction(p, "forward", 0).inputs[1]->index = 99;
       }},
      {"a buffer of 960 bytes at offset 256 in a region of 1024",
       [&](StagePlanT &p) {
         instruction(p, "forward", 0).outputs[0]->offset = constantExpr(256);
       }},
      {"a buffer of 960 bytes at offset -4",
       [&](StagePlanT &p) {
         instruction(p, "forward", 0).outputs[0]->offset = constantExpr(-4);
       }},
      {"a buffer of 960 bytes at offset 1000", // on another rank only
       [&](StagePlanT &p) {
         instruction(p, "forward", 0).outputs[0]->offset->terms = {
             Term(Axis::dp, 1000)};
       }},
      {"a huge shape",
       [&](StagePlanT &p) {
         instruction(p, "forward", 0).outputs[0]->shape = {int64_t(1) << 40,
                                                           int64_t(1) << 40};
       }},
      {"no kernel",
       [&](StagePlanT &p) {
         instruction(p, "forward", 0).kernel = Kernel::none;
       }},
      {"fragment update, instruction 0: no such event",
       [&](StagePlanT &p) { instruction(p, "update", 0).event = 50; }},
      {"no such group",
       [&](StagePlanT &p) { instruction(p, "update", 2).group = 2; }},
      {"segment 0 has 1920 elements on one side and 1918 on the other",
       [&](StagePlanT &p) {
         instruction(p, "update", 2).outputs[0]->shape = {959};
       }},
      {"inputs and outputs differ",
       [&](StagePlanT &p) { instruction(p, "update", 2).outputs.pop_back(); }},
      {"action 1 (0LOAD0): no such slot",
       [&](StagePlanT &p) { action(p, "0LOAD0").bindings[0]->index = 3; }},
      {"no such event", [&](StagePlanT &p) { action(p, "0F0").waits = {999}; }},
      {"no such micro-batch",
       [&](StagePlanT &p) { action(p, "0F0").units = {Unit(0, 3)}; }},
      {"no such fragment",
       [&](StagePlanT &p) { action(p, "0F0").fragment = 77; }},
      {"binds 1 slots, forward has 2",
       [&](StagePlanT &p) { action(p, "0F0").bindings.pop_back(); }},
      {"slot 1 has another class",
       [&](StagePlanT &p) { action(p, "0F0").bindings[1]->slot_class = 0; }},
      {"not on its fragment's home stream",
       [&](StagePlanT &p) { action(p, "0F0").stream = 1; }},
      {"no such channel",
       [&](StagePlanT &p) { action(p, "0SEND_F0").channel = 2; }},
      {"the channel runs the other way",
       [&](StagePlanT &p) { action(p, "0SEND_F0").channel = 1; }},
      {"a message without buffer",
       [&](StagePlanT &p) { action(p, "0SEND_F0").buffers.clear(); }},
      {"(0SEND_F0): data of f8e5m2 between ranks",
       [&](StagePlanT &p) {
         action(p, "0SEND_F0").buffers[0]->dtype = DType::f8e5m2;
       }},
      {"data of f8e4m3 between ranks",
       [&](StagePlanT &p) {
         auto &reduce = instruction(p, "update", 2);
         reduce.inputs[0]->dtype = reduce.outputs[0]->dtype = DType::f8e4m3;
       }},
      {"a load without buffer",
       [&](StagePlanT &p) { action(p, "0LOAD0").buffers.clear(); }},
  };
  EXPECT_TRUE(validateStagePlan(*sample(), "s").ok());
  for (const Damage &damage : damages) {
    auto plan = sample();
    damage.apply(*plan);
    Status status = validateStagePlan(*plan, "dir/stage-000.rkplan");
    ASSERT_FALSE(status.ok()) << damage.text;
    EXPECT_EQ(status.error().code, ExitCode::Corrupt);
    EXPECT_EQ(status.error().message.find("dir/stage-000.rkplan: "), 0u);
    EXPECT_NE(status.error().message.find(damage.text), std::string::npos)
        << "expected: " << damage.text << "\ngot: " << status.error().message;
  }
}

TEST(PlanFile, DirectoriesAreCheckedAgainstTheirManifest) {
  FakeFileSystem files;
  auto first = sample(0);
  auto second = sample(1);
  auto manifest = writePlanDirectory(files, "plan", test::tinyManifest(*first),
                                     {first.get(), second.get()});
  ASSERT_TRUE(manifest.ok());
  auto read = readPlanManifest(files, "plan/");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->digest, manifest->digest);
  auto stage = readPlanStage(files, "plan", *read, 1);
  ASSERT_TRUE(stage.ok()) << stage.error().message;
  EXPECT_EQ((*stage)->stage, 1u);

  auto codeOf = [&](unsigned index) {
    auto result = readPlanStage(files, "plan", *read, index);
    return result.ok() ? ExitCode::Done : result.error().code;
  };
  std::string &bytes = files.files["plan/stage-001.rkplan"];
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  EXPECT_EQ(codeOf(1), ExitCode::Corrupt);
  EXPECT_EQ(codeOf(0), ExitCode::Done);
  files.files.erase("plan/stage-001.rkplan");
  EXPECT_EQ(codeOf(1), ExitCode::Environment);
  // The file of another stage, with a digest to match.
  files.files["plan/stage-001.rkplan"] = files.files["plan/stage-000.rkplan"];
  read->stages[1].digest = read->stages[0].digest;
  EXPECT_EQ(codeOf(1), ExitCode::Corrupt);
  EXPECT_EQ(readPlanManifest(files, "nowhere").error().code,
            ExitCode::Environment);
}
