//===- RepresentationTest.cpp - what a framework can do at all ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Representation.h"

#include "tests/unit/account/Models.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

std::string why(Representation representation, const model::Choice &choice,
                const ModelShape &model = llama8B()) {
  return representationForbids(representation, choice, model);
}

TEST(Representation, ReckonForbidsNothingByItself) {
  EXPECT_EQ(
      why(Representation::Reckon,
          {.pp = 4, .v = 2, .zero = 3, .schedule = ScheduleKind::DualPipeV}),
      "");
}

TEST(Representation, Megatron) {
  EXPECT_EQ(why(Representation::Megatron, {.pp = 4, .zero = 1}), "");
  EXPECT_NE(why(Representation::Megatron, {.zero = 2}), "");
  EXPECT_NE(
      why(Representation::Megatron, {.pp = 4, .schedule = ScheduleKind::ZbH1}),
      "");
  model::Choice chunks{.pp = 4,
                       .v = 2,
                       .numMicroBatches = 6,
                       .schedule = ScheduleKind::Interleaved};
  EXPECT_NE(why(Representation::Megatron, chunks), "");
  chunks.numMicroBatches = 8;
  EXPECT_EQ(why(Representation::Megatron, chunks), "");
  EXPECT_NE(why(Representation::Megatron, {.tp = 2}, deepseekV3()), "");
  EXPECT_EQ(why(Representation::Megatron, {.tp = 2, .sequenceParallel = true},
                deepseekV3()),
            "");
}

TEST(Representation, DeepSpeed) {
  EXPECT_EQ(why(Representation::DeepSpeed, {.zero = 3}), "");
  EXPECT_EQ(why(Representation::DeepSpeed, {.pp = 2, .zero = 1}), "");
  EXPECT_NE(why(Representation::DeepSpeed, {.pp = 2, .zero = 2}), "");
  EXPECT_NE(why(Representation::DeepSpeed, {.pp = 2, .v = 2}), "");
  EXPECT_NE(why(Representation::DeepSpeed,
                {.cp = 2, .contextMethod = ContextMethod::Ring}),
            "");
  EXPECT_EQ(why(Representation::DeepSpeed,
                {.cp = 2, .contextMethod = ContextMethod::AllToAll}),
            "");
}

// What deepspeed.module_inject.auto_ep_folding of 0.19.8 refuses.
TEST(Representation, DeepSpeedsExperts) {
  auto says = [](const model::Choice &choice) {
    return why(Representation::DeepSpeed, choice, deepseekV3());
  };
  EXPECT_EQ(says({.tp = 2, .dp = 32, .ep = 8}), "");
  EXPECT_EQ(says({.pp = 2, .dp = 32, .ep = 8}), "");
  EXPECT_NE(says({.tp = 2, .pp = 2, .dp = 16, .ep = 8}), "");
  EXPECT_NE(says({.tp = 2, .dp = 32, .ep = 8, .etp = 2}), "");
  model::Choice ulysses{
      .cp = 2, .contextMethod = ContextMethod::AllToAll, .dp = 32, .ep = 8};
  EXPECT_EQ(says(ulysses), "");
  ulysses.tp = 2;
  EXPECT_NE(says(ulysses), "");
}

TEST(Representation, TorchTitan) {
  EXPECT_EQ(why(Representation::TorchTitan, {.pp = 4, .zero = 3}), "");
  EXPECT_NE(why(Representation::TorchTitan, {.dp = 8, .zero = 1}), "");
  EXPECT_NE(why(Representation::TorchTitan, {.tp = 2, .zero = 3}), "");
  EXPECT_EQ(why(Representation::TorchTitan,
                {.tp = 2, .sequenceParallel = true, .zero = 3}),
            "");
  EXPECT_NE(why(Representation::TorchTitan,
                {.pp = 2, .zero = 3, .schedule = ScheduleKind::ZbH2}),
            "");
}

// Eight heads of keys on sixteen ranks: copied by reckon, parted by Megatron.
TEST(Representation, KeyHeadsOnMoreRanks) {
  model::Choice c{.tp = 16, .sequenceParallel = true};
  EXPECT_EQ(why(Representation::Reckon, c), "");
  EXPECT_EQ(why(Representation::Megatron, c), "");
  EXPECT_NE(why(Representation::DeepSpeed, c), "");
  EXPECT_NE(why(Representation::TorchTitan, c), "");
  // Latent attention has no shared heads.
  EXPECT_EQ(why(Representation::DeepSpeed, c, deepseekV3()), "");
}

} // namespace
