//===- Given.cpp - schedules of files and of the solver -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Given.h"

#include "runtime/base/Os.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

std::shared_ptr<const GivenSchedule>
model::giveSchedule(PipelineOrders orders) {
  auto given = std::make_shared<GivenSchedule>();
  for (const auto &rank : orders.ranks) {
    given->inFlight.push_back(inFlight(rank, orders.v));
    given->splits |=
        std::any_of(rank.begin(), rank.end(), [](const ComputeAction &action) {
          return action.pass == 'I' || action.pass == 'W';
        });
  }
  std::vector<StageDurations> units(static_cast<size_t>(orders.stages()));
  Result<Timetable> table =
      simulateOrders(orders, units, 0, /*keepActions=*/false);
  RECKON_CHECK(table.ok());
  given->bubble = table->bubbleFraction;
  given->orders = std::move(orders);
  return given;
}

const GivenSchedule *model::givenOf(const Choice &choice) {
  const GivenSchedule *given = choice.given.get();
  bool fits = given && given->orders.p == choice.pp &&
              given->orders.v == choice.v &&
              given->orders.m == choice.numMicroBatches;
  return fits ? given : nullptr;
}

int64_t model::rankOfStage(const Choice &choice, int64_t stage) {
  if (const GivenSchedule *given = givenOf(choice))
    return given->orders.rankOfStage[static_cast<size_t>(stage)];
  return rankOfStage(choice.schedule, choice.pp, choice.v, stage);
}

ScheduleShape model::standInShape(const Choice &choice) {
  ScheduleShape shape = shapeOf(choice);
  if (shape.kind == ScheduleKind::Synthesized)
    shape.kind = shape.v == 1 ? ScheduleKind::ZbH1 : ScheduleKind::Interleaved;
  else if (shape.kind == ScheduleKind::Csv)
    shape.kind =
        shape.v == 1 ? ScheduleKind::OneFOneB : ScheduleKind::Interleaved;
  return shape;
}

Result<std::shared_ptr<const GivenSchedule>>
model::readScheduleFile(const Spec &spec) {
  const ParallelismSpec &p = spec.parallelism;
  if (p.scheduleFile.empty())
    return std::shared_ptr<const GivenSchedule>();
  Result<std::string> text = systemFiles().read(p.scheduleFile);
  if (!text.ok())
    return makeError(ExitCode::BadSpec,
                     errorAt(p.pipelineSchedule.loc,
                             "expected a schedule file behind csv:, got " +
                                 text.error().message +
                                 "; write one, or choose a named schedule")
                         .str());
  Result<PipelineOrders> orders = readScheduleCsv(*text, p.scheduleFile);
  if (!orders.ok())
    return makeError(
        ExitCode::BadSpec,
        errorAt(p.pipelineSchedule.loc, orders.error().message).str());
  // What the spec fixes must be what the file has.
  auto differs = [&](const reckon::Choice<int64_t> &key, const char *name,
                     const char *what, int64_t has) {
    return makeError(
        ExitCode::BadSpec,
        errorAt(key.loc, "expected parallelism." + std::string(name) + " " +
                             std::to_string(has) + ", the " + what + " of " +
                             p.scheduleFile + ", got " +
                             std::to_string(key.value()) +
                             "; change it or the file")
            .str());
  };
  bool only = p.pipelineSchedule.fixed() &&
              p.pipelineSchedule.value() == PipelineSchedule::Csv;
  if (only && p.pipelineParallel.fixed() &&
      p.pipelineParallel.value() != orders->p)
    return differs(p.pipelineParallel, "pipeline_parallel", "rows", orders->p);
  if (only && p.virtualPipeline.fixed() && !p.virtualPipeline.isAuto &&
      p.virtualPipeline.value() != orders->v)
    return differs(p.virtualPipeline, "virtual_pipeline", "stages on each row",
                   orders->v);
  return giveSchedule(std::move(*orders));
}
