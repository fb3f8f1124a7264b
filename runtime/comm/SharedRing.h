//===- SharedRing.h - byte rings between two processes of a host ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Two single-producer, single-consumer rings, one a direction, in one memory
// file that is passed over the peers' socket: it has no name, so nothing stays
// behind. A side that is about to sleep says so in the shared header, and the
// other side wakes it through the socket.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_SHAREDRING_H
#define RECKON_RUNTIME_COMM_SHAREDRING_H

#include "runtime/comm/Wire.h"

#include <atomic>
#include <sys/uio.h>

namespace reckon::comm {

class SharedRing {
public:
  static constexpr size_t kCapacity = size_t(512) << 10; // a power of two

  SharedRing() = default;
  SharedRing(SharedRing &&other) noexcept { *this = std::move(other); }
  SharedRing &operator=(SharedRing &&other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(side_, other.side_);
    return *this;
  }
  ~SharedRing();

  /// A fresh, zeroed and sealed memory file; both ends attach() to it.
  static Result<Fd> createMemory();
  /// Maps and touches the memory. `side` is 0 at one end and 1 at the other.
  static Result<SharedRing> attach(const Fd &memory, int side);

  explicit operator bool() const { return memory_ != nullptr; }

  /// Bytes taken from, or put into, the list of pieces; 0 when full or empty.
  size_t write(const iovec *pieces, int count);
  size_t read(const iovec *pieces, int count);

  bool canRead() const;
  bool canWrite() const;

  /// Announces that this side sleeps. The caller must look at the rings once
  /// more afterwards, before it really sleeps.
  void announceSleep();
  void wakeUp();
  /// Whether the other side sleeps and has to be woken by the caller; only one
  /// caller is told. To be asked after every write and read.
  bool takePeerSleep();

private:
  struct Half;
  struct Memory;
  Half &mine() const;   // written by this side
  Half &theirs() const; // read by this side

  Memory *memory_ = nullptr;
  int side_ = 0;
};

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_SHAREDRING_H
