//===- NcclComm.h - an emulated communicator ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What takes long in NCCL (making communicators, ending them) is done by a job
// on a thread of its own, as there. The job owns the communicator's world until
// a query on the communicator's own thread finds that it has ended; everything
// else happens on that thread.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_EMULATED_NCCLCOMM_H
#define RECKON_RUNTIME_CUDA_EMULATED_NCCLCOMM_H

#include "runtime/comm/Communicator.h"
#include "runtime/cuda/emulated/NcclApi.h"

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace reckon::cuda::emulated {

/// Most ranks of a communicator that has point-to-point messages: it needs a
/// channel from each to each.
inline constexpr int kMaxMessageRanks = 8;
/// Most operations of one group call and communicator.
inline constexpr uint32_t kMaxFused = 1024;

using Cancel = std::atomic<bool>;

/// The ranks of a communicator on the CPU transport.
struct NcclWorld {
  std::unique_ptr<comm::Communicator> ranks;
  comm::GroupId all{};
  std::vector<comm::ChannelId> to, from; ///< by peer; own entries unused

  /// Blocks until all `size` ranks have come to `address`.
  static Result<NcclWorld> join(const std::string &address, int rank, int size,
                                const Cancel *cancel);
  /// An address that no other world has.
  static std::string freshAddress();
};

/// A body that runs on a thread of its own. Destruction waits for its end; who
/// cannot wait sets what the body takes as its cancellation.
class NcclJob {
public:
  explicit NcclJob(std::function<Status()> body);
  ~NcclJob() { thread_.join(); }
  bool ended() const { return ended_; }
  const Status &status() const { return status_; } ///< once it has ended

private:
  Status status_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

/// One call of a group.
struct NcclCall {
  enum Kind { AllReduce, AllGather, ReduceScatter, Send, Receive } kind;
  const void *in = nullptr;
  void *out = nullptr;
  size_t count = 0;
  comm::DType type = comm::DType::F32;
  comm::Reduction reduction = comm::Reduction::Sum;
  int peer = 0;
};

/// The operations of one device, in the order in which they were issued, that
/// have not begun.
struct LaunchOrder {
  uint64_t issued = 0;
  std::set<uint64_t> waiting;
};

struct ncclComm : std::enable_shared_from_this<ncclComm> {
  int rank = 0, size = 1;
  bool blocking = true;
  std::string name;

  NcclWorld world;
  Cancel cancel{false};
  std::unique_ptr<NcclJob> job;
  std::function<void()> whenEnded; ///< after a job without error

  ncclResult_t error = ncclSuccess;
  std::string errorText;
  int pollsInProgress = 0; ///< queries until the present call is complete
  bool stalled = false, aborted = false, finalized = false;
  std::vector<std::function<cudaError_t()>> launches; ///< until then
  std::shared_ptr<ncclComm> child; ///< that the present split makes

  uint64_t issued = 0;
  std::set<uint64_t> unfinished; ///< operations, in the order of issue
  bool running = false;          ///< the first of these has begun
  /// Events that join a group call's other streams to its first one.
  std::map<cudaStream_t, std::pair<cudaEvent_t, cudaEvent_t>> joints;
  std::set<void *> registered;

  ~ncclComm();

  /// Goes on with the present call: ncclInProgress while it lasts.
  ncclResult_t settle();
  bool busy() const {
    return job || stalled || pollsInProgress > 0 || !launches.empty();
  }
  /// Moves the bytes of its operations; whether anything moved.
  bool progress();
  void fail(ncclResult_t result, std::string text);
  void fail(const Error &failure);
  void abort();

  /// Puts a group call's operations for this communicator on its streams.
  cudaError_t launch(const std::vector<NcclCall> &calls,
                     const std::vector<cudaStream_t> &streams,
                     const std::shared_ptr<LaunchOrder> &order);
};

/// The communicators of one emulated device, that is, of one host thread.
class NcclDevice {
public:
  static NcclDevice &get();

  std::vector<std::shared_ptr<ncclComm>> communicators;
  NcclFaults faults;
  /// Null unless NCCL_LAUNCH_ORDER_IMPLICIT asks for it.
  std::shared_ptr<LaunchOrder> order();

  /// Null for a null handle. Any other that is none of this thread's ends the
  /// program: it was destroyed or aborted, and NCCL would use freed memory.
  std::shared_ptr<ncclComm> find(const ncclComm *handle) const;
  void add(const std::shared_ptr<ncclComm> &communicator);
  void remove(const ncclComm *communicator);

private:
  bool poll();
  void idle();

  int hook_ = 0;
  std::shared_ptr<LaunchOrder> order_ = std::make_shared<LaunchOrder>();
  int64_t lastFullPoll_ = 0;
  int idleTurns_ = 0;
};

// --- What all functions of the API need -------------------------------------

/// Gives `result` and keeps why, for ncclGetLastError without a communicator.
ncclResult_t refuse(ncclResult_t result, std::string text);
const std::string &lastRefusal();
/// Whether `handle` is a communicator of this thread that can take another
/// call.
ncclResult_t ready(const ncclComm *handle, const char *call);
/// Ends a call that `communicator` has begun: at once where it may not block.
ncclResult_t begun(ncclComm &communicator);
bool inGroupCall();

} // namespace reckon::cuda::emulated

#endif // RECKON_RUNTIME_CUDA_EMULATED_NCCLCOMM_H
