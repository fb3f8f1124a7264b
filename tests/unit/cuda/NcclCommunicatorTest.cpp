//===- NcclCommunicatorTest.cpp - the communicator over NCCL --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/cuda/NcclRanks.h"

#include <csignal>
#include <gmock/gmock.h>
#include <mutex>
#include <numeric>

namespace reckon::cuda {
namespace {

using comm::Direction;
using comm::DType;
using comm::Reduction;
using comm::Segment;
using testing::HasSubstr;

/// Until the stream has ended, with errors of the communicator.
Status wait(NcclCommunicator &nccl, cudaStream_t stream) {
  comm::Deadline deadline(kEnds);
  while (!deadline.passed()) {
    if (cudaStreamQuery(stream) == cudaSuccess)
      return Status();
    RECKON_TRY(nccl.progress());
    nccl.idle();
  }
  return makeError(ExitCode::Hang, "the stream does not end");
}

/// What rank r holds at position i.
float value(int r, size_t i) {
  return static_cast<float>((r * 31 + static_cast<int>(i) * 7) % 17 - 8);
}

std::vector<float> valuesOf(int r, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = value(r, i);
  return values;
}

float reduced(const std::vector<int> &ranks, size_t i, Reduction reduction) {
  float result = value(ranks[0], i);
  for (size_t k = 1; k < ranks.size(); ++k)
    result = reduction == Reduction::Sum ? result + value(ranks[k], i)
                                         : std::max(result, value(ranks[k], i));
  return result;
}

// --- Collectives ------------------------------------------------------------

class Collectives : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(2, 3, 5, 8));

/// All three operations on segments of odd sizes, over all ranks and over the
/// even and the odd ones, against values worked out here.
TEST_P(Collectives, GiveWhatTheyShould) {
  int world = GetParam();
  expectAllGood(runNccl(world, [&](NcclCommunicator &nccl) -> Status {
    std::vector<int> half;
    for (int r = nccl.rank() % 2; r < world; r += 2)
      half.push_back(r);
    auto all = nccl.createGroup("all", comm::allRanks(world));
    RECKON_TRY(all.status());
    auto part = nccl.createGroup("half", half);
    RECKON_TRY(part.status());
    RECKON_TRY(nccl.start());
    cudaStream_t stream = newStream();
    nccl.onStream(stream);
    for (size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{1001}})
      for (const auto &[group, ranks] :
           {std::pair(*all, comm::allRanks(world)), std::pair(*part, half)})
        for (Reduction reduction : {Reduction::Sum, Reduction::Max}) {
          size_t n = ranks.size();
          auto self = static_cast<size_t>(
              std::find(ranks.begin(), ranks.end(), nccl.rank()) -
              ranks.begin());
          // Two segments: `count` elements, and three behind them.
          DeviceArray<float> in(valuesOf(nccl.rank(), (count + 3) * n));
          DeviceArray<float> sum(count + 3, 0.0f);
          DeviceArray<float> gathered((count + 3) * n, 0.0f);
          DeviceArray<float> scattered(count + 3, 0.0f);
          Segment small[] = {in.segment(0, count), in.segment(count, 3)};
          Segment outs[] = {sum.segment(0, count), sum.segment(count, 3)};
          RECKON_TRY(nccl.allReduce(group, small, outs, DType::F32, reduction));
          Segment wide[] = {gathered.segment(0, count * n),
                            gathered.segment(count * n, 3 * n)};
          RECKON_TRY(nccl.allGather(group, small, wide, DType::F32));
          Segment blocks[] = {in.segment(0, count * n),
                              in.segment(count * n, 3 * n)};
          Segment mine[] = {scattered.segment(0, count),
                            scattered.segment(count, 3)};
          auto ticket =
              nccl.reduceScatter(group, blocks, mine, DType::F32, reduction);
          RECKON_TRY(ticket);
          RECKON_TRY(nccl.wait(*ticket)); // posted, no more
          RECKON_TRY(wait(nccl, stream));
          for (size_t i = 0; i < count + 3; ++i) {
            RECKON_TRY(expect(sum.values()[i] == reduced(ranks, i, reduction),
                              "a reduction"));
            bool tail = i >= count;
            size_t width = tail ? 3 : count;
            size_t first = tail ? count * n : 0, at = tail ? i - count : i;
            for (size_t k = 0; k < n; ++k)
              RECKON_TRY(expect(gathered.values()[first + k * width + at] ==
                                    value(ranks[k], i),
                                "a gather"));
            RECKON_TRY(
                expect(scattered.values()[i] ==
                           reduced(ranks, first + self * width + at, reduction),
                       "a scattered reduction"));
          }
        }
    EXPECT_THAT(nccl.describePending(), HasSubstr("group 'all' (ranks 0, 1"));
    EXPECT_THAT(nccl.describePending(),
                HasSubstr("the last ncclReduceScatter"));
    RECKON_TRY(nccl.finish());
    return expect(communicatorsAlive() == 0, "no communicator left");
  }));
}

