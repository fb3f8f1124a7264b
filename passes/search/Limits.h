//===- Limits.h - named limits, and which sets of them are broken ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A violation mask has one bit for every limit that a combination breaks:
// limits of the machine and the constraints, and every key that the user
// restricted. The masks that are minimal under inclusion say which limits
// would have to be lifted together for something to fit.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_LIMITS_H
#define RECKON_PASSES_SEARCH_LIMITS_H

#include "passes/model/Choice.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reckon::search {

enum class Limit : uint8_t {
  Memory,         ///< constraints.memory_limit_gib
  Bubble,         ///< constraints.max_bubble
  HostMemory,     ///< constraints.host_memory_limit_gib
  Divisibility,   ///< sizes that do not divide; no key lifts it
  Representation, ///< what parallelism.representation can express
  Compilable,     ///< search.space: compilable
  // Keys of `parallelism` that the user restricted.
  TensorParallel,
  SequenceParallel,
  ContextParallel,
  ContextMethod,
  PipelineParallel,
  VirtualPipeline,
  Schedule,
  Layout,
  ExpertParallel,
  ExpertTensorParallel,
  DataParallel,
  ZeroStage,
  MicroBatch,
  Recompute,
  Count
};

inline constexpr int kNumLimits = static_cast<int>(Limit::Count);

using LimitMask = uint32_t;

constexpr LimitMask bit(Limit limit) {
  return LimitMask{1} << static_cast<int>(limit);
}

/// The dotted key of the spec, such as `constraints.max_bubble`;
/// `divisibility` for the one limit without a key.
const char *limitKey(Limit limit);

/// The limits of a mask in the order of the enumeration.
std::vector<Limit> limitsOf(LimitMask mask);

/// One combination and how far it is from the limits.
struct Witness {
  model::Choice choice;
  double stepSeconds = 0;
  uint64_t peakArena = 0; ///< bytes, largest over the pipeline ranks
  int64_t peakRank = 0;   ///< pipeline rank of peakArena
  uint64_t hostBytes = 0; ///< of a node
  double bubble = 0;
};

struct MaskEntry {
  int64_t count = 0; ///< combinations visited that break exactly these limits
  Witness fastest;   ///< least step time; ties by order of enumeration
  Witness smallest;  ///< least peakArena
  Witness leastBubble;
};

/// Violation masks of a spec's combinations, the user's restrictions lifted.
/// Combinations that do not divide, or that a mask already present makes
/// pointless (a proper superset), are not among them but are counted.
struct MaskTable {
  std::map<LimitMask, MaskEntry> entries; ///< in rising order of the mask
  int64_t space = 0;                      ///< combinations, restrictions lifted
  int64_t indivisible = 0; ///< of those, the ones that do not divide
  int64_t dominated = 0;   ///< skipped: some mask present is a proper subset
  std::map<std::string, int64_t> reasons; ///< why they do not divide

  /// Masks without a proper subset among the entries, in rising order.
  std::vector<LimitMask> minimal() const;
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_LIMITS_H
