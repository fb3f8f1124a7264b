//===- MegatronLayout.cpp - layers per stage as a string ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/Megatron.h"

using namespace reckon;

static std::string repeated(char unit, int64_t times) {
  if (times <= 0)
    return "";
  if (times == 1)
    return std::string(1, unit);
  return std::string(1, unit) + "*" + std::to_string(times);
}

std::string exports::layoutString(const std::vector<int64_t> &layout,
                                  int64_t mtpLayers) {
  size_t last = layout.size() - 1;
  std::string text = "E" + repeated('t', layout[0]);
  if (last > 0)
    text += "|";
  // Runs of equal stages between the first and the last.
  for (size_t i = 1; i < last;) {
    size_t end = i;
    while (end < last && layout[end] == layout[i])
      ++end;
    std::string stage = repeated('t', layout[i]) + "|";
    text += end - i == 1 ? stage : "(" + stage + ")*" + std::to_string(end - i);
    i = end;
  }
  if (last > 0)
    text += repeated('t', layout[last]);
  return text + repeated('m', mtpLayers) + "L";
}
