//===- NcclApiTest.cpp - the emulated NCCL behaves as NCCL ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Nccl.h"
#include "tests/unit/cuda/NcclRanks.h"

#include <gmock/gmock.h>

namespace reckon::cuda {
namespace {

using testing::HasSubstr;

Status nccl(ncclResult_t result, const char *call) {
  return result == ncclSuccess || result == ncclInProgress
             ? Status()
             : Status(makeError(ExitCode::Environment,
                                std::string(call) + ": " + ncclText(result) +
                                    ": " + ncclGetLastError(nullptr)));
}
#define NCCL(call) RECKON_TRY(nccl((call), #call))

ncclConfig_t config(const char *name, bool blocking) {
  ncclConfig_t made = NCCL_CONFIG_INITIALIZER;
  made.blocking = blocking;
  made.commName = name;
  return made;
}

ncclResult_t settled(ncclComm_t comm) {
  comm::Deadline deadline(kEnds);
  for (ncclResult_t state = ncclInProgress; !deadline.passed();) {
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess)
      return ncclInternalError;
    if (state != ncclInProgress)
      return state;
    ::sched_yield();
  }
  return ncclInProgress;
}

/// Runs `body` on ranks that share a blocking communicator of all.
using Body = std::function<Status(ncclComm_t world, int rank)>;
void runRanks(int ranks, const Body &body) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  expectAllGood(runControls(
      ranks, [&](std::unique_ptr<comm::Communicator> control) -> Status {
        ncclComm_t world = nullptr;
        ncclConfig_t blocking = config("world", true);
        NCCL(ncclCommInitRankConfig(&world, ranks, id, control->rank(),
                                    &blocking));
        if (Status status = body(world, control->rank()); !status) {
          (void)ncclCommAbort(world); // or the others wait for this rank
          return status;
        }
        if (communicatorsAlive() > 0) {
          NCCL(ncclCommFinalize(world));
          NCCL(ncclCommDestroy(world));
        }
        return expect(communicatorsAlive() == 0, "no communicator left");
      }));
}

// --- Calls that do not block ------------------------------------------------

TEST(NcclApi, NothingIsOnTheStreamBeforeTheCallIsComplete) {
  runRanks(2, [](ncclComm_t world, int rank) -> Status {
    ncclComm_t comm = nullptr;
    ncclConfig_t polled = config("polled", false);
    NCCL(ncclCommSplit(world, 0, rank, &comm, &polled));
    setNcclFaults({.pollsInProgress = 3, .stalled = ""});
    cudaStream_t stream = newStream();
    DeviceArray<float> data(4, 1.0f);
    RECKON_TRY(expect(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32,
                                    ncclSum, comm, stream) == ncclInProgress,
                      "the call to be in progress"));
    RECKON_TRY(expect(ends(stream, 1), "an empty stream"));
    RECKON_TRY(expect(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32,
                                    ncclSum, comm, stream) == ncclInvalidUsage,
                      "the next call to be refused"));
    ncclResult_t state = ncclSuccess;
    for (int i = 0; i < 3; ++i) {
      NCCL(ncclCommGetAsyncError(comm, &state));
      RECKON_TRY(expect(state == ncclInProgress, "more queries"));
    }
    NCCL(ncclCommGetAsyncError(comm, &state));
    RECKON_TRY(expect(state == ncclSuccess, "a complete call"));
    RECKON_TRY(expect(ends(stream, kEnds), "the operation to end"));
    RECKON_TRY(expect(data.values() == std::vector(4, 2.0f), "a sum"));
    NCCL(ncclCommFinalize(comm));
    RECKON_TRY(expect(settled(comm) == ncclSuccess, "an end"));
    NCCL(ncclCommDestroy(comm));
    return Status();
  });
}

