//===- TimeModelTest.cpp - what must be true of every price ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/TimeModel.h"
#include "tests/unit/time/Jobs.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::model::test;

namespace {

TEST(TimeModel, QuickIsTheReportToTheBit) {
  for (int64_t batch : {256, 512, 1024}) {
    Job job = llama70b(1024, batch);
    TimeModel model(job);
    model::Choice choice = choice70b(job);
    for (ScheduleKind kind :
         {ScheduleKind::Interleaved, ScheduleKind::Bfs, ScheduleKind::GPipe})
      for (Recompute recompute :
           {Recompute::None, Recompute::Selective, Recompute::Full}) {
        choice.schedule = kind;
        choice.recompute = recompute;
        double quick = model.quickStep(choice);
        EXPECT_EQ(model.step(choice).step, model.exactStep(choice));
        if (kind == ScheduleKind::Interleaved)
          // Simulated: embedding and head make two chunks longer.
          EXPECT_NEAR(model.exactStep(choice) / quick, 1, 0.01);
        else
          EXPECT_EQ(model.exactStep(choice), quick);
        // What is remembered does not depend on what was asked before.
        EXPECT_EQ(TimeModel(job).quickStep(choice), quick);
      }
  }
}

TEST(TimeModel, EveryScheduleMethodAndStageGetsATime) {
  Job job = llama70b(64, 256);
  TimeModel model(job);
  for (ScheduleKind kind :
       {ScheduleKind::GPipe, ScheduleKind::OneFOneB, ScheduleKind::Interleaved,
        ScheduleKind::Bfs, ScheduleKind::ZbH1, ScheduleKind::ZbH2,
        ScheduleKind::ZbV, ScheduleKind::DualPipeV, ScheduleKind::Synthesized})
    for (ContextMethod method : {ContextMethod::Ring, ContextMethod::AllGather,
                                 ContextMethod::AllToAll})
      for (int64_t zero : {0, 1, 2, 3}) {
        model::Choice c;
        c.tp = 2;
        c.cp = 2;
        c.contextMethod = method;
        c.pp = 4;
        bool chunks = kind == ScheduleKind::Interleaved ||
                      kind == ScheduleKind::Bfs || kind == ScheduleKind::ZbV ||
                      kind == ScheduleKind::DualPipeV;
        c.v = chunks ? 2 : 1;
        c.schedule = kind;
        c.dp = 4;
        c.zero = zero;
        c.numMicroBatches = 64;
        c.layout = even(80, c.stages());
        double step = model.quickStep(c);
        EXPECT_GT(step, 0.3 * 256 * 8192 / 1e6);
        EXPECT_LT(step, 3600);
      }
}

// "E|t*40|t*40|L": the end stages take the time of the embedding and of the
// head, nothing else, and the two others that of their layers.
TEST(TimeModel, EndsAlone) {
  Job job = llama70b(64, 256);
  TimeModel model(job);
  model::Choice c{.tp = 4,
                  .sequenceParallel = true,
                  .pp = 4,
                  .dp = 4,
                  .numMicroBatches = 64,
                  .layout = {0, 40, 40, 0}};
  const UnitTimes &units = model.units(c);
  EXPECT_EQ(model.stage(c, 0).forward, units.embedding.forwardSeconds());
  EXPECT_EQ(model.stage(c, 3).forward, units.head.forwardSeconds());
  EXPECT_DOUBLE_EQ(model.stage(c, 1).forward,
                   40 * units.dense.forwardSeconds());
  EXPECT_EQ(model.step(c).step, model.quickStep(c));
  // A slower busiest rank than the even layout's.
  model::Choice even = c;
  even.layout = {20, 20, 20, 20};
  EXPECT_GT(model.quickStep(c), 1.7 * model.quickStep(even));
}

// Slower links, less overlap and more of the same work never make a step
// shorter.
TEST(TimeModel, IsMonotone) {
  Job job = llama70b(1024, 512);
  model::Choice choice = choice70b(job);
  double step = TimeModel(job).quickStep(choice);
  auto slower = [&](auto change) {
    Job other = job;
    change(other);
    EXPECT_GT(TimeModel(other).quickStep(choice), step);
  };
  slower([](Job &j) { j.interBandwidth /= 4; });
  slower([](Job &j) { j.intraBandwidth /= 2; });
  slower([](Job &j) { j.memoryBandwidth /= 2; });
  for (const char *overlap : {"tensor_overlap", "data_overlap"})
    slower([&](Job &j) { j.calibration = {{overlap, 0}}; });
  for (const char *efficiency : {"eta", "memory", "intra", "inter"})
    slower([&](Job &j) { j.calibration = {{efficiency, 0.3}}; });

  TimeModel model(job);
  model::Choice again = choice;
  double previous = step;
  for (int64_t layers = 1; layers <= 5; ++layers) {
    again.recompute = Recompute::Full;
    again.recomputeLayers.assign(16, layers);
    double more = model.quickStep(again);
    EXPECT_GT(more, previous);
    previous = more;
  }
  again.recomputeLayers.clear();
  EXPECT_EQ(model.quickStep(again), previous); // all five of each stage
}

TEST(TimeModel, StagesSumToTheBusiestRank) {
  Job job = llama70b(1024, 512);
  TimeModel model(job);
  model::Choice choice = choice70b(job);
  StepTime time = model.step(choice);
  ASSERT_EQ(time.stages.size(), 16u);
  double busiest = 0;
  for (int64_t rank = 0; rank < 4; ++rank) {
    double sum = 0;
    for (int64_t chunk = 0; chunk < 4; ++chunk) {
      StageTime stage = model.stage(choice, chunk * 4 + rank);
      const StageDurations &same = time.stages[chunk * 4 + rank];
      EXPECT_EQ(stage.forward, same.forward);
      EXPECT_EQ(stage.backward(), same.backward);
      EXPECT_NEAR(stage.weightGrad, same.weightGrad(), 1e-15);
      sum += stage.forward + stage.backward();
    }
    busiest = std::max(busiest, sum);
  }
  double exposed = 0;
  for (const CommunicationTime &entry : time.communication)
    if (entry.dimension == "tensor")
      exposed += entry.exposed;
  EXPECT_NEAR(time.compute + exposed, 16 * busiest, 1e-9 * time.step);
}

// One vector of layer costs is enough for a dynamic program: a stage is the
// sum of its layers, of the embedding and of the head.
TEST(TimeModel, StagesAreSumsOfLayers) {
  Job job = deepseek(1024, 8192);
  TimeModel model(job);
  model::Choice c;
  c.pp = 8;
  c.dp = 128;
  c.ep = 64;
  c.zero = 1;
  c.numMicroBatches = 64;
  c.layout = {5, 8, 8, 8, 8, 8, 8, 8};
  const UnitTimes &units = model.units(c);
  auto all = [](const LayerTime &unit) {
    return unit.forwardSeconds() + unit.backwardSeconds(Recompute::None);
  };
  StageTime first = model.stage(c, 0), last = model.stage(c, 7);
  EXPECT_NEAR(first.forward + first.backward(),
              all(units.embedding) + 3 * all(units.dense) +
                  2 * all(units.expert),
              1e-12);
  EXPECT_NEAR(last.forward + last.backward(),
              8 * all(units.expert) + all(units.head), 1e-12);
}

// 4 micro-batches of TP8 x FSDP128: each gathers twice and scatters once,
// 10 units of 17.64 GB (70.554e9 / 8 parameters, 2 bytes; the scatter in fp32
// counts twice) times 127/128 = 175 GB... at 50 GB/s 3.5 s; at the 0.85 or so
// that a rail gives, longer.
TEST(TimeModel, FsdpTrafficOfTheSeed) {
  Job job = llama70b(1024, 512);
  job.representation = Representation::TorchTitan;
  job.calibration = {{"inter", 1},
                     {"inter_latency", 0},
                     {"inter_hop", 0},
                     {"intra_hop", 0},
                     {"factor", 1}};
  model::Choice fsdp;
  fsdp.tp = 8;
  fsdp.sequenceParallel = true;
  fsdp.dp = 128;
  fsdp.zero = 3;
  fsdp.numMicroBatches = 4;
  fsdp.layout = {80};
  StepTime time = TimeModel(job).step(fsdp);
  const CommunicationTime *data = nullptr;
  for (const CommunicationTime &entry : time.communication)
    if (entry.dimension == "data" && entry.seconds > 1)
      data = &entry;
  ASSERT_TRUE(data);
  // 4 (AG + AG + fp32 RS) are 4 * (2 + 2 + 4) bytes of every parameter, but
  // the embedding is not gathered again: 32 * 8.82e9 - ... = 279 GB.
  double parameters = 70.554e9 / 8 * 127 / 128;
  double table = 128256.0 * 8192 / 8 * 127 / 128;
  EXPECT_NEAR(data->bytesPerStep / 1e9, 4 * (8 * parameters - 2 * table) / 1e9,
              1);
  EXPECT_NEAR(data->seconds, data->bytesPerStep / 50e9, 0.02);
}

TEST(TimeModel, IsQuick) {
  Job job = llama70b(1024, 512);
  TimeModel model(job);
  model::Choice choice = choice70b(job);
  model.quickStep(choice);
  auto start = std::chrono::steady_clock::now();
  double sum = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i)
    sum += model.quickStep(choice);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  EXPECT_GT(sum, 0);
  // A third of a microsecond on an idle core; 20 of them for sanitizers and
  // busy machines.
  EXPECT_LT(seconds.count() / kCount, 20e-6);
  RecordProperty("nanoseconds",
                 std::to_string(int(1e9 * seconds.count() / kCount)));
}

TEST(TimeModel, CpuTimesAreSane) {
  Job job = machine("cpu", 4);
  job.precision = Precision::Fp32;
  job.model = {.name = "tiny",
               .architecture = "llama",
               .vocab = 256,
               .hidden = 64,
               .layers = 4,
               .ffn = 128,
               .heads = 4,
               .kvHeads = 4,
               .headDim = 16,
               .sequence = 64};
  job.globalBatch = 8;
  model::Choice choice;
  choice.dp = 4;
  choice.numMicroBatches = 2;
  choice.layout = {4};
  StepTime time = TimeModel(job).step(choice);
  EXPECT_GT(time.step, 1e-4);
  EXPECT_LT(time.step, 1);
  // 6 N tokens at 0.1 TFLOP/s are less than a tenth of a second.
  EXPECT_GT(time.mfu, 0);
  EXPECT_LT(time.mfu, 1);
}

} // namespace
