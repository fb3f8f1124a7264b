//===- Risk.h - how sure "it fits" is -------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_RISK_H
#define RECKON_PASSES_MODEL_ACCOUNT_RISK_H

#include "passes/model/account/MemoryProfile.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::model {

/// What became of measured runs whose predicted memory lay in a band.
struct MemoryRisk {
  double from = 0, to = 0; ///< predicted / limit
  int64_t failed = 0, runs = 0;
  std::string source;

  double share() const {
    return static_cast<double>(failed) / static_cast<double>(runs);
  }
  /// Wilson's interval of 95 % for the probability that a run of the band
  /// fails.
  double least() const { return wilson(-1); }
  double most() const { return wilson(1); }

private:
  double wilson(double sign) const;
};

/// Whether the profile's framework allocates as it goes, through a cache that
/// takes more than is asked of it. Static arenas fit or do not, to the byte,
/// and have no risk.
inline bool cachesAllocations(const MemoryProfile &profile) {
  return profile.allocator > 1;
}

/// The band of `predicted / limit` in memory_risk.csv: of runs whose kernels
/// and allocator the prediction did not know. For accounts with a caching
/// allocator.
MemoryRisk memoryRisk(double predictedOverLimit);

/// The bands of a table in the form of memory_risk.csv. They begin at 0, leave
/// no gap, and the last one is open.
Result<std::vector<MemoryRisk>> memoryRisks(std::string_view csv);

/// memory_risk.csv as it was when this was built.
std::string_view memoryRiskTable();

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_RISK_H