uint16_t bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<uint16_t>(bits >> 16); // exact for the values used
}

TEST(NcclCommunicator, SumsBf16AndMovesOtherTypes) {
  expectAllGood(runNccl(3, [](NcclCommunicator &nccl) -> Status {
    auto all = nccl.createGroup("all", {0, 1, 2});
    RECKON_TRY(all.status());
    RECKON_TRY(nccl.start());
    cudaStream_t stream = newStream();
    nccl.onStream(stream);
    float own = 0.5f * static_cast<float>(nccl.rank() + 1);
    DeviceArray<uint16_t> half(5, bf16(own));
    DeviceArray<double> wide(5, own);
    DeviceArray<int64_t> whole(5, int64_t{1} << (40 + nccl.rank()));
    DeviceArray<uint8_t> byte(1, static_cast<uint8_t>(nccl.rank()));
    DeviceArray<uint8_t> bytes(3, uint8_t{0xff});
    auto sum = [&](Segment data, DType type) {
      return nccl.allReduce(*all, {&data, 1}, {&data, 1}, type, Reduction::Sum);
    };
    RECKON_TRY(sum(half.segment(), DType::BF16));
    RECKON_TRY(sum(wide.segment(), DType::F64));
    RECKON_TRY(sum(whole.segment(), DType::I64));
    Segment one = byte.segment(), three = bytes.segment();
    RECKON_TRY(nccl.allGather(*all, {&one, 1}, {&three, 1}, DType::U8));
    RECKON_TRY(wait(nccl, stream));
    RECKON_TRY(expect(half.values() == std::vector(5, bf16(3)), "bf16"));
    RECKON_TRY(expect(wide.values() == std::vector(5, 3.0), "f64"));
    RECKON_TRY(
        expect(whole.values() == std::vector(5, int64_t{7} << 40), "i64"));
    RECKON_TRY(expect(bytes.values() == std::vector<uint8_t>{0, 1, 2}, "u8"));
    return nccl.finish();
  }));
}

TEST(NcclCommunicator, AGroupOfOneNeedsNoNccl) {
  expectAllGood(runNccl(1, [](NcclCommunicator &nccl) -> Status {
    auto alone = nccl.createGroup("tp", {0});
    RECKON_TRY(alone.status());
    RECKON_TRY(nccl.start());
    RECKON_TRY(expect(communicatorsAlive() == 0, "no communicator"));
    cudaStream_t stream = newStream();
    nccl.onStream(stream);
    DeviceArray<float> in(4, 3.0f), out(4, 0.0f);
    Segment from = in.segment(), to = out.segment();
    RECKON_TRY(nccl.allGather(*alone, {&from, 1}, {&to, 1}, DType::F32));
    RECKON_TRY(wait(nccl, stream));
    RECKON_TRY(expect(out.values() == in.values(), "a copy"));
    return nccl.finish();
  }));
}

// --- Messages ---------------------------------------------------------------

