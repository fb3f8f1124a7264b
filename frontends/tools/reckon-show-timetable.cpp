//===- reckon-show-timetable.cpp - when each stage runs what --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/reckon-show-timetable.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::show;

Row show::computeRow(const StagePlanT &stage) {
  Row row;
  for (const auto &list : stage.lists) {
    if (list->name != "step")
      continue;
    for (const auto &action : list->actions) {
      if (action->kind != ActionKind::run || action->units.empty())
        continue;
      bool backward = action->label.find('B') != std::string::npos;
      row.push_back({action->label, backward ? 'B' : 'F',
                     action->units.front().microbatch()});
    }
  }
  return row;
}

Status show::timetable(std::vector<Row> &rows) {
  std::map<std::tuple<size_t, char, uint32_t>, int> done;
  std::vector<size_t> next(rows.size(), 0);
  std::vector<int> clock(rows.size(), 0);
  bool progress = true;
  while (progress) {
    progress = false;
    for (size_t stage = 0; stage < rows.size(); ++stage)
      while (next[stage] < rows[stage].size()) {
        Cell &cell = rows[stage][next[stage]];
        bool forward = cell.pass == 'F';
        int ready = clock[stage];
        bool isEdge = forward ? stage == 0 : stage + 1 == rows.size();
        if (!isEdge) {
          auto it = done.find(
              {forward ? stage - 1 : stage + 1, cell.pass, cell.microbatch});
          if (it == done.end())
            break;
          ready = std::max(ready, it->second);
        }
        cell.start = ready;
        clock[stage] = ready + cell.length();
        done[{stage, cell.pass, cell.microbatch}] = clock[stage];
        ++next[stage];
        progress = true;
      }
  }
  for (size_t stage = 0; stage < rows.size(); ++stage)
    if (next[stage] < rows[stage].size())
      return makeError(ExitCode::Corrupt,
                       "the action lists of this plan never end: stage " +
                           std::to_string(stage) + " waits for the input of " +
                           rows[stage][next[stage]].label);
  return Status();
}

int show::makespan(const std::vector<Row> &rows) {
  int end = 0;
  for (const Row &row : rows)
    for (const Cell &cell : row)
      end = std::max(end, cell.start + cell.length());
  return end;
}
