//===- Communicator.cpp - what every communicator shares ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Communicator.h"

#include "runtime/comm/Control.h"

#include <map>

namespace reckon::comm {

void Communicator::onStream(void *) {}

Status Communicator::groupStart() { return Status(); }

Status Communicator::groupEnd() { return Status(); }

Status Communicator::registerBuffer(void *, size_t) { return Status(); }

Status Communicator::wait(Ticket ticket) {
  for (;;) {
    Result<bool> done = test(ticket);
    RECKON_TRY(done);
    if (*done)
      return Status();
    Result<bool> moved = progress();
    RECKON_TRY(moved);
    if (!*moved)
      idle();
  }
}

Status Communicator::agree(std::string_view what, std::string_view digest,
                           double timeout) {
  auto all = allGatherBytes(digest, timeout);
  RECKON_TRY(all);
  std::map<std::string, std::vector<int>> byDigest;
  for (size_t r = 0; r < all->size(); ++r)
    byDigest[(*all)[r]].push_back(static_cast<int>(r));
  if (byDigest.size() <= 1)
    return Status();
  // The largest party is taken to be right; among equals the one of rank 0.
  const std::string *common = &(*all)[0];
  for (const auto &[value, ranks] : byDigest)
    if (ranks.size() > byDigest[*common].size())
      common = &value;
  std::string text = "expected the same " + std::string(what) +
                     " on all ranks, got " + *common + " on " +
                     listRanks(byDigest[*common]);
  for (const auto &[value, ranks] : byDigest)
    if (value != *common)
      text += " but " + value + " on " + listRanks(ranks);
  return makeError(ExitCode::Mismatch, text + "; start all ranks the same way");
}

} // namespace reckon::comm
