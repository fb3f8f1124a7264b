//===- Given.h - schedules of files and of the solver ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// No formula gives the order of `csv` and `synthesized`; a choice carries it,
// and time, bubble and memory follow from it. A `synthesized` choice without
// one stands for a schedule that is at least as good as ZB-H1, which needs no
// solver and runs in as many slots as there are ranks.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_SCHEDULE_GIVEN_H
#define RECKON_PASSES_MODEL_SCHEDULE_GIVEN_H

#include "passes/model/Schedule.h"

#include <memory>

namespace reckon::model {

struct GivenSchedule {
  PipelineOrders orders;
  std::vector<InFlight> inFlight; ///< by rank
  bool splits = false;            ///< some backwards into I and W
  double bubble = 0;              ///< as scheduleBubble() has it
};

std::shared_ptr<const GivenSchedule> giveSchedule(PipelineOrders orders);

/// The orders that a choice carries; null if it has none, or if they are for
/// other ranks, chunks or micro-batches than it has now.
const GivenSchedule *givenOf(const Choice &choice);

/// Placement by these orders, else by the kind of the schedule.
int64_t rankOfStage(const Choice &choice, int64_t stage);

/// shapeOf(), with the schedule that stands for one without orders.
ScheduleShape standInShape(const Choice &choice);

/// The file of `pipeline_schedule: csv:FILE`, read and checked, also against
/// the sizes that the spec fixes; null when the spec names none. Errors name
/// the line of the spec and that of the file.
Result<std::shared_ptr<const GivenSchedule>> readScheduleFile(const Spec &spec);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_SCHEDULE_GIVEN_H
