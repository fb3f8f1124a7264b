//===- Schedule.cpp - names, placement and orders of schedules ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include "passes/model/schedule/Orders.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

const char *model::scheduleName(ScheduleKind kind) { return toString(kind); }

std::optional<ScheduleKind> model::parseSchedule(std::string_view name) {
  for (ScheduleKind kind :
       {ScheduleKind::GPipe, ScheduleKind::OneFOneB, ScheduleKind::Interleaved,
        ScheduleKind::Bfs, ScheduleKind::ZbH1, ScheduleKind::ZbH2,
        ScheduleKind::ZbV, ScheduleKind::DualPipeV, ScheduleKind::Synthesized})
    if (name == scheduleName(kind))
      return kind;
  return std::nullopt;
}

ScheduleShape model::shapeOf(const Choice &choice) {
  return {choice.schedule, choice.pp, choice.v, choice.numMicroBatches};
}

bool model::splitsBackward(ScheduleKind kind) {
  return kind == ScheduleKind::ZbH1 || kind == ScheduleKind::ZbH2 ||
         kind == ScheduleKind::ZbV || kind == ScheduleKind::DualPipeV ||
         kind == ScheduleKind::Synthesized;
}

bool model::isVShaped(ScheduleKind kind) {
  return kind == ScheduleKind::ZbV || kind == ScheduleKind::DualPipeV;
}

int64_t model::rankOfStage(ScheduleKind kind, int64_t p, int64_t v,
                           int64_t stage) {
  RECKON_CHECK(0 <= stage && stage < p * v);
  return isVShaped(kind) && stage >= p ? 2 * p - 1 - stage : stage % p;
}

int64_t model::chunkOfStage(ScheduleKind, int64_t p, int64_t v, int64_t stage) {
  RECKON_CHECK(0 <= stage && stage < p * v);
  return stage / p;
}

int64_t model::stageOfChunk(ScheduleKind kind, int64_t p, int64_t v,
                            int64_t rank, int64_t chunk) {
  RECKON_CHECK(0 <= rank && rank < p && 0 <= chunk && chunk < v);
  return isVShaped(kind) && chunk == 1 ? 2 * p - 1 - rank : chunk * p + rank;
}

int64_t model::defaultGroup(int64_t p, int64_t m) {
  // m itself is always legal, so that the loop ends.
  for (int64_t group = p; group < m; ++group)
    if (m % group == 0 || m % group >= p)
      return group;
  return m;
}

static int64_t groupOf(const ScheduleShape &shape) {
  return shape.group ? shape.group : defaultGroup(shape.p, shape.m);
}

std::string model::whyNotSchedule(const ScheduleShape &shape) {
  auto [kind, p, v, m, group] = shape;
  auto needs = [](const std::string &what, int64_t got) {
    return "needs " + what + ", got " + std::to_string(got);
  };
  RECKON_CHECK(p >= 1 && v >= 1 && m >= 1 && group >= 0);
  switch (kind) {
  case ScheduleKind::GPipe:
  case ScheduleKind::OneFOneB:
  case ScheduleKind::ZbH2:
    return v == 1 ? "" : needs("1 chunk a rank", v);
  case ScheduleKind::Bfs:
    return "";
  case ScheduleKind::Interleaved:
    if (v == 1)
      return needs("at least 2 chunks a rank", v);
    [[fallthrough]];
  case ScheduleKind::ZbH1:
    if (v == 1)
      return "";
    if (m < p)
      return needs("at least " + std::to_string(p) + " micro-batches", m);
    if (group && (group < p || group > m))
      return needs("groups of " + std::to_string(p) + " to " +
                       std::to_string(m) + " micro-batches",
                   group);
    if (group && m % group != 0 && m % group < p)
      return needs("a last group of at least " + std::to_string(p) +
                       " micro-batches",
                   m % group);
    return "";
  case ScheduleKind::ZbV:
    return v == 2 ? "" : needs("2 chunks a rank", v);
  case ScheduleKind::DualPipeV:
    if (v != 2)
      return needs("2 chunks a rank", v);
    return m >= 2 * p
               ? ""
               : needs("at least " + std::to_string(2 * p) + " micro-batches",
                       m);
  case ScheduleKind::Synthesized:
    return "has no order before it is synthesized";
  case ScheduleKind::Csv:
    return "has the order of its file";
  }
  return "is unknown";
}

/// On stage 0 nobody waits for the gradient of the inputs, and one kernel
/// after the other is faster than two visits.
static void mergeFirstStage(std::vector<ComputeAction> &order) {
  size_t out = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    ComputeAction action = order[i];
    if (action.pass == 'I' && action.chunk == 0 && i + 1 < order.size() &&
        order[i + 1] == ComputeAction{'W', action.microBatch, 0}) {
      action.pass = 'B';
      ++i;
    }
    order[out++] = action;
  }
  order.resize(out);
}

std::vector<ComputeAction> model::scheduleOrder(const ScheduleShape &shape,
                                                int64_t rank) {
  auto [kind, p, v, m, group] = shape;
  RECKON_CHECK(0 <= rank && rank < p && whyNotSchedule(shape).empty());
  schedule::VirtualOrder table{v, m, v == 1 ? m : groupOf(shape)};
  std::vector<ComputeAction> order;
  switch (kind) {
  case ScheduleKind::GPipe:
  case ScheduleKind::Bfs:
    return schedule::breadthFirst(v, m);
  case ScheduleKind::OneFOneB:
    return schedule::oneForwardOneBackward(p, m, rank);
  case ScheduleKind::Interleaved:
    return schedule::interleaved(p, table, rank);
  case ScheduleKind::ZbH1:
    order = schedule::zeroBubbleH1(p, table, rank);
    break;
  case ScheduleKind::ZbH2:
    order = schedule::zeroBubbleH2(p, m, rank);
    break;
  case ScheduleKind::ZbV:
    order = schedule::zeroBubbleV(p, m, rank);
    break;
  case ScheduleKind::DualPipeV:
    order = schedule::dualPipeV(p, m, rank);
    break;
  case ScheduleKind::Synthesized:
  case ScheduleKind::Csv:
    break;
  }
  if (rank == 0)
    mergeFirstStage(order);
  return order;
}

std::vector<ComputeAction> model::scheduleOrder(ScheduleKind kind,
                                                int64_t stages,
                                                int64_t microBatches,
                                                int64_t stage) {
  return scheduleOrder(ScheduleShape{kind, stages, 1, microBatches}, stage);
}

void PipelineOrders::indexStages() {
  RECKON_CHECK(static_cast<int64_t>(stageOfChunk.size()) == stages());
  rankOfStage.assign(stages(), -1);
  chunkOfStage.assign(stages(), -1);
  for (int64_t i = 0; i < stages(); ++i) {
    int64_t stage = stageOfChunk[i];
    RECKON_CHECK(0 <= stage && stage < stages() && rankOfStage[stage] < 0);
    rankOfStage[stage] = i / v;
    chunkOfStage[stage] = i % v;
  }
}

PipelineOrders model::makeOrders(const ScheduleShape &shape) {
  PipelineOrders orders;
  orders.p = shape.p;
  orders.v = shape.v;
  orders.m = shape.m;
  for (int64_t rank = 0; rank < shape.p; ++rank) {
    for (int64_t chunk = 0; chunk < shape.v; ++chunk)
      orders.stageOfChunk.push_back(
          stageOfChunk(shape.kind, shape.p, shape.v, rank, chunk));
    orders.ranks.push_back(scheduleOrder(shape, rank));
  }
  orders.indexStages();
  return orders;
}
