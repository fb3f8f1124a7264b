//===- reckon-show-schedule.cpp - the timetable of a plan -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Replays the action lists of the files, not the schedule that they were made
// from: what is printed is what the ranks will do.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/reckon-show-timetable.h"
#include "frontends/tools/reckon-show-views.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::show;

namespace {

/// One column a unit of time; a backward fills its first of two.
std::string csv(const std::vector<Row> &rows) {
  int width = makespan(rows);
  std::string text;
  for (const Row &row : rows) {
    std::vector<std::string> columns(static_cast<size_t>(width));
    for (const Cell &cell : row)
      columns[static_cast<size_t>(cell.start)] = cell.label;
    for (size_t i = 0; i < columns.size(); ++i)
      text += (i ? "," : "") + columns[i];
    text += "\n";
  }
  return text;
}

/// Units of time that a stage is idle, over those that it works.
double bubble(const std::vector<Row> &rows) {
  int busiest = 0;
  for (const Row &row : rows) {
    int busy = 0;
    for (const Cell &cell : row)
      busy += cell.length();
    busiest = std::max(busiest, busy);
  }
  return busiest ? double(makespan(rows) - busiest) / busiest : 0;
}

std::string picture(const std::vector<Row> &rows, const LoadedPlan &plan) {
  constexpr size_t maxColumns = 100;
  uint32_t microbatches = plan.stages.front()->num_micro_batches;
  size_t cellWidth = std::to_string(microbatches ? microbatches - 1 : 0).size();
  // A cell shows F or B and its micro-batch: two units wide for a backward.
  cellWidth += 2;
  size_t units = static_cast<size_t>(makespan(rows));
  size_t shown = std::min(units, maxColumns / cellWidth);
  std::string text = "one column is one forward; a backward takes two (";
  text += std::to_string(units) + " columns";
  if (shown < units)
    text += ", the first " + std::to_string(shown) + " shown";
  text += ")\n\n";
  for (size_t stage = 0; stage < rows.size(); ++stage) {
    std::string line(units * cellWidth, ' ');
    for (size_t unit = 0; unit < units; ++unit)
      line[unit * cellWidth] = '.';
    for (const Cell &cell : rows[stage]) {
      size_t width = static_cast<size_t>(cell.length()) * cellWidth;
      std::string mark = cell.pass + std::to_string(cell.microbatch);
      mark += std::string(width - mark.size(), cell.pass == 'F' ? ' ' : '-');
      if (cell.pass == 'B')
        mark.back() = ' ';
      line.replace(static_cast<size_t>(cell.start) * cellWidth, width, mark);
    }
    line.resize(std::min(line.size(), shown * cellWidth));
    text +=
        "  stage " + padLeft(std::to_string(stage), 3) + " |" + line + "|\n";
  }
  char tail[96];
  std::snprintf(tail, sizeof tail,
                "\nidle over work: %.4f (makespan %zu units for %u "
                "micro-batches)\n",
                bubble(rows), units, microbatches);
  return text + tail;
}

} // namespace

Result<std::string> reckon::show::schedule(const LoadedPlan &plan,
                                           Format format) {
  std::vector<Row> rows;
  for (const auto &stage : plan.stages)
    rows.push_back(computeRow(*stage));
  RECKON_TRY(timetable(rows));
  if (format == Format::Csv)
    return csv(rows);
  if (format == Format::Text)
    return picture(rows, plan);
  nlohmann::json json;
  json["unit"] = "one forward; a backward takes two";
  json["makespan"] = makespan(rows);
  json["bubble_fraction"] = bubble(rows);
  for (size_t stage = 0; stage < rows.size(); ++stage)
    for (const Cell &cell : rows[stage])
      json["stages"][stage].push_back({{"label", cell.label},
                                       {"start", cell.start},
                                       {"length", cell.length()}});
  return json.dump(2) + "\n";
}
