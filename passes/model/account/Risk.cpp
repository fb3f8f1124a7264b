//===- Risk.cpp - how sure "it fits" is -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Risk.h"

#include <limits>

using namespace reckon::model;

// Counted over the rows of the sweep with the profile of this version, bands
// joined until the share rises from each to the next.
static constexpr MemoryRisk kBands[] = {
    {0, 0.8, 7, 289},
    {0.8, 1.0, 38, 97},
    {1.0, 1.1, 37, 60},
    {1.1, 1.2, 22, 28},
    {1.2, std::numeric_limits<double>::infinity(), 380, 382},
};

MemoryRisk reckon::model::memoryRisk(double predictedOverLimit) {
  for (const MemoryRisk &band : kBands)
    if (predictedOverLimit < band.to)
      return band;
  return kBands[4];
}
