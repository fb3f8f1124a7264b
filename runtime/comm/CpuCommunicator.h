//===- CpuCommunicator.h - the communicator over sockets and rings --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Puts the parts together: links to peers, group and channel queues, a pool of
// operations, the control star. After start() nothing here allocates.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_CPUCOMMUNICATOR_H
#define RECKON_RUNTIME_COMM_CPUCOMMUNICATOR_H

#include "runtime/comm/GroupRun.h"
#include "runtime/comm/Rendezvous.h"

namespace reckon::comm {

class CpuCommunicator : public Communicator {
public:
  CpuCommunicator(const WorldOptions &options, Meeting meeting);

  int rank() const override { return options_.rank; }
  int worldSize() const override { return options_.world; }

  Result<GroupId> createGroup(const std::string &name,
                              std::vector<int> ranks) override;
  Result<ChannelId> createChannel(const std::string &name, int peer,
                                  Direction direction, uint32_t tag) override;
  Status start() override;

  Result<Ticket> allReduce(GroupId group, Segments in, Segments out, DType type,
                           Reduction reduction) override;
  Result<Ticket> allGather(GroupId group, Segments in, Segments out,
                           DType type) override;
  Result<Ticket> reduceScatter(GroupId group, Segments in, Segments out,
                               DType type, Reduction reduction) override;
  Result<Ticket> send(ChannelId channel, Segments data, DType type) override;
  Result<Ticket> receive(ChannelId channel, Segments data, DType type) override;

  Result<bool> test(Ticket ticket) override;
  Result<bool> progress() override;
  void idle() override;

  Result<std::vector<std::string>> allGatherBytes(std::string_view mine,
                                                  double timeout) override;
  void abort(const Error &reason) override;
  Status finish() override;
  std::string describePending() const override;

private:
  struct Group {
    GroupRun run;
    FixedQueue<uint32_t> queue; // operations; the front one runs
    uint32_t posted = 0;
  };
  struct Channel {
    std::string name;
    Direction direction;
    int peer;
    OutPort *out = nullptr;
    InPort *in = nullptr;
    FixedQueue<uint32_t> queue;
    uint32_t posted = 0;
    uint64_t taken = 0; // completed messages whose operations were released
  };

  Link &linkTo(int peer);
  Status checkNeighbours();
  Status connectAll();

  /// A free operation, or the error that stops posting.
  Result<uint32_t> acquire(size_t segments);
  Ticket ticketOf(uint32_t slot) const;
  void release(uint32_t slot);
  Result<Ticket> postCollective(GroupId group, Segments in, Segments out,
                                OpKind kind, DType type, Reduction reduction);
  Result<Ticket> postMessage(ChannelId channel, Segments data, DType type,
                             Direction direction);

  Result<bool> advanceGroup(Group &group);
  bool advanceChannel(Channel &channel);
  Status checkPeers();
  void sleep();
  Error fail(const Error &error);

  WorldOptions options_;
  std::unique_ptr<Control> control_;
  std::unique_ptr<Wiring> wiring_;
  std::vector<std::unique_ptr<Link>> links_; // ordered by peer after start()
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Operation> operations_;
  FixedQueue<uint32_t> free_;

  bool started_ = false;
  bool finishing_ = false;
  std::optional<Error> error_;
  int64_t lastCheck_ = 0;
  int64_t closedSince_ = 0; // when a link's end of file was first seen
  int emptyTurns_ = 0;
  std::vector<pollfd> pollEntries_;
};

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_CPUCOMMUNICATOR_H
