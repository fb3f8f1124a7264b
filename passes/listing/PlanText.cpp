//===- PlanText.cpp - parts of a plan as text -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/listing/PlanText.h"

#include <cstdio>
#include <iterator>

using namespace reckon;
using namespace reckon::plan;

std::string listing::exprText(const std::unique_ptr<ExprT> &value,
                              const std::optional<Coord> &coord) {
  if (!value)
    return "0";
  if (coord)
    return std::to_string(evalExpr(*value, *coord));
  std::string text;
  for (const Case &c : value->cases)
    text += std::string(axisName(c.axis())) + (c.differs() ? " not " : " is ") +
            std::to_string(c.equals()) + " ? " + std::to_string(c.value()) +
            " : ";
  bool first = true;
  if (value->base != 0 || value->terms.empty()) {
    text += std::to_string(value->base);
    first = false;
  }
  for (const Term &term : value->terms) {
    text += (first ? "" : " + ") + std::to_string(term.scale()) + "*" +
            axisName(term.axis());
    first = false;
  }
  return text;
}

std::string listing::regionText(const StagePlanT &plan, const BufferT &buffer,
                                const FragmentT *fragment) {
  switch (buffer.region) {
  case Region::state:
    return plan.states[buffer.index]->name;
  case Region::slot:
    return fragment ? fragment->slots[buffer.index]->name
                    : "slot " + std::to_string(buffer.index);
  case Region::lane:
    return plan.lanes[buffer.index]->name;
  }
  return "?";
}

std::string listing::placeText(const StagePlanT &plan, const BufferT &buffer,
                               const FragmentT *fragment,
                               const std::optional<Coord> &coord) {
  std::string text = regionText(plan, buffer, fragment);
  std::string offset = exprText(buffer.offset, coord);
  return offset == "0" ? text : text + "+" + offset;
}

std::string listing::numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string listing::humanBytes(uint64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit ? "%.2f %s" : "%.0f %s", value,
                units[unit]);
  return text;
}

uint64_t listing::bufferBytes(const BufferT &buffer) {
  return static_cast<uint64_t>(elementCount(buffer.shape) *
                               dtypeSize(buffer.dtype));
}

bool listing::isCollective(Opcode op) {
  return op == Opcode::all_reduce || op == Opcode::all_gather ||
         op == Opcode::reduce_scatter;
}

int64_t listing::groupSize(const GroupT &group, const MeshT &mesh) {
  int64_t size = 1;
  for (Axis axis : group.axes) {
    int64_t ranks = axisSize(mesh, axis);
    for (const auto &filter : group.filters)
      if (filter->axis == axis)
        ranks = static_cast<int64_t>(filter->values.size());
    size *= ranks;
  }
  return size;
}