TEST(NcclApi, ASplitOrdersByKeyAndLeavesOut) {
  runRanks(5, [](ncclComm_t world, int rank) -> Status {
    // Ranks 0, 2, 4 in reverse; 1 and 3 are in none.
    bool in = rank % 2 == 0;
    ncclComm_t comm = nullptr;
    ncclConfig_t blocking = config("even", true);
    NCCL(ncclCommSplit(world, in ? 7 : NCCL_SPLIT_NOCOLOR, -rank, &comm,
                       &blocking));
    RECKON_TRY(expect((comm != nullptr) == in, "a communicator where asked"));
    if (!in)
      return Status();
    int count = 0, place = 0;
    NCCL(ncclCommCount(comm, &count));
    NCCL(ncclCommUserRank(comm, &place));
    RECKON_TRY(expect(count == 3 && place == 2 - rank / 2, "order by key"));
    cudaStream_t stream = newStream();
    DeviceArray<int> mine(1, rank), all(3, -1);
    NCCL(ncclAllGather(mine.data(), all.data(), 1, ncclInt32, comm, stream));
    RECKON_TRY(expect(ends(stream, kEnds), "a gather"));
    RECKON_TRY(expect(all.values() == std::vector{4, 2, 0}, "order by key"));
    NCCL(ncclCommDestroy(comm));
    return Status();
  });
}

// --- Order ------------------------------------------------------------------

/// Both ranks send first and receive then, on one stream and communicator.
Status exchange(ncclComm_t world, int rank, bool grouped, cudaStream_t sends,
                cudaStream_t receives, ncclComm_t back) {
  static thread_local std::unique_ptr<DeviceArray<float>> mine, theirs;
  mine = std::make_unique<DeviceArray<float>>(size_t{1}, 10.0f + rank);
  theirs = std::make_unique<DeviceArray<float>>(size_t{1}, 0.0f);
  // Rank 1 sends on the communicator on which rank 0 receives.
  ncclComm_t out = rank == 0 ? world : back, in = rank == 0 ? back : world;
  if (grouped)
    NCCL(ncclGroupStart());
  NCCL(ncclSend(mine->data(), 1, ncclFloat32, 1 - rank, out, sends));
  NCCL(ncclRecv(theirs->data(), 1, ncclFloat32, 1 - rank, in, receives));
  if (grouped)
    NCCL(ncclGroupEnd());
  return Status();
}

TEST(NcclApi, SendsThatWaitForEachOtherBlock) {
  runRanks(2, [](ncclComm_t world, int rank) -> Status {
    cudaStream_t stream = newStream();
    RECKON_TRY(exchange(world, rank, false, stream, stream, world));
    RECKON_TRY(expect(!ends(stream, kBlocked), "two sends to block"));
    NCCL(ncclCommAbort(world));
    // An abort ends what the device was doing.
    return expect(ends(stream, kEnds), "the stream to be free again");
  });
}

TEST(NcclApi, OneCommunicatorHasOneOrderOnTwoStreams) {
  runRanks(2, [](ncclComm_t world, int rank) -> Status {
    cudaStream_t first = newStream(), second = newStream();
    RECKON_TRY(exchange(world, rank, false, first, second, world));
    RECKON_TRY(expect(!ends(first, kBlocked) && !ends(second, kBlocked),
                      "streams not to help"));
    NCCL(ncclCommAbort(world));
    return expect(ends(second, kEnds), "the stream to be free again");
  });
}

TEST(NcclApi, AGroupedExchangeEnds) {
  runRanks(2, [](ncclComm_t world, int rank) -> Status {
    cudaStream_t stream = newStream();
    RECKON_TRY(exchange(world, rank, true, stream, stream, world));
    return expect(ends(stream, kEnds), "the exchange to end");
  });
}

/// A second communicator of the same ranks; on one stream it does not help, and
/// grouping does not either, for a group joins calls of one communicator only.
TEST(NcclApi, CommunicatorsOfTheirOwnNeedStreamsOfTheirOwn) {
  for (bool grouped : {false, true})
    for (bool apart : {false, true})
      runRanks(2, [&](ncclComm_t world, int rank) -> Status {
        ncclComm_t back = nullptr;
        ncclConfig_t blocking = config("back", true);
        NCCL(ncclCommSplit(world, 0, rank, &back, &blocking));
        cudaStream_t sends = newStream();
        cudaStream_t receives = apart ? newStream() : sends;
        RECKON_TRY(exchange(world, rank, grouped, sends, receives, back));
        bool ended = ends(sends, apart ? kEnds : kBlocked) &&
                     ends(receives, apart ? kEnds : kBlocked);
        RECKON_TRY(expect(ended == apart, "to end on two streams only"));
        if (apart) {
          NCCL(ncclCommDestroy(back));
          return Status();
        }
        NCCL(ncclCommAbort(back));
        NCCL(ncclCommAbort(world));
        return Status();
      });
}

