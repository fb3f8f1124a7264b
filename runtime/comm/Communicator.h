//===- Communicator.h - collectives and messages between ranks ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The interface that the interpreter talks to. Everything after start() is
// asynchronous: posting returns a ticket, progress() moves bytes for a bounded
// time, test() asks. One thread drives a communicator. NCCL, the CPU transport
// and fakes stand behind the same calls.
//
// Order: operations of one group, and of one channel, run in the order in which
// they were posted; groups and channels advance independently of each other. A
// send is complete only after its receiver has posted the matching receive, so
// a schedule that would deadlock on NCCL deadlocks here too.
//
// Results are bit-equal in equal runs, and every rank of a group obtains the
// same bits from allReduce. bf16 and f16 sums are accumulated in fp32 and
// rounded once.
//
// docs/collectives.md describes the algorithms and the wire protocol.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_COMMUNICATOR_H
#define RECKON_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::comm {

/// Element types, numbered as in the plan file.
enum class DType : uint8_t { F32 = 0, BF16, F16, F64, I32, I64, U8 };

/// Reductions, numbered as in the plan file.
enum class Reduction : uint8_t { Sum = 0, Max };

enum class Direction : uint8_t { Send, Receive };

/// Size of one element in bytes; 0 for a number that is no DType.
size_t elementBytes(DType type);
const char *name(DType type);
const char *name(Reduction reduction);

/// `count` elements at `data`. One operation takes a list of segments, so a
/// bucket of several tensors moves as one message without being packed.
struct Segment {
  void *data = nullptr;
  size_t count = 0;
};
using Segments = std::span<const Segment>;

enum class GroupId : uint32_t {};
enum class ChannelId : uint32_t {};

/// Names one posted operation. Tickets need no release: testing one long after
/// its operation ended still answers true.
struct Ticket {
  uint32_t slot = 0;
  uint32_t generation = 0;
};

/// Errors of every call: DeadPeer (42) names the rank that died or stopped,
/// Mismatch (41) names two ranks and what each of them posted. The first error
/// is final: every later call returns it again.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int worldSize() const = 0;

  // --- Set-up: every rank makes its groups and channels, then start() --------

  /// A group of `ranks` (distinct, any order: position is the group rank);
  /// this rank must be one of them. Ranks of a group give it the same name.
  virtual Result<GroupId> createGroup(const std::string &name,
                                      std::vector<int> ranks) = 0;

  /// One end of a one-way FIFO. Both ends give the same name and tag.
  virtual Result<ChannelId> createChannel(const std::string &name, int peer,
                                          Direction direction,
                                          uint32_t tag) = 0;

  /// Connects to the peers that the groups and channels need, and checks that
  /// both ends of every connection made the same groups and channels (41).
  virtual Status start() = 0;

  // --- Operations. Segment lists are copied; the data they point at must stay
  // valid and, for outputs, untouched until the operation is complete. --------

  /// out[i] = reduction of in[i] over the group; counts are equal pairwise.
  /// out[i] may be in[i].
  virtual Result<Ticket> allReduce(GroupId group, Segments in, Segments out,
                                   DType type, Reduction reduction) = 0;

  /// out[i] (n * count elements) = the in[i] (count elements) of all n ranks in
  /// group order. in[i] may be this rank's block of out[i].
  virtual Result<Ticket> allGather(GroupId group, Segments in, Segments out,
                                   DType type) = 0;

  /// out[i] (count elements) = this rank's block of the reduction of in[i]
  /// (n * count elements). out[i] may be this rank's block of in[i].
  virtual Result<Ticket> reduceScatter(GroupId group, Segments in, Segments out,
                                       DType type, Reduction reduction) = 0;

  /// Total elements and type must equal those of the matching receive; how they
  /// are cut into segments need not.
  virtual Result<Ticket> send(ChannelId channel, Segments data, DType type) = 0;
  virtual Result<Ticket> receive(ChannelId channel, Segments data,
                                 DType type) = 0;

  // --- Operations on a device's streams (NCCL). The CPU transport has no
  // streams: it runs what is posted, and these do nothing. --------------------

  /// The native stream that the operations posted from now on are put on. A
  /// stream takes its operations in order, so their tickets are complete at
  /// once, and only the stream tells when the data is there.
  virtual void onStream(void *native);

  /// Operations posted between these begin together: none of them waits for
  /// another one to end, as far as they are of one group or one channel. An
  /// error of an operation may show only at groupEnd().
  virtual Status groupStart();
  virtual Status groupEnd();

  /// Tells of device memory that operations will read and write, such as an
  /// arena, so that the network may move it without copies. After start().
  virtual Status registerBuffer(void *base, size_t bytes);

  // --- Driving ---------------------------------------------------------------

  /// Whether the operation is complete. Does not make progress.
  virtual Result<bool> test(Ticket ticket) = 0;

  /// One bounded turn over all connections; whether anything moved.
  virtual Result<bool> progress() = 0;

  /// To be called when neither progress() nor the caller has anything to do:
  /// spins shortly, then yields, then sleeps until a peer wakes this rank, at
  /// most 20 ms.
  virtual void idle() = 0;

  /// Progress and idle until the operation is complete.
  Status wait(Ticket ticket);

  // --- Control, not for the step ---------------------------------------------

  /// Every rank's bytes in rank order. Blocking; every rank must call. Gives up
  /// after `timeout` seconds (0: never) and names the ranks that are missing.
  virtual Result<std::vector<std::string>> allGatherBytes(std::string_view mine,
                                                          double timeout) = 0;

  /// Fails with Mismatch, naming the ranks that differ from the majority, when
  /// the ranks do not all pass the same `digest` of `what`.
  Status agree(std::string_view what, std::string_view digest,
               double timeout = 60);

  /// Tells all ranks that this one stops because of `reason`.
  virtual void abort(const Error &reason) = 0;

  /// Orderly end: waits until all ranks have called it. After that a closed
  /// connection is no death.
  virtual Status finish() = 0;

  /// What is posted and not complete, a line each, for reports about hangs.
  virtual std::string describePending() const = 0;
};

/// The rank that, by an error of a Communicator, died or stopped.
std::optional<int> blamedRank(const Error &error);

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_COMMUNICATOR_H