/// A pipeline of `world` stages: what stage 0 sends comes back from the last.
Status pipeline(NcclCommunicator &nccl) {
  int r = nccl.rank(), last = nccl.worldSize() - 1;
  auto name = [](const char *way, int stage) {
    return way + std::to_string(stage);
  };
  std::vector<comm::ChannelId> in, out; // forward, backward
  auto add = [&](const char *way, int stage, int peer, Direction direction) {
    auto id = nccl.createChannel(name(way, stage), peer, direction,
                                 static_cast<uint32_t>(stage));
    if (id)
      (direction == Direction::Send ? out : in).push_back(*id);
    return id.status();
  };
  if (r > 0)
    RECKON_TRY(add("forward", r - 1, r - 1, Direction::Receive));
  if (r < last)
    RECKON_TRY(add("forward", r, r + 1, Direction::Send));
  if (r < last)
    RECKON_TRY(add("backward", r, r + 1, Direction::Receive));
  if (r > 0)
    RECKON_TRY(add("backward", r - 1, r - 1, Direction::Send));
  RECKON_TRY(nccl.start());
  // Two channels a neighbour, or one at either end.
  RECKON_TRY(expect(nccl.rounds() == (last == 1 ? 2 : 4), "few rounds"));
  cudaStream_t stream = newStream();
  nccl.onStream(stream);
  DeviceArray<float> there(valuesOf(r, 300)), back(300, 0.0f);
  // The sender cuts it otherwise than the receiver of the next test does.
  Segment cut[] = {there.segment(0, 100), there.segment(100, 200)};
  Segment cutBack[] = {back.segment(0, 100), back.segment(100, 200)};
  if (r > 0)
    RECKON_TRY(nccl.receive(in[0], cut, DType::F32));
  if (r < last) {
    RECKON_TRY(nccl.send(out[0], cut, DType::F32));
    RECKON_TRY(nccl.receive(in.back(), cutBack, DType::F32));
  }
  if (r > 0)
    RECKON_TRY(nccl.send(out.back(), r == last ? cut : cutBack, DType::F32));
  RECKON_TRY(wait(nccl, stream));
  if (r == 0)
    RECKON_TRY(expect(back.values() == valuesOf(0, 300), "the same back"));
  return nccl.finish();
}

TEST(NcclCommunicator, MessagesGoThroughAPipeline) {
  for (int world : {2, 4})
    expectAllGood(runNccl(world, pipeline));
}

TEST(NcclCommunicator, ManyMessagesKeepTheirOrder) {
  expectAllGood(runNccl(2, [](NcclCommunicator &nccl) -> Status {
    bool sends = nccl.rank() == 0;
    auto channel =
        nccl.createChannel("there", 1 - nccl.rank(),
                           sends ? Direction::Send : Direction::Receive, 0);
    RECKON_TRY(channel.status());
    RECKON_TRY(nccl.start());
    cudaStream_t stream = newStream();
    nccl.onStream(stream);
    DeviceArray<float> data(sends ? valuesOf(3, 50)
                                  : std::vector<float>(50, 0));
    for (size_t i = 0; i < 50; ++i) {
      Segment one = data.segment(i, 1);
      RECKON_TRY(sends ? nccl.send(*channel, {&one, 1}, DType::F32)
                       : nccl.receive(*channel, {&one, 1}, DType::F32));
    }
    RECKON_TRY(wait(nccl, stream));
    RECKON_TRY(expect(data.values() == valuesOf(3, 50), "all in order"));
    auto wrong = sends ? nccl.receive(*channel, {}, DType::F32)
                       : nccl.send(*channel, {}, DType::F32);
    RECKON_TRY(expect(!wrong && wrong.error().code == ExitCode::Internal,
                      "one direction"));
    return nccl.finish();
  }));
}

/// Both ranks send on one channel and receive on another, on one stream. Apart
/// or grouped this blocks, for channels are communicators of their own; on two
/// streams it ends.
TEST(NcclCommunicator, ChannelsInDifferentOrderNeedStreams) {
  for (int streams : {1, 2}) {
    auto results = runNccl(2, [&](NcclCommunicator &nccl) -> Status {
      int r = nccl.rank();
      auto up = nccl.createChannel(
          "up", 1 - r, r == 0 ? Direction::Send : Direction::Receive, 0);
      auto down = nccl.createChannel(
          "down", 1 - r, r == 1 ? Direction::Send : Direction::Receive, 1);
      RECKON_TRY(nccl.start());
      cudaStream_t first = newStream();
      cudaStream_t second = streams == 2 ? newStream() : first;
      DeviceArray<float> mine(1, 1.0f + static_cast<float>(r)), other(1, 0.0f);
      Segment out = mine.segment(), in = other.segment();
      nccl.onStream(first);
      RECKON_TRY(nccl.send(r == 0 ? *up : *down, {&out, 1}, DType::F32));
      nccl.onStream(second);
      RECKON_TRY(nccl.receive(r == 0 ? *down : *up, {&in, 1}, DType::F32));
      bool ended = ends(second, streams == 2 ? kEnds : kBlocked);
      RECKON_TRY(expect(ended == (streams == 2), "to end on two streams only"));
      if (ended) {
        RECKON_TRY(expect(other.values()[0] == 2.0f - static_cast<float>(r),
                          "the other's value"));
        return nccl.finish();
      }
      EXPECT_THAT(nccl.describePending(),
                  HasSubstr("1 operations posted, the last ncclSend of 1"));
      // Before the arrays go: as on a device, that waits for all streams.
      Error blocked = makeError(ExitCode::Hang, "blocked, as it should be");
      nccl.abort(blocked);
      return blocked;
    });
    for (const Status &status : results) {
      EXPECT_EQ(status.ok(), streams == 2);
      if (!status) {
        EXPECT_THAT(status.error().message, HasSubstr("blocked"));
      }
    }
  }
}

