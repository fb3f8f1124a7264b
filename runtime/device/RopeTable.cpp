//===- RopeTable.cpp - angles of rotary position embeddings ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/RopeTable.h"

#include <cmath>
#include <numbers>

namespace reckon::device {

std::vector<double> ropeFrequencies(int64_t d, const RopeScaling &scaling) {
  std::vector<double> frequencies(d / 2);
  double longest = scaling.original / scaling.lowFrequency;
  double shortest = scaling.original / scaling.highFrequency;
  for (int64_t i = 0; i < d / 2; ++i) {
    double frequency = std::pow(scaling.theta, -2.0 * i / d);
    if (scaling.factor != 1.0) {
      double wavelength = 2.0 * std::numbers::pi / frequency;
      if (wavelength > longest) {
        frequency /= scaling.factor;
      } else if (wavelength >= shortest) {
        double smooth = (scaling.original / wavelength - scaling.lowFrequency) /
                        (scaling.highFrequency - scaling.lowFrequency);
        frequency =
            (1.0 - smooth) * frequency / scaling.factor + smooth * frequency;
      }
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

void ropeTable(float *table, int64_t s, int64_t d, const RopeScaling &scaling,
               int64_t first) {
  std::vector<double> frequencies = ropeFrequencies(d, scaling);
  int64_t half = d / 2;
  for (int64_t p = 0; p < s; ++p) {
    float *row = table + p * d;
    for (int64_t i = 0; i < half; ++i) {
      double angle = static_cast<double>(first + p) * frequencies[i];
      row[i] = static_cast<float>(std::cos(angle));
      row[half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

} // namespace reckon::device
