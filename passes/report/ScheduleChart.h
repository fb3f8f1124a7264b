//===- ScheduleChart.h - a pipeline schedule as SVG -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_REPORT_SCHEDULECHART_H
#define RECKON_PASSES_REPORT_SCHEDULECHART_H

#include <cstdint>
#include <string>
#include <vector>

namespace reckon::report {

/// One pass of a chunk on a micro-batch: F, B (whole backward), I, W.
struct Cell {
  char pass = 'F';
  int64_t microBatch = 0, chunk = 0;
  double start = 0, end = 0; ///< s
};

/// A row a pipeline rank over [0, end] seconds; grey is idle. Passes are
/// coloured, later chunks paler; numbers are micro-batches where a cell has
/// room for one. What starts after `end` is left out.
std::string scheduleChart(const std::vector<std::vector<Cell>> &ranks,
                          double end, const std::string &title);

} // namespace reckon::report

#endif // RECKON_PASSES_REPORT_SCHEDULECHART_H