TEST(NcclCommunicator, GroupedOperationsOfAChannelAreOne) {
  expectAllGood(runNccl(2, [](NcclCommunicator &nccl) -> Status {
    bool sends = nccl.rank() == 0;
    auto channel =
        nccl.createChannel("there", 1 - nccl.rank(),
                           sends ? Direction::Send : Direction::Receive, 0);
    auto all = nccl.createGroup("all", {0, 1});
    RECKON_TRY(nccl.start());
    cudaStream_t stream = newStream();
    nccl.onStream(stream);
    DeviceArray<float> data(4, sends ? 1.0f : 0.0f);
    Segment a = data.segment(0, 2), b = data.segment(2, 2);
    RECKON_TRY(nccl.groupStart());
    for (Segment *one : {&a, &b})
      RECKON_TRY(sends ? nccl.send(*channel, {one, 1}, DType::F32)
                       : nccl.receive(*channel, {one, 1}, DType::F32));
    RECKON_TRY(expect(cudaStreamQuery(stream) == cudaSuccess,
                      "nothing on the stream before the group ends"));
    RECKON_TRY(nccl.groupEnd());
    RECKON_TRY(wait(nccl, stream));
    RECKON_TRY(expect(data.values() == std::vector(4, 1.0f), "both"));
    Segment whole = data.segment();
    RECKON_TRY(nccl.allReduce(*all, {&whole, 1}, {&whole, 1}, DType::F32,
                              Reduction::Sum));
    RECKON_TRY(wait(nccl, stream));
    RECKON_TRY(expect(data.values() == std::vector(4, 2.0f), "a sum"));
    return nccl.finish();
  }));
}

TEST(NcclCommunicator, BuffersAreRegisteredWithAllCommunicators) {
  expectAllGood(runNccl(2, [](NcclCommunicator &nccl) -> Status {
    auto all = nccl.createGroup("all", {0, 1});
    auto reversed = nccl.createGroup("reversed", {1, 0});
    RECKON_TRY(nccl.start());
    void *arena = nullptr;
    RECKON_TRY(expect(ncclMemAlloc(&arena, 4096) == ncclSuccess, "memory"));
    RECKON_TRY(nccl.registerBuffer(arena, 4096));
    cudaStream_t stream = newStream();
    nccl.onStream(stream);
    auto *first = static_cast<float *>(arena);
    for (int i = 0; i < 3; ++i)
      first[i] = static_cast<float>(nccl.rank());
    Segment one{first, 1}, two{first + 1, 2};
    RECKON_TRY(nccl.allGather(*reversed, {&one, 1}, {&two, 1}, DType::F32));
    RECKON_TRY(wait(nccl, stream));
    RECKON_TRY(expect(first[1] == 1 && first[2] == 0, "the group's order"));
    RECKON_TRY(nccl.finish());
    return expect(ncclMemFree(arena) == ncclSuccess, "memory to be freed");
  }));
}

// --- Processes --------------------------------------------------------------

TEST(NcclCommunicator, RanksMayBeProcesses) {
  auto exits =
      comm::runProcesses(3, {}, [](comm::Communicator &control) -> Status {
        // The harness owns the control plane; this one borrows it.
        comm::WorldOptions options;
        options.rank = control.rank();
        options.world = 3;
        auto names = control.allGatherBytes(
            "unix:@reckon-nccl-test-" + std::to_string(::getpid()), 60);
        RECKON_TRY(names.status());
        options.master = (*names)[0];
        options.nonce = options.master;
        auto own = comm::joinWorld(options);
        RECKON_TRY(own.status());
        NcclCommunicator nccl(std::move(*own), {});
        return pipeline(nccl);
      });
  for (const comm::Exit &exit : exits)
    EXPECT_EQ(exit.code(), 0) << exit.message;
}

