//===- reckon-show-timetable.h - when each stage runs what ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_RECKON_SHOW_TIMETABLE_H
#define RECKON_FRONTENDS_TOOLS_RECKON_SHOW_TIMETABLE_H

#include "runtime/base/Status.h"
#include "runtime/plan/plan_generated.h"

#include <string>
#include <vector>

namespace reckon::show {

/// One forward or backward of a stage.
struct Cell {
  std::string label;
  char pass = 'F';
  uint32_t microbatch = 0;
  int start = 0;
  int length() const { return pass == 'F' ? 1 : 2; }
};

using Row = std::vector<Cell>;

/// Forward and backward runs of a stage's step, in list order: labels are
/// stage, pass, micro-batch.
Row computeRow(const plan::StagePlanT &stage);

/// Starts every run as soon as its stage is free and its input has arrived;
/// messages take no time, a forward one unit, a backward two. Corrupt when the
/// lists never end.
Status timetable(std::vector<Row> &rows);

/// Units of time until the last stage is done.
int makespan(const std::vector<Row> &rows);

} // namespace reckon::show

#endif // RECKON_FRONTENDS_TOOLS_RECKON_SHOW_TIMETABLE_H
