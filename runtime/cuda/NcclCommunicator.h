//===- NcclCommunicator.h - the communicator over NCCL --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operations go onto the stream that onStream() named, their tickets are
// complete at once, and the stream tells when the data is there. A second
// communicator, over the CPU transport, carries what is not for GPUs: who is
// there, agreements, who died, who stops.
//
// Every group has an NCCL communicator and every channel one of two ranks, so
// that only operations of one group or channel wait for each other. They are
// made by ncclCommSplit in an order that all ranks compute alike (NcclLayout.h)
// and share no resources: communicators that do share their launches' order,
// and a message could wait behind one of another channel.
//
// Sums of bf16: NCCL rounds after every addition of its ring, the CPU transport
// adds in fp32 and rounds once. Both are the same in equal runs.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_NCCLCOMMUNICATOR_H
#define RECKON_RUNTIME_CUDA_NCCLCOMMUNICATOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/NcclLayout.h"

#include <functional>
#include <memory>

namespace reckon::cuda {

struct NcclOptions {
  /// For each phase of start(), and for NCCL to take an operation.
  double deadlineSeconds = 120;
  /// Thread blocks that an operation of a group, or of a channel, may use; 0
  /// leaves it to NCCL.
  int groupMinCtas = 0, groupMaxCtas = 0;
  int channelMaxCtas = 0;
  /// Told every so often what start() waits for.
  std::function<void(const std::string &line)> report;
  double reportSeconds = 5;
};

/// An NCCL communicator and what was done with it.
struct NcclHandle {
  NcclRequest what;
  ncclComm_t comm = nullptr;
  void *buffer = nullptr; ///< registration
  uint64_t posted = 0;
  std::string last; ///< operation
  /// "group 'tp' (ranks 0, 1)".
  std::string text() const;
};

class NcclCommunicator : public comm::Communicator {
public:
  NcclCommunicator(std::unique_ptr<comm::Communicator> control,
                   NcclOptions options);
  /// Aborts what finish() has not ended.
  ~NcclCommunicator() override;

  int rank() const override { return control_->rank(); }
  int worldSize() const override { return control_->worldSize(); }

  Result<comm::GroupId> createGroup(const std::string &name,
                                    std::vector<int> ranks) override;
  Result<comm::ChannelId> createChannel(const std::string &name, int peer,
                                        comm::Direction direction,
                                        uint32_t tag) override;
  Status start() override;

  Result<comm::Ticket> allReduce(comm::GroupId group, comm::Segments in,
                                 comm::Segments out, comm::DType type,
                                 comm::Reduction reduction) override;
  Result<comm::Ticket> allGather(comm::GroupId group, comm::Segments in,
                                 comm::Segments out, comm::DType type) override;
  Result<comm::Ticket> reduceScatter(comm::GroupId group, comm::Segments in,
                                     comm::Segments out, comm::DType type,
                                     comm::Reduction reduction) override;
  Result<comm::Ticket> send(comm::ChannelId channel, comm::Segments data,
                            comm::DType type) override;
  Result<comm::Ticket> receive(comm::ChannelId channel, comm::Segments data,
                               comm::DType type) override;

  void onStream(void *native) override;
  Status groupStart() override;
  Status groupEnd() override;
  Status registerBuffer(void *base, size_t bytes) override;

  Result<bool> test(comm::Ticket ticket) override;
  Result<bool> progress() override;
  void idle() override;

  Result<std::vector<std::string>> allGatherBytes(std::string_view mine,
                                                  double timeout) override;
  void abort(const Error &reason) override;
  Status finish() override;
  std::string describePending() const override;

  /// Splits that start() needed, for reports and tests.
  int rounds() const { return layout_.rounds; }

private:
  struct Endpoint {
    NcclHandle *handle = nullptr; ///< null: a group of one rank
    NcclRequest what;
    comm::Direction direction = comm::Direction::Send; ///< of a channel
  };
  using Call = std::function<ncclResult_t(NcclHandle &handle, size_t segment)>;

  // Start, in NcclStart.cpp.
  Status connect();
  Status exchangeLists();
  Status makeParent();
  void serve(NcclHandle &handle);
  Status split(int round);
  Status checkPlace(NcclHandle &handle);
  Status releaseParent();
  Status preflight();
  Status runPreflight(int *device, int *host, cudaStream_t stream);
  ncclConfig_t configFor(const NcclHandle &handle) const;
  /// Polls `handle` until its present call is complete.
  Status await(NcclHandle &handle, const std::string &what);
  /// Polls `done` until the deadline; reports, and finds out who is missing.
  Status awaitUntil(const std::function<Result<bool>()> &done,
                    const std::string &what);
  Error timedOut(const std::string &what);

  /// Posts one call a segment, in one group call.
  Result<comm::Ticket> post(Endpoint &endpoint, size_t segments, comm::DType,
                            size_t elements, const char *what,
                            const Call &call);
  Result<comm::Ticket> copyAlone(comm::Segments in, comm::Segments out,
                                 comm::DType type);
  Result<Endpoint *> groupOf(comm::GroupId id, comm::Segments in,
                             comm::Segments out, bool gathers, bool scatters);
  Result<Endpoint *> channelOf(comm::ChannelId id, comm::Direction direction);
  /// Whether operations may be posted.
  Status open() const;
  Status checked(ncclResult_t result, NcclHandle *handle, const char *call);
  Status checkErrors();
  Error fail(const Error &error);
  void abortAll();

  std::unique_ptr<comm::Communicator> control_;
  NcclOptions options_;
  NcclLayout layout_;
  /// In the order made. The parent of all splits comes first; without a group
  /// that it serves it goes when they are done.
  std::vector<std::unique_ptr<NcclHandle>> handles_;
  bool parentIsGroup_ = false;
  std::vector<std::unique_ptr<Endpoint>> groups_, channels_;
  cudaStream_t stream_ = nullptr;
  std::vector<NcclHandle *> touched_; ///< by the group call under way
  int groupDepth_ = 0;
  bool started_ = false;
  std::optional<Error> error_;
  int64_t lastCheck_ = 0;
  int idleTurns_ = 0;
};

/// "ncclRemoteError (remote process exited or there was a network error)".
std::string ncclText(ncclResult_t result);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_NCCLCOMMUNICATOR_H