// --- Failures ---------------------------------------------------------------

TEST(NcclCommunicator, ARankThatNeverComesIsNamed) {
  NcclOptions options;
  options.deadlineSeconds = 3;
  auto results = runControls(3, [&](auto control) -> Status {
    bool absent = control->rank() == 2;
    comm::Communicator &plane = *control;
    NcclCommunicator nccl(std::move(control), options);
    RECKON_TRY(nccl.createGroup("tp", {0, 1, 2}));
    if (!absent)
      return nccl.start();
    // It says what it wants, obtains NCCL's id, and stops there.
    RECKON_TRY(plane.start());
    RECKON_TRY(plane.allGatherBytes(
        encodeRequests(2, {{false, "tp", 0, {0, 1, 2}}}), 60));
    RECKON_TRY(plane.allGatherBytes("", 60));
    comm::Deadline deadline(kEnds);
    while (!deadline.passed())
      if (auto moved = plane.progress(); !moved)
        return moved.error();
    return Status();
  });
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().code, ExitCode::Environment);
  EXPECT_THAT(results[0].error().message,
              HasSubstr("expected group 'tp' (ranks 0, 1, 2): all its ranks "
                        "within 3"));
  for (const Status &status : results) {
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("got nothing from rank 2"));
  }
}

TEST(NcclCommunicator, ASplitThatDoesNotEndIsReported) {
  NcclOptions options;
  options.deadlineSeconds = 3;
  options.reportSeconds = 0.1;
  std::mutex mutex;
  std::vector<std::string> lines;
  options.report = [&](const std::string &line) {
    std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  auto results = runNccl(
      4,
      [&](NcclCommunicator &nccl) -> Status {
        int r = nccl.rank();
        RECKON_TRY(nccl.createGroup("dp", {r / 2 * 2, r / 2 * 2 + 1}));
        if (r == 3)
          setNcclFaults({.pollsInProgress = 2, .stalled = "dp"});
        return nccl.start();
      },
      options);
  for (const Status &status : results) {
    ASSERT_FALSE(status);
    EXPECT_THAT(
        status.error().message,
        HasSubstr("group 'all ranks' (ranks 0, 1, 2, 3): split 1 of 1"));
  }
  EXPECT_THAT(results[0].error().message, HasSubstr("all ranks are there"));
  ASSERT_GE(lines.size(), 3u);
  EXPECT_THAT(lines, testing::Contains(HasSubstr(
                         "waiting for group 'all ranks' (ranks 0, 1, 2, 3): "
                         "split 1 of 1, 2 s")));
}

/// All ranks but `victim` wait in a collective.
std::vector<Status>
waitUntil(const std::function<Status(NcclCommunicator &)> &end) {
  return runNccl(4, [&](NcclCommunicator &nccl) -> Status {
    int r = nccl.rank();
    auto tp = nccl.createGroup("tp", {r / 2 * 2, r / 2 * 2 + 1});
    auto dp = nccl.createGroup("dp", {r % 2, r % 2 + 2});
    RECKON_TRY(nccl.start());
    cudaStream_t stream = newStream();
    nccl.onStream(stream);
    DeviceArray<float> data(1000, 1.0f);
    Segment whole = data.segment();
    auto sum = [&](comm::GroupId group) {
      return nccl.allReduce(group, {&whole, 1}, {&whole, 1}, DType::F32,
                            Reduction::Sum);
    };
    RECKON_TRY(sum(*tp));
    RECKON_TRY(sum(*dp));
    RECKON_TRY(wait(nccl, stream));
    if (r == 1)
      return end(nccl);
    RECKON_TRY(sum(*tp));
    RECKON_TRY(sum(*dp));
    Status status = wait(nccl, stream);
    // Whatever was on the stream has ended with the communicators.
    RECKON_TRY(expect(ends(stream, kEnds), "a free stream"));
    RECKON_TRY(expect(communicatorsAlive() == 0, "all aborted"));
    RECKON_TRY(expect(!status.ok(), "an error"));
    auto later = sum(*tp);
    RECKON_TRY(expect(!later && later.error().message == status.error().message,
                      "the first error to be final"));
    return status;
  });
}

TEST(NcclCommunicator, AnAbortReachesEverybody) {
  auto results = waitUntil([](NcclCommunicator &nccl) -> Status {
    nccl.abort(makeError(ExitCode::SpikeGuard, "the loss exploded"));
    auto after = nccl.progress();
    return after.status();
  });
  for (const Status &status : results) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::SpikeGuard);
    EXPECT_EQ(status.error().message, "the loss exploded");
  }
}

