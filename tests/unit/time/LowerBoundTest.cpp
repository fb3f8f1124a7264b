//===- LowerBoundTest.cpp - no choice is faster than its bound ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/TimeModel.h"
#include "tests/unit/time/Jobs.h"

#include <gtest/gtest.h>

#include <random>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::model::test;

namespace {

/// A random choice of power-of-two sizes that fills the job's devices.
model::Choice randomChoice(const Job &job, std::mt19937 &random) {
  auto pick = [&](std::initializer_list<int64_t> values) {
    return *(values.begin() + std::uniform_int_distribution<size_t>(
                                  0, values.size() - 1)(random));
  };
  model::Choice c;
  c.tp = pick({1, 2, 4, 8});
  c.sequenceParallel = c.tp > 1 && pick({0, 1});
  c.cp = pick({1, 1, 2, 4});
  if (c.cp > 1)
    c.contextMethod =
        pick({0, 1}) ? ContextMethod::Ring : ContextMethod::AllToAll;
  c.pp = pick({1, 2, 4, 8});
  c.dp = job.devices() / (c.tp * c.cp * c.pp);
  c.microBatch = pick({1, 2});
  c.numMicroBatches = job.globalBatch / (c.dp * c.microBatch);
  c.zero = c.pp > 1 ? pick({0, 1}) : pick({0, 1, 2, 3});
  c.recompute = static_cast<Recompute>(pick({0, 1, 2}));
  if (c.pp > 1 && c.numMicroBatches % c.pp == 0) {
    switch (pick({0, 1, 2, 3, 4})) {
    case 0:
      c.schedule = ScheduleKind::GPipe;
      break;
    case 1:
      c.schedule = ScheduleKind::Interleaved;
      c.v = pick({2, 4});
      break;
    case 2:
      c.schedule = ScheduleKind::ZbV;
      c.v = 2;
      break;
    case 3:
      c.schedule = ScheduleKind::ZbH2;
      break;
    default:
      break;
    }
  }
  if (job.model.isMoe()) {
    c.ep = pick({1, 2, 4, 8});
    c.etp = pick({1, 2});
    while (c.tp * c.cp * c.dp % (c.ep * c.etp) != 0)
      c.ep = c.etp = 1;
  }
  // Uneven layouts, stages without layers among them.
  c.layout.assign(static_cast<size_t>(c.stages()), 0);
  for (int64_t layer = 0; layer < job.model.layers; ++layer)
    ++c.layout[std::uniform_int_distribution<size_t>(0, c.layout.size() -
                                                            1)(random)];
  return c;
}

void check(const Job &job, int count) {
  TimeModel model(job);
  std::mt19937 random(7);
  for (int i = 0; i < count; ++i) {
    model::Choice c = randomChoice(job, random);
    ASSERT_GT(c.numMicroBatches, 0);
    double step = model.quickStep(c);
    double bound =
        model.lowerBound({c.tp, c.cp, c.pp, c.dp, c.ep, c.etp, c.microBatch});
    ASSERT_LE(bound, step) << "tp " << c.tp << " cp " << c.cp << " pp " << c.pp
                           << " ep " << c.ep;
    ASSERT_GT(bound, 0);
    // With the schedule: still for any layout and recomputation.
    double way = model.wayBound(c);
    ASSERT_LE(way, step) << toString(c.schedule) << " v " << c.v;
    ASSERT_GE(way, bound);
  }
}

TEST(LowerBound, NeverExceedsAChoice) {
  for (const char *profile : {"", "NeMo 24.07", "nanotron", "torchtitan",
                              "llm-foundry/Composer FSDP"})
    for (Representation representation :
         {Representation::Reckon, Representation::TorchTitan}) {
      Job dense = llama70b(256, 1024);
      dense.profile = profile;
      dense.representation = representation;
      check(dense, 300);
      Job moe = deepseek(256, 1024);
      moe.profile = profile;
      moe.precision = Precision::Fp8;
      check(moe, 150);
    }
}

// It would prune nothing if it were far below: an even TP8 choice without
// recomputation is within a third of it.
TEST(LowerBound, IsNotFarBelow) {
  Job job = llama70b(1024, 512);
  model::Choice c = choice70b(job);
  TimeModel model(job);
  EXPECT_GT(
      model.lowerBound({c.tp, c.cp, c.pp, c.dp, c.ep, c.etp, c.microBatch}),
      0.67 * model.quickStep(c));
}

} // namespace
