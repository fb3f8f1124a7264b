//===- AllocationTest.cpp - nothing is allocated after set-up -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/comm/Worlds.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

namespace {
std::atomic<long> allocations{0};
}

// Kept out of line, or the compiler takes malloc and free for a mismatched
// pair.
[[gnu::noinline]] void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
// The standard library's own ends in the one above; a sanitizer's does not.
[[gnu::noinline]] void *operator new(size_t bytes,
                                     const std::nothrow_t &) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void *memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept {
  std::free(memory);
}

namespace reckon::comm {
namespace {

constexpr int kWorld = 3;

/// Group 0 spans all; channel 0 runs from each rank to the next, channel 1
/// from the one before.
Status setUp(Communicator &comm) {
  RECKON_TRY(comm.createGroup("world", allRanks(kWorld)));
  int next = (comm.rank() + 1) % kWorld;
  int before = (comm.rank() + kWorld - 1) % kWorld;
  RECKON_TRY(comm.createChannel("ring" + std::to_string(comm.rank()), next,
                                Direction::Send, 0));
  RECKON_TRY(comm.createChannel("ring" + std::to_string(before), before,
                                Direction::Receive, 0));
  return Status();
}

/// Everything a step does, on every rank; tickets that are left.
int runStep(Ranks &ranks, std::vector<std::vector<float>> &data,
            std::vector<Ticket> &tickets, size_t count) {
  size_t at = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    Communicator &comm = *ranks[r];
    float *base = data[r].data();
    Segment segments[4] = {{base, count / 3},
                           {base + count, count - count / 3},
                           {base + 2 * count, kWorld * (count / 3)},
                           {base + 5 * count, kWorld * (count - count / 3)}};
    Segments two(segments, 2), wide(segments + 2, 2);
    tickets[at++] =
        *comm.allReduce(GroupId{0}, two, two, DType::F32, Reduction::Max);
    tickets[at++] =
        *comm.reduceScatter(GroupId{0}, wide, two, DType::F32, Reduction::Max);
    tickets[at++] = *comm.allGather(GroupId{0}, two, wide, DType::F32);
    tickets[at++] = *comm.send(ChannelId{0}, two, DType::F32);
    Segment landing{base + 8 * count, count};
    tickets[at++] = *comm.receive(ChannelId{1}, {&landing, 1}, DType::F32);
  }
  Status status = takeTurns(ranks, 100000);
  int left = status ? 0 : 1000;
  for (size_t i = 0; i < at; ++i)
    left += !*ranks[i / 5]->test(tickets[i]);
  for (auto &rank : ranks)
    rank->idle();
  return left;
}

TEST(Allocation, StepsAllocateNothing) {
  for (Transport transport :
       {Transport::Ring, Transport::Socket, Transport::Tcp}) {
    auto ranks = startedWorld(kWorld, transport, setUp);
    ASSERT_TRUE(ranks) << ranks.error().message;
    constexpr size_t kMost = 200000;
    std::vector<std::vector<float>> data(kWorld,
                                         std::vector<float>(10 * kMost));
    std::vector<Ticket> tickets(5 * kWorld);
    long before = allocations;
    int left = 0;
    // The first step counts as well.
    for (size_t count : {size_t(3), size_t(900), kMost, size_t(5000)})
      left += runStep(*ranks, data, tickets, count);
    long during = allocations - before;
    EXPECT_EQ(left, 0);
    EXPECT_EQ(during, 0) << comm::name(transport);
  }
}

TEST(Allocation, TheCounterCounts) {
  long before = allocations;
  auto *volatile number = new int(1);
  delete number;
  EXPECT_GT(allocations, before);
}

} // namespace
} // namespace reckon::comm
