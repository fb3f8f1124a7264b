//===- Scores.h - how near predictions are to measurements ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_ACCURACY_SCORES_H
#define RECKON_TESTS_ACCURACY_SCORES_H

#include <optional>
#include <vector>

namespace reckon::accuracy {

double median(std::vector<double> values);
/// The value at int(q * n), as the acceptance test takes it.
double quantile(std::vector<double> values, double q);
/// Rank correlation; ties get the rank of the first. Empty when one side has
/// no spread.
std::optional<double> spearman(const std::vector<double> &a,
                               const std::vector<double> &b);

} // namespace reckon::accuracy

#endif // RECKON_TESTS_ACCURACY_SCORES_H
