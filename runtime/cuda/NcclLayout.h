//===- NcclLayout.h - which NCCL communicators there are, and in order ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// ncclCommSplit is called by all ranks together and makes at once as many
// communicators as it has colours, as long as no rank is in two of them. So the
// ranks tell each other what they want, and each computes the same rounds of
// splits from that: a group or channel goes into the first round in which none
// of its ranks has another one.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_NCCLLAYOUT_H
#define RECKON_RUNTIME_CUDA_NCCLLAYOUT_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon::cuda {

/// A communicator that a rank takes part in.
struct NcclRequest {
  bool channel = false;
  std::string name;
  uint32_t tag = 0;       ///< of a channel
  std::vector<int> ranks; ///< by position; of a channel: source, target
  bool operator==(const NcclRequest &) const = default;
};

/// A communicator of the world.
struct NcclMember {
  NcclRequest what;
  /// The split that makes it, and its colour there. The first group of all
  /// ranks in their order needs no split, its round is -1: it is the parent.
  int round = 0, color = 0;
};

struct NcclLayout {
  std::vector<NcclMember> members; ///< in the order in which they are made
  int rounds = 0;

  /// The member that is `request`; null when there is none.
  const NcclMember *find(const NcclRequest &request) const;
};

/// What `rank` has to tell the others. Only a communicator's first rank sends
/// its list of ranks, the others a digest of it.
std::string encodeRequests(int rank, const std::vector<NcclRequest> &requests);

/// The layout of what all ranks told, by rank. Mismatch (41) names two ranks of
/// which only one takes part in a communicator.
Result<NcclLayout> layOut(const std::vector<std::string> &told);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_NCCLLAYOUT_H
