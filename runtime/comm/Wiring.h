//===- Wiring.h - connecting ranks that exchange data ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// After the rendezvous every rank knows every address. Connections are made
// only between ranks that share a group's neighbourhood or a channel; of two
// ranks the higher one connects. Connecting waits for nobody (the listener's
// queue takes it), so no order of ranks can deadlock.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_WIRING_H
#define RECKON_RUNTIME_COMM_WIRING_H

#include "runtime/comm/Rendezvous.h"

#include <istream>

namespace reckon::comm {

/// Where a rank takes data connections.
struct PeerAddress {
  std::string hostId;
  std::string unixName;
  std::string host; // empty: where rank 0's control connection leads
  int port = 0;     // 0: no TCP
};

std::string encodePeer(const PeerAddress &peer);
bool decodePeer(std::istream &in, PeerAddress &peer);

class SocketWiring : public Wiring {
public:
  explicit SocketWiring(const WorldOptions &options) : options_(options) {}

  /// Opens this rank's listeners once; `localHost` is the numeric address of
  /// the interface that reaches the other ranks, "" when all are on one host.
  Result<PeerAddress> listen(const std::string &localHost);

  void setTable(std::vector<PeerAddress> table, std::string masterHost) {
    table_ = std::move(table);
    masterHost_ = std::move(masterHost);
  }

  Status connect(const std::vector<std::unique_ptr<Link>> &links,
                 Control &control, const Deadline &deadline) override;

private:
  struct LinkHello;
  Status connectOne(Link &link, const Deadline &deadline);
  Status acceptAll(std::vector<Link *> expected, Control &control,
                   const Deadline &deadline);
  /// Whether the connection was one of those expected.
  Result<bool> acceptOne(Fd fd, std::vector<Link *> &expected);

  WorldOptions options_;
  PeerAddress mine_;
  Fd unixListener_, tcpListener_;
  std::vector<PeerAddress> table_;
  std::string masterHost_;
};

/// Sends this rank's port tables over connected links and compares the peers'.
Status comparePortTables(const std::vector<std::unique_ptr<Link>> &links,
                         const std::vector<std::string> &tables,
                         const Deadline &deadline);

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_WIRING_H
