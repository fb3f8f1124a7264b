//===- Scores.cpp - how near predictions are to measurements --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/accuracy/Scores.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace reckon;

double accuracy::median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  if (n == 0)
    return 0;
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double accuracy::quantile(std::vector<double> values, double q) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  auto index = static_cast<size_t>(q * static_cast<double>(values.size()));
  return values[std::min(values.size() - 1, index)];
}

static std::vector<double> ranks(const std::vector<double> &values) {
  std::vector<double> sorted = values, result;
  std::sort(sorted.begin(), sorted.end());
  for (double value : values)
    result.push_back(static_cast<double>(
        std::lower_bound(sorted.begin(), sorted.end(), value) -
        sorted.begin()));
  return result;
}

std::optional<double> accuracy::spearman(const std::vector<double> &a,
                                         const std::vector<double> &b) {
  std::vector<double> ra = ranks(a), rb = ranks(b);
  if (std::set<double>(ra.begin(), ra.end()).size() < 2 ||
      std::set<double>(rb.begin(), rb.end()).size() < 2)
    return std::nullopt;
  double ma = 0, mb = 0;
  auto n = static_cast<double>(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ma += ra[i] / n;
    mb += rb[i] / n;
  }
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (ra[i] - ma) * (rb[i] - mb);
    aa += (ra[i] - ma) * (ra[i] - ma);
    bb += (rb[i] - mb) * (rb[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}
