//===- Risk.h - how sure "it fits" is -------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_RISK_H
#define RECKON_PASSES_MODEL_ACCOUNT_RISK_H

#include <cstdint>

namespace reckon::model {

/// What became of measured runs whose predicted memory lay in a band.
struct MemoryRisk {
  double from = 0, to = 0; ///< predicted / limit
  int64_t failed = 0, runs = 0;
  double share() const {
    return static_cast<double>(failed) / static_cast<double>(runs);
  }
};

/// The band of `predicted / limit`, of the sweep of Hagemann et al. 2023 (856
/// configurations, successful and not, kernels unknown to the prediction). For
/// accounts with calibrated lines; an exact one fits or does not.
MemoryRisk memoryRisk(double predictedOverLimit);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_RISK_H