/// Rank 0 issues a sum that waits for a message of rank 1, and after it, on
/// another communicator and stream, the message that rank 1 waits for before
/// it sends.
TEST(NcclApi, ImplicitLaunchOrderHoldsBackLaterOnes) {
  for (bool implicit : {false, true}) {
    ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", implicit ? "1" : "0", 1);
    runRanks(2, [&](ncclComm_t world, int rank) -> Status {
      ncclComm_t back = nullptr;
      ncclConfig_t blocking = config("back", true);
      NCCL(ncclCommSplit(world, 0, rank, &back, &blocking));
      cudaStream_t first = newStream(), second = newStream();
      DeviceArray<float> x(1, 1.0f), y(1, 2.0f);
      if (rank == 0) {
        NCCL(ncclRecv(x.data(), 1, ncclFloat32, 1, world, first));
        NCCL(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, world,
                           first));
        NCCL(ncclSend(y.data(), 1, ncclFloat32, 1, back, second));
      } else {
        NCCL(ncclRecv(y.data(), 1, ncclFloat32, 0, back, first));
        NCCL(ncclSend(x.data(), 1, ncclFloat32, 0, world, first));
        NCCL(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, world,
                           first));
      }
      RECKON_TRY(expect(ends(first, implicit ? kBlocked : kEnds) != implicit,
                        "only the order of launches to block"));
      if (!implicit) {
        NCCL(ncclCommDestroy(back));
        return Status();
      }
      NCCL(ncclCommAbort(back));
      NCCL(ncclCommAbort(world));
      return Status();
    });
  }
  ::unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
}

TEST(NcclApi, StreamsOfOneGroupCallAreJoined) {
  runRanks(2, [](ncclComm_t world, int rank) -> Status {
    cudaStream_t first = newStream(), second = newStream();
    DeviceArray<float> a(1, 1.0f), b(1, 2.0f), c(1, 0.0f), late(1, 5.0f);
    // The group's operation is put on `first`, but may not read `b` before.
    (void)cudaMemcpyAsync(b.data(), late.data(), sizeof(float),
                          cudaMemcpyDeviceToDevice, second);
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a.data(), a.data(), 1, ncclFloat32, ncclSum, world,
                       first));
    NCCL(ncclAllReduce(b.data(), b.data(), 1, ncclFloat32, ncclSum, world,
                       second));
    NCCL(ncclGroupEnd());
    // And what comes behind on `second` sees the results.
    (void)cudaMemcpyAsync(c.data(), b.data(), sizeof(float),
                          cudaMemcpyDeviceToDevice, second);
    RECKON_TRY(expect(ends(first, kEnds) && ends(second, kEnds), "an end"));
    return expect(a.values()[0] == 2 && c.values()[0] == 10, "both sums");
  });
}

TEST(NcclApi, AGraphIssuesItsCollectivesAtEveryLaunch) {
  runRanks(3, [](ncclComm_t world, int rank) -> Status {
    cudaStream_t stream = newStream();
    DeviceArray<float> data(2, 1.0f);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    for (int i = 0; i < 2; ++i)
      NCCL(ncclAllReduce(data.data(), data.data(), 2, ncclFloat32, ncclSum,
                         world, stream));
    (void)cudaStreamEndCapture(stream, &graph);
    RECKON_TRY(expect(graph != nullptr, "a graph"));
    (void)cudaGraphInstantiate(&exec, graph);
    RECKON_TRY(expect(ends(stream, kEnds), "nothing to run yet"));
    RECKON_TRY(expect(data.values()[0] == 1, "a capture to run nothing"));
    for (int i = 0; i < 2; ++i)
      (void)cudaGraphLaunch(exec, stream);
    RECKON_TRY(expect(ends(stream, kEnds), "the graph to end"));
    return expect(data.values() == std::vector(2, 81.0f), "four sums");
  });
}

// --- Errors -----------------------------------------------------------------

