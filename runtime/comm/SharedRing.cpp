//===- SharedRing.cpp - byte rings between two processes of a host --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/SharedRing.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace reckon::comm {

// Positions count bytes since the start and never wrap in practice (2^64).
struct SharedRing::Half {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> consumed;
  alignas(64) std::atomic<uint32_t> writerSleeps;
  alignas(64) char bytes[kCapacity];
};

struct SharedRing::Memory {
  Half half[2];
};

SharedRing::Half &SharedRing::mine() const { return memory_->half[side_]; }
SharedRing::Half &SharedRing::theirs() const {
  return memory_->half[1 - side_];
}

SharedRing::~SharedRing() {
  if (memory_)
    ::munmap(memory_, sizeof(Memory));
}

Result<Fd> SharedRing::createMemory() {
  Fd fd(::memfd_create("reckon-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), sizeof(Memory)) != 0)
    return systemError("create shared memory for a connection", errno);
  // A peer that shrank the file would kill this process with SIGBUS.
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

Result<SharedRing> SharedRing::attach(const Fd &memory, int side) {
  struct stat info{};
  if (::fstat(memory.get(), &info) != 0)
    return systemError("read the size of a peer's shared memory", errno);
  int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (info.st_size != static_cast<off_t>(sizeof(Memory)) || seals < 0 ||
      !(seals & F_SEAL_SHRINK))
    return makeError(ExitCode::Environment,
                     "a peer passed shared memory of another layout; start all "
                     "ranks with the same build");
  void *address = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_POPULATE, memory.get(), 0);
  if (address == MAP_FAILED)
    return systemError("map shared memory for a connection", errno);
  static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                std::atomic<uint32_t>::is_always_lock_free);
  SharedRing ring;
  // Zero bytes are the initial state of a lock-free atomic, and both ends map
  // the same pages: neither may construct the header over the other's use.
  ring.memory_ = std::launder(static_cast<Memory *>(address));
  ring.side_ = side;
  return ring;
}

size_t SharedRing::write(const iovec *pieces, int count) {
  Half &half = mine();
  uint64_t written = half.written.load(std::memory_order_relaxed);
  size_t space =
      kCapacity - (written - half.consumed.load(std::memory_order_acquire));
  size_t moved = 0;
  for (int i = 0; i < count && space; ++i) {
    auto *from = static_cast<const char *>(pieces[i].iov_base);
    size_t bytes = std::min(pieces[i].iov_len, space);
    space -= bytes;
    moved += bytes;
    while (bytes) {
      size_t at = written & (kCapacity - 1);
      size_t run = std::min(bytes, kCapacity - at);
      std::memcpy(half.bytes + at, from, run);
      from += run;
      bytes -= run;
      written += run;
    }
  }
  if (moved)
    half.written.store(written, std::memory_order_release);
  return moved;
}

size_t SharedRing::read(const iovec *pieces, int count) {
  Half &half = theirs();
  uint64_t consumed = half.consumed.load(std::memory_order_relaxed);
  size_t ready = half.written.load(std::memory_order_acquire) - consumed;
  size_t moved = 0;
  for (int i = 0; i < count && ready; ++i) {
    auto *to = static_cast<char *>(pieces[i].iov_base);
    size_t bytes = std::min(pieces[i].iov_len, ready);
    ready -= bytes;
    moved += bytes;
    while (bytes) {
      size_t at = consumed & (kCapacity - 1);
      size_t run = std::min(bytes, kCapacity - at);
      std::memcpy(to, half.bytes + at, run);
      to += run;
      bytes -= run;
      consumed += run;
    }
  }
  if (moved)
    half.consumed.store(consumed, std::memory_order_release);
  return moved;
}

bool SharedRing::canRead() const {
  Half &half = theirs();
  return half.written.load(std::memory_order_acquire) !=
         half.consumed.load(std::memory_order_relaxed);
}

bool SharedRing::canWrite() const {
  Half &half = mine();
  return half.written.load(std::memory_order_relaxed) -
             half.consumed.load(std::memory_order_acquire) <
         kCapacity;
}

// Sleeper: announce, fence, look. Waker: move bytes, fence, look. With a full
// fence on both sides one of them sees the other, so no wake-up is lost.
void SharedRing::announceSleep() {
  mine().writerSleeps.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void SharedRing::wakeUp() {
  mine().writerSleeps.store(0, std::memory_order_relaxed);
}

bool SharedRing::takePeerSleep() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  auto &flag = theirs().writerSleeps;
  return flag.load(std::memory_order_relaxed) &&
         flag.exchange(0, std::memory_order_relaxed);
}

} // namespace reckon::comm
