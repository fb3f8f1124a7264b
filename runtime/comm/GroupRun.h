//===- GroupRun.h - one group's collectives, as state machines ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Two algorithms, chosen by size, the same on all ranks:
//
//   exchange  small payloads. Everybody obtains everybody's contribution in
//             ceil(log2 n) rounds (Bruck) and reduces them in group order.
//   ring      n - 1 steps in which partial results travel to the right and
//             grow by one contribution each (reduce-scatter), and n - 1 in
//             which finished blocks travel on (all-gather). Blocks are cut
//             into chunks, kWindow of which are under way at a time.
//
// Either way the order of every sum is fixed by the group's size and the
// element's position, never by timing.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_GROUPRUN_H
#define RECKON_RUNTIME_COMM_GROUPRUN_H

#include "runtime/comm/Link.h"

#include <functional>

namespace reckon::comm {

/// A posted operation of a group or channel.
struct Operation {
  Signature signature;
  SegmentMap map;
  uint32_t generation = 0;
  bool busy = false;
};

class GroupRun {
public:
  GroupRun(std::string name, std::vector<int> ranks, int rank);

  /// Makes this group's ports; `linkTo` finds or makes the link to a rank.
  void makePorts(const std::function<Link &(int)> &linkTo);
  /// Allocates and touches all memory that operations will need.
  void prepare();

  const std::string &name() const { return name_; }
  uint64_t size() const { return n_; }

  /// Starts an operation; the one before must be done.
  Status begin(Operation &operation);
  /// Does what can be done now; whether anything was.
  Result<bool> advance();
  bool running() const { return operation_ != nullptr; }
  bool done() const { return done_; }
  void end() { operation_ = nullptr; }
  const Signature &current() const { return current_; }

  static constexpr uint64_t kSmallBytes = 4096;
  static constexpr uint64_t kExchangeBytes = uint64_t(256) << 10;
  static constexpr uint64_t kChunkBytes = uint64_t(256) << 10;
  static constexpr uint64_t kLeastChunkBytes = uint64_t(16) << 10;
  static constexpr uint32_t kWindow = 2;

private:
  // Forwarding needs one buffer per chunk under way, receiving another.
  static constexpr int kBuffers = 2 * kWindow;
  static constexpr size_t kQueue = 8;

  /// Position in the sequence of messages on the ring, the same on all ranks:
  /// window by window, in it step by step, in it chunk by chunk.
  struct Position {
    uint64_t base = 0; // first chunk of the window
    uint32_t step = 0; // reduce-scatter steps, then all-gather steps
    uint32_t chunk = 0;
  };
  struct Chunk {
    uint64_t begin, count;
  };

  void beginRing();
  Result<bool> advanceRing();
  bool takeReceives();
  bool takeSends();
  bool postSends();
  bool postReceives();
  void reduceChunk(const Position &at, uint64_t block, int buffer);
  void next(Position &position) const;
  bool atEnd(const Position &at) const { return at.base >= chunks_; }
  Chunk chunkOf(const Position &at, uint64_t block) const;
  uint64_t blockBehind(uint64_t steps) const; // (me - steps) mod n
  void copyOwnBlock(uint64_t begin, uint64_t count);

  uint64_t contributionBytes() const;
  void beginExchange();
  Result<bool> advanceExchange();
  void postRound();
  void finishExchange();
  void copyAlone();

  char *buffer(int id) {
    return scratch_.get() + static_cast<size_t>(id) * kChunkBytes;
  }

  std::string name_, key_;
  std::vector<int> ranks_;
  uint64_t n_ = 1, me_ = 0;

  OutPort *ringOut_ = nullptr;
  InPort *ringIn_ = nullptr;
  std::vector<OutPort *> roundOut_;
  std::vector<InPort *> roundIn_;

  struct Free {
    void operator()(char *p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> scratch_, exchange_;

  // The current operation.
  Operation *operation_ = nullptr;
  Signature current_;
  bool done_ = false;
  bool small_ = false;
  size_t element_ = 1, accumulator_ = 1;

  // Ring.
  bool reduces_ = false, gathers_ = false;
  uint32_t reduceSteps_ = 0, steps_ = 0;
  uint64_t chunkElements_ = 1, chunks_ = 0;
  Position receivePost_, receiveTake_, sendPost_;
  uint64_t inBase_ = 0, outBase_ = 0;
  uint64_t receivesPosted_ = 0, receivesTaken_ = 0;
  uint64_t sendsPosted_ = 0, sendsTaken_ = 0;
  uint64_t finals_ = 0; // reduced chunks of this rank's block, not yet sent
  uint64_t forwardable_ = 0; // gathered chunks to pass on
  FixedQueue<int> receiveBuffers_, sendBuffers_, partials_, freeBuffers_;

  // Exchange, and copy of a group of one.
  uint64_t bytes_ = 0; // of one contribution
  uint32_t round_ = 0;
  uint64_t copied_ = 0;
};

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_GROUPRUN_H