TEST(NcclApi, DifferentSizesAreAnError) {
  runRanks(2, [](ncclComm_t world, int rank) -> Status {
    cudaStream_t stream = newStream();
    DeviceArray<float> data(8, 1.0f);
    size_t count = rank == 0 ? 8 : 4;
    NCCL(ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum,
                       world, stream));
    ncclResult_t state = ncclSuccess;
    comm::Deadline deadline(kEnds);
    while (state == ncclSuccess && !deadline.passed()) {
      RECKON_TRY(expect(cudaStreamQuery(stream) == cudaErrorNotReady,
                        "the stream to stay where it is"));
      NCCL(ncclCommGetAsyncError(world, &state));
    }
    RECKON_TRY(expect(state == ncclInvalidUsage, "an error"));
    EXPECT_THAT(ncclGetLastError(world), HasSubstr("all_reduce"));
    NCCL(ncclCommAbort(world));
    return expect(ends(stream, kEnds), "the stream to be free again");
  });
}

TEST(NcclApi, AnAbortShowsOnOtherRanks) {
  runRanks(3, [](ncclComm_t world, int rank) -> Status {
    if (rank == 1) {
      NCCL(ncclCommAbort(world));
      return Status();
    }
    cudaStream_t stream = newStream();
    DeviceArray<float> data(8, 1.0f);
    (void)ncclAllReduce(data.data(), data.data(), 8, ncclFloat32, ncclSum,
                        world, stream);
    ncclResult_t state = ncclSuccess;
    comm::Deadline deadline(kEnds);
    while (state == ncclSuccess && !deadline.passed()) {
      (void)cudaStreamQuery(stream);
      NCCL(ncclCommGetAsyncError(world, &state));
    }
    RECKON_TRY(expect(state == ncclRemoteError, "an error of the other rank"));
    NCCL(ncclCommAbort(world));
    return expect(ends(stream, kEnds), "the stream to be free again");
  });
}

TEST(NcclApi, AnInitThatNobodyJoinsCanBeAborted) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  for (int rank : {0, 1}) {
    ncclComm_t comm = nullptr;
    ncclConfig_t polled = config("alone", false);
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &polled),
              ncclInProgress);
    ncclResult_t state = ncclSuccess;
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      EXPECT_EQ(state, ncclInProgress);
    }
    int64_t begin = comm::nowNs();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_LT(comm::nowNs() - begin, 10'000'000'000);
    EXPECT_EQ(communicatorsAlive(), 0u);
  }
}

TEST(NcclApi, ADestroyedCommunicatorMustNotBeUsed) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t comm = nullptr;
  ncclConfig_t blocking = config("alone", true);
  ASSERT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &blocking), ncclSuccess);
  ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_DEATH((void)ncclCommAbort(comm), "not yet destroyed");
}

TEST(NcclApi, WrongArgumentsAreRefused) {
  runRanks(2, [](ncclComm_t world, int rank) -> Status {
    cudaStream_t stream = newStream();
    DeviceArray<float> data(8, 1.0f);
    EXPECT_EQ(ncclSend(data.data(), 1, ncclFloat32, rank, world, stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclSend(data.data(), 1, ncclFloat32, 2, world, stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(nullptr, data.data(), 1, ncclFloat32, ncclSum,
                            world, stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclProd,
                            world, stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    // An error inside a group shows at its end, and nothing of it runs.
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum,
                            world, stream),
              ncclSuccess);
    EXPECT_EQ(ncclSend(data.data(), 1, ncclFloat32, rank, world, stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_TRUE(ends(stream, 1));
    ncclComm_t none = nullptr;
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum,
                            none, stream),
              ncclInvalidArgument);
    void *handle = nullptr;
    EXPECT_EQ(ncclCommRegister(world, data.data(), 32, &handle), ncclSuccess);
    EXPECT_EQ(ncclCommRegister(world, data.data(), 32, &handle),
              ncclInvalidArgument);
    EXPECT_EQ(ncclCommDeregister(world, handle), ncclSuccess);
    EXPECT_EQ(ncclCommDeregister(world, handle), ncclInvalidArgument);
    return Status();
  });
}

} // namespace
} // namespace reckon::cuda
