//===- Control.h - the star of control connections around rank 0 ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every rank keeps its rendezvous connection to rank 0. It carries small
// agreements at the start, and the verdict when a rank dies or stops: rank 0
// tells all others, so that everybody names the rank that failed first and not
// the neighbour that closed its connections because of it.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_CONTROL_H
#define RECKON_RUNTIME_COMM_CONTROL_H

#include "runtime/comm/Link.h"

#include <poll.h>

namespace reckon::comm {

class Control {
public:
  Control(int rank, int world);

  /// Connection to `peer`: all others on rank 0, only rank 0 elsewhere.
  void setPeer(int peer, Fd fd);
  int rank() const { return rank_; }
  int world() const { return world_; }
  /// Descriptor to rank 0, -1 on rank 0 itself.
  int upstream() const { return rank_ == 0 ? -1 : peers_[0].fd.get(); }

  // --- All-gather of bytes: begin(), then check() until ready() -------------
  void begin(std::string_view mine);
  bool ready() const { return ready_; }
  std::vector<std::string> take();
  /// Ranks that rank 0 still waits for ("ranks 2, 3"); elsewhere "rank 0".
  std::string missing() const;

  /// Reads what has come, without waiting. Fails with the verdict when a rank
  /// has died or said that it stops. Costs one poll().
  Status check();

  /// Sends the verdict to everybody this rank knows. Best effort.
  void sendNotice(const Notice &notice);

  /// From now on a closed connection is an orderly end.
  void expectClose() { closing_ = true; }
  /// Ends the streams toward all peers, after what was sent.
  void shutDown();

  /// Appends what idle() has to listen to.
  void addPollEntries(std::vector<pollfd> &entries) const;

private:
  enum Kind : uint32_t { Gather = 1, Gathered, Stop };
  struct Header {
    uint32_t kind;
    uint32_t bytes;
  };
  struct Peer {
    int rank = 0;
    Fd fd;
    std::string inbox;
    bool ended = false;
    bool told = false; // its notice came
  };
  static constexpr uint32_t kMaxMessage = 64u << 20;

  void receive(Peer &peer);
  Status parse(Peer &peer);
  Status send(Peer &peer, Kind kind, std::string_view bytes);
  Status finishGather();

  int rank_, world_;
  std::vector<Peer> peers_;
  std::vector<pollfd> entries_;
  std::vector<std::optional<std::string>> gathered_;
  std::vector<std::string> result_;
  bool gathering_ = false;
  bool ready_ = false;
  bool closing_ = false;
  std::optional<Notice> notice_;
};

/// The error that a received notice, or a closed connection, stands for.
Error toError(const Notice &notice);
Error diedError(int rank);

/// "rank 2" or "ranks 2, 3 and 5 more".
std::string listRanks(const std::vector<int> &ranks);

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_CONTROL_H
