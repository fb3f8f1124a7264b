//===- Chart.cpp - goodput over the number of devices ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Analysis.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace reckon;
using namespace reckon::goodput;

namespace {

constexpr int kHeight = 11; // rows at 100 %, 90 %, ... 0 %
constexpr int kHalf = 30;   // columns on each side of the job's own size

} // namespace

std::string goodput::chartText(const Inputs &inputs) {
  std::vector<std::string> rows(kHeight, std::string(2 * kHalf + 1, ' '));
  for (int column = -kHalf; column <= kHalf; ++column) {
    // 64 times fewer to 64 times more devices.
    double gpus =
        static_cast<double>(inputs.gpus) * std::exp2(6.0 * column / kHalf);
    Inputs other = inputs.withGpus(gpus);
    std::optional<double> tau = other.interval();
    double g = tau ? goodput::goodput(other.terms, *tau) : 0;
    auto row = static_cast<int>(std::lround((1 - g) * (kHeight - 1)));
    rows[row][column + kHalf] = column == 0 ? 'X' : '*';
  }
  std::string text = "  goodput\n";
  for (int row = 0; row < kHeight; ++row) {
    char label[16];
    std::snprintf(label, sizeof label, "  %3d %% |", 100 - 10 * row);
    rows[row].erase(rows[row].find_last_not_of(' ') + 1);
    text += label + rows[row] + "\n";
  }
  text += "        +" + std::string(2 * kHalf + 1, '-') + "\n";
  std::string axis(9 + 2 * kHalf + 8, ' ');
  for (int power : {-6, -4, -2, 0, 2, 4, 6}) {
    double gpus = static_cast<double>(inputs.gpus) * std::exp2(power);
    if (gpus < 1)
      continue;
    char label[32];
    int length = std::snprintf(label, sizeof label, "%.0f", gpus);
    int at = 9 + kHalf + power * kHalf / 6 - length / 2;
    axis.replace(at, length, label);
  }
  axis.erase(axis.find_last_not_of(' ') + 1);
  return text + axis + "   devices\n";
}
