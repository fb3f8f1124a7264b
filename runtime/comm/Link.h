//===- Link.h - one connection that carries many streams of messages ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Credit first: a posted receive sends a credit, a frame of 32 bytes with the
// message's length and signature; payload goes only against a credit, straight
// into the posted buffer. So nothing arrives that nobody asked for, a send ends
// only after its receive was posted, and a difference between the two sides is
// seen by the sender, which knows both.
//
// The bytes of both kinds go through a socket, or through shared-memory rings
// with the socket beside them as wake-up bell and as the sign that the peer
// lives. Ports number the streams of messages on a link; both ends sort them
// by name, so equal programs agree on the numbers.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_LINK_H
#define RECKON_RUNTIME_COMM_LINK_H

#include "runtime/comm/SegmentMap.h"
#include "runtime/comm/SharedRing.h"

#include <memory>
#include <optional>

namespace reckon::comm {

enum class OpKind : uint8_t {
  AllReduce = 1,
  AllGather,
  ReduceScatter,
  Message
};

/// What a rank believes the current operation of a group or channel to be.
struct Signature {
  OpKind kind = OpKind::Message;
  DType type = DType::F32;
  Reduction reduction = Reduction::Sum;
  uint8_t unused = 0;
  uint32_t sequence = 0; // position in the group or channel
  uint64_t count = 0;    // elements in all
  bool operator==(const Signature &) const = default;
  std::string text() const;
};

/// A queue whose capacity is fixed at set-up: posting must not allocate.
template <typename T> class FixedQueue {
public:
  void setCapacity(size_t capacity) { items_.resize(capacity); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == items_.size(); }
  T &front() { return items_[head_]; }
  T &operator[](size_t i) { return items_[(head_ + i) % items_.size()]; }
  const T &operator[](size_t i) const {
    return items_[(head_ + i) % items_.size()];
  }
  void push(const T &item) {
    RECKON_CHECK(!full());
    items_[(head_ + size_++) % items_.size()] = item;
  }
  void pop() {
    head_ = (head_ + 1) % items_.size();
    --size_;
  }

private:
  std::vector<T> items_;
  size_t head_ = 0, size_ = 0;
};

/// What a rank tells the others before it stops: a verdict they pass on.
struct Notice {
  int code = 0;
  std::string text;
  std::string encode() const;
  /// Takes a notice from the front of `bytes`; nothing while incomplete.
  static std::optional<Notice> decode(std::string_view bytes);
  static constexpr size_t kMaxText = 2000;
};

class Link;

struct Transfer {
  Region region;
  Signature signature;
  uint64_t done = 0;
  bool open = false; // matched with its credit
};

/// The sending end of a stream of messages.
struct OutPort {
  Link *link = nullptr;
  std::string name;    // equal at both ends
  std::string subject; // "group 'tp'", for errors
  uint32_t number = 0;
  FixedQueue<Transfer> sends;
  struct Credit {
    uint64_t bytes;
    Signature signature;
  };
  FixedQueue<Credit> credits;
  uint64_t completed = 0; // messages, since the start
  /// For groups: what this rank runs now. A credit of the same sequence that
  /// differs is a mismatch even if the algorithm would never use this port.
  const Signature *current = nullptr;
};

/// The receiving end.
struct InPort {
  Link *link = nullptr;
  std::string name;
  std::string subject;
  uint32_t number = 0;
  FixedQueue<Transfer> receives;
  size_t credited = 0; // of the posted ones
  uint64_t completed = 0;
};

class Link {
public:
  /// Credits that may be under way on one port.
  static constexpr size_t kCredits = 16;

  Link(int self, int peer, Fd socket, SharedRing ring);

  int peer() const { return peer_; }
  int fd() const { return socket_.get(); }
  /// For poll(); -1 once the peer has closed its end.
  int pollFd() const { return ended_ ? -1 : socket_.get(); }

  // --- Set-up ---------------------------------------------------------------
  OutPort &addOut(std::string name, std::string subject, size_t queue);
  InPort &addIn(std::string name, std::string subject, size_t queue);
  /// Connections come after the ports.
  void connect(Fd socket, SharedRing ring);
  /// Numbers the ports. Returns their names as bytes for the peer.
  std::string sealPorts();
  /// Compares with the peer's bytes; names the first difference.
  Status comparePorts(std::string_view peerTable) const;

  // --- Messages -------------------------------------------------------------
  void postSend(OutPort &port, const Region &region, const Signature &what);
  void postReceive(InPort &port, const Region &region, const Signature &what);
  /// Compares what this rank has just begun with credits that came earlier.
  Status checkCredits(OutPort &port) const;

  // --- Driving --------------------------------------------------------------
  /// Moves at most a few hundred KiB; whether anything moved.
  Result<bool> turn();
  /// Looks at the socket beside the rings: bells, notices, end of file.
  void turnBell();
  /// The peer's end is closed, and all that it had sent was taken.
  bool closed() const { return closed_; }
  /// What the peer said before it stopped.
  const std::optional<Notice> &notice() const { return notice_; }

  void announceSleep();
  void wakeUp();
  /// Whether a turn could move something now, as far as memory tells.
  bool isReady();
  /// Events that should end a sleep.
  short pollEvents() const;

  /// Best effort: the peer also learns of it from the control connection.
  void sendNotice(const Notice &notice);
  /// Ends the stream toward the peer, after what was sent.
  void shutDown();

private:
  enum FrameKind : uint32_t { Data = 1, CreditFrame, NoticeFrame };
  struct Frame {
    uint32_t kind = 0;
    uint32_t port = 0;
    uint64_t bytes = 0;
    Signature signature;
  };
  static_assert(sizeof(Frame) == 32);

  static constexpr size_t kFrameBytes = size_t(128) << 10;
  static constexpr size_t kTurnBytes = size_t(128) << 10;
  static constexpr int kPieces = 8;

  Result<bool> turnOut();
  Result<bool> turnIn();
  Result<bool> pickFrame();
  Status parseFrame();
  void grantCredits(InPort &port);
  void finishReceive(InPort &port);
  int gather(const Transfer &transfer, uint64_t limit, iovec *pieces, int room,
             uint64_t &covered) const;
  size_t put(const iovec *pieces, int count);
  size_t take(const iovec *pieces, int count);
  void ringBell();
  Error mismatch(const OutPort &port, const Signature &mine,
                 const Signature &theirs) const;
  Error protocolError(const char *what) const;

  int self_, peer_;
  Fd socket_;
  SharedRing ring_;
  std::vector<std::unique_ptr<OutPort>> out_;
  std::vector<std::unique_ptr<InPort>> in_;

  // The frame being written.
  Frame frame_;
  bool frameOpen_ = false;
  size_t headerDone_ = 0;
  uint64_t payloadDone_ = 0;
  size_t nextPort_ = 0;
  bool blocked_ = false; // the last write did not fit
  FixedQueue<Frame> creditQueue_;

  // The frame being read. Staging holds headers and small payloads; larger
  // ones go straight to where they belong.
  char staging_[4096];
  size_t stagedBegin_ = 0, stagedEnd_ = 0;
  InPort *reading_ = nullptr;
  uint64_t payloadLeft_ = 0;
  bool readingNotice_ = false;

  std::string noticeBytes_;
  std::optional<Notice> notice_;
  bool ended_ = false; // end of file on the socket
  bool closed_ = false;
};

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_LINK_H
