//===- KeyTable.cpp - the rows, section by section ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/KeyRows.h"

using namespace reckon;

static std::vector<KeyRow> makeTable() {
  keys::Rows rows;
  keys::addModelKeys(rows);
  keys::addClusterKeys(rows);
  keys::addTrainingKeys(rows);
  keys::addParallelismKeys(rows);
  keys::addPlanningKeys(rows);
  return std::move(rows.all);
}

const std::vector<KeyRow> &reckon::keyTable() {
  static const std::vector<KeyRow> table = makeTable();
  return table;
}
