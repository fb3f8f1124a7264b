//===- LocalWorld.cpp - all ranks within one process ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Wiring.h"

#include <map>

namespace reckon::comm {
namespace {

/// Connections that were made before the ranks existed.
class LocalWiring : public Wiring {
public:
  struct End {
    Fd socket;
    SharedRing ring;
  };
  std::map<int, End> ends;

  Status connect(const std::vector<std::unique_ptr<Link>> &links, Control &,
                 const Deadline &) override {
    for (const auto &link : links) {
      End &end = ends[link->peer()];
      link->connect(std::move(end.socket), std::move(end.ring));
    }
    ends.clear();
    return Status();
  }
};

Status joinPair(LocalWiring &low, int lowRank, LocalWiring &high, int highRank,
                Transport transport) {
  auto sockets = socketPair(transport == Transport::Tcp);
  RECKON_TRY(sockets.status());
  LocalWiring::End a{std::move(sockets->first), {}};
  LocalWiring::End b{std::move(sockets->second), {}};
  if (transport == Transport::Ring) {
    Result<Fd> memory = SharedRing::createMemory();
    RECKON_TRY(memory.status());
    for (auto [end, side] : {std::pair(&a, 0), std::pair(&b, 1)}) {
      Result<SharedRing> ring = SharedRing::attach(*memory, side);
      RECKON_TRY(ring.status());
      end->ring = std::move(*ring);
    }
  }
  low.ends[highRank] = std::move(a);
  high.ends[lowRank] = std::move(b);
  return Status();
}

} // namespace

Result<std::vector<std::unique_ptr<Communicator>>>
makeLocalWorld(int world, WorldOptions options) {
  std::vector<std::unique_ptr<LocalWiring>> wirings;
  std::vector<std::unique_ptr<Control>> controls;
  for (int r = 0; r < world; ++r) {
    wirings.push_back(std::make_unique<LocalWiring>());
    controls.push_back(std::make_unique<Control>(r, world));
    auto &mine = *wirings.back();
    for (int other = 0; other < r; ++other)
      RECKON_TRY(joinPair(*wirings[static_cast<size_t>(other)], other, mine, r,
                          options.transport));
    if (r == 0)
      continue;
    auto sockets = socketPair(false);
    RECKON_TRY(sockets.status());
    controls[0]->setPeer(r, std::move(sockets->first));
    controls.back()->setPeer(0, std::move(sockets->second));
  }
  std::vector<std::unique_ptr<Communicator>> all;
  for (int r = 0; r < world; ++r) {
    options.rank = r;
    options.world = world;
    auto at = static_cast<size_t>(r);
    all.push_back(makeCpuCommunicator(
        options, {std::move(controls[at]), std::move(wirings[at])}));
  }
  return all;
}

} // namespace reckon::comm
