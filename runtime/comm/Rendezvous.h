//===- Rendezvous.h - how ranks find each other ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Rank 0 listens at an address that all know; the others connect, try again
// until a deadline, and say who they are. A connection with another run id or
// generation is refused, so a stray of an earlier job on the same port does no
// harm. Rank 0 answers with the table of all ranks' own addresses once all are
// there, and names those that never came.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_RENDEZVOUS_H
#define RECKON_RUNTIME_COMM_RENDEZVOUS_H

#include "runtime/comm/Control.h"

namespace reckon::comm {

/// How bytes travel: rings and sockets are used only within a host, TCP
/// between hosts in every case.
enum class Transport : uint8_t { Ring = 0, Socket, Tcp };

struct WorldOptions {
  int rank = 0;
  int world = 1;
  /// Where rank 0 listens: "tcp:host:port" or "unix:@name".
  std::string master;
  /// Run id: equal on all ranks of a job, different from other jobs'.
  std::string nonce;
  uint32_t generation = 0;
  double timeoutSeconds = 60;
  /// Set by another thread to make blocking calls give up; null: nobody will.
  const std::atomic<bool> *cancel = nullptr;
  Transport transport = Transport::Ring;
  /// Node of every rank, to name where absent ranks should be; may be empty.
  std::vector<std::string> hosts;
  /// Ranks with equal ids share memory; empty: found out by the system.
  std::string hostId;
  /// Posted and unfinished operations at a time, and segments of each.
  uint32_t maxOperations = 256;
  uint32_t maxSegments = 1024;
};

/// RECKON_TRANSPORT: ring (default), socket or tcp.
Result<Transport> transportFromEnvironment();

/// Joins the world of `options` and returns its communicator. Errors: 5 when
/// ranks are missing at the deadline (with their numbers) or an address cannot
/// be used, 41 when ranks disagree about the world's size.
Result<std::unique_ptr<Communicator>> joinWorld(const WorldOptions &options);

/// All ranks of a small world within this process, over socket pairs. Each is
/// to be driven by its own thread until start() returned; afterwards one thread
/// may take turns. For tests.
Result<std::vector<std::unique_ptr<Communicator>>>
makeLocalWorld(int world, WorldOptions options);

/// Brings up the links of one rank.
class Wiring {
public:
  virtual ~Wiring() = default;
  /// Connects all of `links` (ordered by peer), whose ports are sealed.
  virtual Status connect(const std::vector<std::unique_ptr<Link>> &links,
                         Control &control, const Deadline &deadline) = 0;
};

/// The parts joinWorld() puts together.
struct Meeting {
  std::unique_ptr<Control> control;
  std::unique_ptr<Wiring> wiring;
};
Result<Meeting> meet(const WorldOptions &options);

/// The communicator over sockets and rings. Defined in CpuCommunicator.cpp.
std::unique_ptr<Communicator> makeCpuCommunicator(const WorldOptions &options,
                                                  Meeting meeting);

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_RENDEZVOUS_H