TEST(NcclCommunicator, ARankThatLeavesIsBlamed) {
  auto results = waitUntil([](NcclCommunicator &) { return Status(); });
  EXPECT_TRUE(results[1]);
  for (size_t r : {0u, 2u, 3u}) {
    ASSERT_FALSE(results[r]);
    EXPECT_EQ(results[r].error().code, ExitCode::DeadPeer);
    EXPECT_EQ(comm::blamedRank(results[r].error()), 1)
        << results[r].error().message;
  }
}

TEST(NcclCommunicator, AnErrorOfNcclNamesTheCommunicator) {
  for (auto [error, code] :
       {std::pair(ncclRemoteError, ExitCode::DeadPeer),
        std::pair(ncclUnhandledCudaError, ExitCode::Environment)}) {
    auto results = waitUntil([&](NcclCommunicator &nccl) -> Status {
      failCommunicators("dp", error);
      comm::Deadline deadline(kEnds);
      while (!deadline.passed())
        RECKON_TRY(nccl.progress());
      return Status();
    });
    ASSERT_FALSE(results[1]);
    EXPECT_EQ(results[1].error().code, code);
    EXPECT_THAT(results[1].error().message,
                HasSubstr("group 'dp' (ranks 1, 3): expected an operation to "
                          "succeed, got " +
                          ncclText(error) + ", a fault of the test"));
    for (const Status &status : results) {
      ASSERT_FALSE(status);
      EXPECT_THAT(status.error().message, HasSubstr("group 'dp' (ranks 1, 3)"));
    }
  }
}

TEST(NcclCommunicator, DifferentGroupsAreRefusedBeforeNcclBegins) {
  auto results = runNccl(2, [](NcclCommunicator &nccl) -> Status {
    RECKON_TRY(nccl.createGroup(nccl.rank() == 0 ? "tp" : "dp", {0, 1}));
    return nccl.start();
  });
  for (const Status &status : results) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Mismatch);
    EXPECT_EQ(communicatorsAlive(), 0u);
  }
}

TEST(NcclCommunicator, BadGroupsAndSizesAreRefused) {
  expectAllGood(runNccl(2, [](NcclCommunicator &nccl) -> Status {
    EXPECT_FALSE(nccl.createGroup("no", {1 - nccl.rank()}));
    EXPECT_FALSE(nccl.createGroup("no", {0, 1, 1}));
    EXPECT_FALSE(nccl.createGroup("no", {0, 1, 2}));
    EXPECT_FALSE(nccl.createChannel("no", nccl.rank(), Direction::Send, 0));
    auto all = nccl.createGroup("all", {0, 1});
    EXPECT_FALSE(nccl.createGroup("all", {1, 0}));
    DeviceArray<float> data(8, 1.0f);
    Segment one = data.segment(0, 1), three = data.segment(1, 3);
    EXPECT_FALSE(
        nccl.allReduce(*all, {&one, 1}, {&one, 1}, DType::F32, Reduction::Sum))
        << "before the start";
    RECKON_TRY(nccl.start());
    nccl.onStream(newStream());
    for (const auto &result :
         {nccl.allReduce(*all, {&one, 1}, {&three, 1}, DType::F32,
                         Reduction::Sum),
          nccl.allGather(*all, {&one, 1}, {&three, 1}, DType::F32),
          nccl.reduceScatter(*all, {&three, 1}, {&one, 1}, DType::F32,
                             Reduction::Sum),
          nccl.allReduce(*all, {&one, 1}, {}, DType::F32, Reduction::Sum)}) {
      EXPECT_FALSE(result);
      EXPECT_THAT(result.error().message, HasSubstr("do not fit"));
    }
    return nccl.finish();
  }));
}

} // namespace
} // namespace reckon::cuda
