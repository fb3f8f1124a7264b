//===- FailuresTest.cpp - dead ranks and disagreements --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/comm/Worlds.h"

#include <csignal>
#include <gtest/gtest.h>

namespace reckon::comm {
namespace {

/// A job in which not everybody knows everybody: pairs {0,1} and {2,3}, and a
/// channel from 1 to 2. `victim` ends itself in the middle.
Status pairsUntilDeath(Communicator &comm, int victim,
                       const std::function<Status()> &end, int lastStep = 5) {
  int r = comm.rank();
  auto pair = comm.createGroup("pair", {r / 2 * 2, r / 2 * 2 + 1});
  RECKON_TRY(pair);
  Result<ChannelId> channel = ChannelId{0};
  if (r == 1)
    channel = comm.createChannel("stages", 2, Direction::Send, 0);
  if (r == 2)
    channel = comm.createChannel("stages", 1, Direction::Receive, 0);
  RECKON_TRY(channel);
  RECKON_TRY(comm.start());
  std::vector<float> data(100000, 1);
  Segment segment{data.data(), data.size()};
  for (int step = 0;; ++step) {
    auto reduced = comm.allReduce(*pair, {&segment, 1}, {&segment, 1},
                                  DType::F32, Reduction::Max);
    RECKON_TRY(reduced);
    if (step == lastStep && r == victim)
      RECKON_TRY(end());
    RECKON_TRY(comm.wait(*reduced));
    if (r == 1 || r == 2) {
      auto moved = r == 1 ? comm.send(*channel, {&segment, 1}, DType::F32)
                          : comm.receive(*channel, {&segment, 1}, DType::F32);
      RECKON_TRY(moved);
      RECKON_TRY(comm.wait(*moved));
    }
  }
}

class Death : public testing::TestWithParam<std::tuple<Transport, int>> {};

TEST_P(Death, OfOneRankIsNamedByAllOthersWithinTwoSeconds) {
  auto [transport, victim] = GetParam();
  WorldOptions options;
  options.transport = transport;
  auto exits = runProcesses(4, options, [&](Communicator &comm) -> Status {
    return pairsUntilDeath(comm, victim, [] {
      ::raise(SIGKILL);
      return Status();
    });
  });
  double died = exits[static_cast<size_t>(victim)].seconds;
  for (int r = 0; r < 4; ++r) {
    const Exit &exit = exits[static_cast<size_t>(r)];
    if (r == victim) {
      EXPECT_EQ(exit.signal(), SIGKILL);
      continue;
    }
    EXPECT_EQ(exit.code(), 42);
    EXPECT_EQ(exit.message.rfind("rank " + std::to_string(victim) + " died", 0),
              0u)
        << "rank " << r << ": " << exit.message;
    EXPECT_LT(exit.seconds - died, 2.0);
  }
}

TEST_P(Death, OfARankThatStopsForAReasonCarriesTheReason) {
  auto [transport, victim] = GetParam();
  WorldOptions options;
  options.transport = transport;
  auto exits = runProcesses(4, options, [&](Communicator &comm) -> Status {
    return pairsUntilDeath(comm, victim, [] {
      return Status(makeError(ExitCode::Environment, "the disk is full"));
    });
  });
  for (int r = 0; r < 4; ++r) {
    const Exit &exit = exits[static_cast<size_t>(r)];
    EXPECT_EQ(exit.code(), r == victim ? 5 : 42);
    EXPECT_NE(exit.message.find("the disk is full"), std::string::npos)
        << exit.message;
    if (r == victim)
      continue;
    EXPECT_NE(exit.message.find("rank " + std::to_string(victim) +
                                " stopped with exit code 5"),
              std::string::npos)
        << exit.message;
  }
}

INSTANTIATE_TEST_SUITE_P(Victims, Death,
                         testing::Combine(testing::Values(Transport::Ring,
                                                          Transport::Socket,
                                                          Transport::Tcp),
                                          testing::Values(0, 1, 3)),
                         [](const auto &info) {
                           return std::string(
                                      comm::name(std::get<0>(info.param))) +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(Death, OfABusyRanksNeighbourIsNamedAlthoughTheStarIsSlow) {
  // Rank 0, the middle of the control star, computes and makes no progress
  // while rank 3 dies; rank 1 is no neighbour of rank 3.
  auto exits = runProcesses(4, {}, [&](Communicator &comm) -> Status {
    if (comm.rank() != 0)
      return pairsUntilDeath(
          comm, 3,
          [] {
            ::raise(SIGKILL);
            return Status();
          },
          0);
    auto pair = comm.createGroup("pair", {0, 1});
    RECKON_TRY(pair);
    RECKON_TRY(comm.start());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (;;) {
      auto moved = comm.progress();
      RECKON_TRY(moved);
      comm.idle();
    }
  });
  for (size_t r = 0; r < 3; ++r)
    EXPECT_EQ(exits[r].message.rfind("rank 3 died", 0), 0u)
        << r << ": " << exits[r].message;
}

struct Post {
  OpKind kind;
  size_t count; // per rank and block
  DType type = DType::F32;
  Reduction reduction = Reduction::Sum;
};

Result<Ticket> post(Communicator &comm, GroupId group, const Post &what,
                    std::vector<double> &memory, size_t n) {
  memory.assign(what.count * n * 2 + 2, 0);
  Segment one{memory.data(), what.count};
  Segment all{memory.data() + what.count + 1, what.count * n};
  switch (what.kind) {
  case OpKind::AllGather:
    return comm.allGather(group, {&one, 1}, {&all, 1}, what.type);
  case OpKind::ReduceScatter:
    return comm.reduceScatter(group, {&all, 1}, {&one, 1}, what.type,
                              what.reduction);
  default:
    return comm.allReduce(group, {&one, 1}, {&one, 1}, what.type,
                          what.reduction);
  }
}

TEST(Mismatch, IsFoundWhateverDiffersAndNamesBothRanks) {
  struct {
    Post most, odd;
    const char *mostText, *oddText;
  } cases[] = {
      {{OpKind::AllReduce, 100},
       {OpKind::AllReduce, 101},
       "100 x f32",
       "101 x f32"},
      {{OpKind::AllReduce, 100000},
       {OpKind::AllReduce, 100001},
       "100000 x f32",
       "100001 x f32"},
      // One runs the exchange, the other the ring.
      {{OpKind::AllReduce, 4},
       {OpKind::AllReduce, 100000},
       "of 4 x f32",
       "of 100000 x f32"},
      {{OpKind::AllReduce, 100},
       {OpKind::AllReduce, 100, DType::I32},
       "100 x f32",
       "100 x i32"},
      {{OpKind::AllReduce, 100},
       {OpKind::AllReduce, 100, DType::F32, Reduction::Max},
       "all_reduce(sum)",
       "all_reduce(max)"},
      {{OpKind::AllGather, 100},
       {OpKind::ReduceScatter, 100},
       "all_gather of 100",
       "reduce_scatter(sum) of 100"},
  };
  for (Transport transport : {Transport::Ring, Transport::Socket})
    for (const auto &c : cases)
      for (int odd : {0, 2}) {
        auto results =
            runThreads(3, transport, [&](Communicator &comm) -> Status {
              auto group = comm.createGroup("dp", {0, 1, 2});
              RECKON_TRY(group);
              RECKON_TRY(comm.start());
              std::vector<double> memory, first;
              // A good operation before, so that the sequence number counts.
              auto good = post(comm, *group, {OpKind::AllReduce, 10}, first, 3);
              RECKON_TRY(good);
              auto ticket = post(
                  comm, *group, comm.rank() == odd ? c.odd : c.most, memory, 3);
              RECKON_TRY(ticket);
              RECKON_TRY(comm.wait(*ticket));
              return comm.finish();
            });
        for (const Status &status : results) {
          ASSERT_FALSE(status);
          const Error &error = status.error();
          EXPECT_EQ(error.code, ExitCode::Mismatch) << error.message;
          for (std::string part :
               {std::string("group 'dp', operation 1"),
                "rank " + std::to_string(odd), std::string(c.mostText),
                std::string(c.oddText)})
            EXPECT_NE(error.message.find(part), std::string::npos)
                << part << " in: " << error.message;
        }
      }
}

TEST(Mismatch, OfGroupsIsFoundAtTheStart) {
  auto results =
      runThreads(2, Transport::Ring, [](Communicator &comm) -> Status {
        RECKON_TRY(comm.createGroup(comm.rank() == 0 ? "tp" : "dp", {0, 1}));
        return comm.start();
      });
  for (const Status &status : results) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Mismatch);
    EXPECT_NE(status.error().message.find("group 'tp'"), std::string::npos)
        << status.error().message;
    EXPECT_NE(status.error().message.find("group 'dp'"), std::string::npos);
  }
}

TEST(Mismatch, OfAChannelThatOnlyOneSideHasIsFoundAtTheStart) {
  auto results =
      runThreads(3, Transport::Ring, [](Communicator &comm) -> Status {
        if (comm.rank() == 2)
          RECKON_TRY(comm.createChannel("lonely", 1, Direction::Send, 0));
        return comm.start();
      });
  for (const Status &status : results) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Mismatch);
    EXPECT_NE(status.error().message.find("rank 2 has a group or channel with "
                                          "rank 1, but rank 1 has none"),
              std::string::npos)
        << status.error().message;
  }
}

TEST(Agreement, NamesTheOddRanks) {
  auto results =
      runThreads(4, Transport::Ring, [](Communicator &comm) -> Status {
        RECKON_TRY(comm.agree("plan digest", "aaaa"));
        return comm.agree("plan digest", comm.rank() == 2 ? "bbbb" : "aaaa");
      });
  for (const Status &status : results) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Mismatch);
    EXPECT_NE(status.error().message.find(
                  "got aaaa on ranks 0, 1, 3 but bbbb on rank 2"),
              std::string::npos)
        << status.error().message;
  }
}

TEST(Usage, ErrorsAreTold) {
  WorldOptions options;
  options.maxOperations = 2;
  options.maxSegments = 3;
  auto world = makeLocalWorld(1, options);
  ASSERT_TRUE(world);
  Communicator &comm = *(*world)[0];
  EXPECT_FALSE(comm.createGroup("without me", {}));
  EXPECT_FALSE(comm.createGroup("far", {0, 1}));
  EXPECT_FALSE(comm.createChannel("self", 0, Direction::Send, 0));
  auto group = comm.createGroup("world", {0});
  ASSERT_TRUE(group);
  EXPECT_FALSE(comm.createGroup("world", {0}));
  float data[4] = {};
  std::vector<Segment> segments(4, Segment{data, 1});
  Segments one(segments.data(), 1);
  EXPECT_FALSE(comm.allReduce(*group, one, one, DType::F32, Reduction::Sum));
  ASSERT_TRUE(comm.start());
  EXPECT_FALSE(comm.createGroup("late", {0}));
  EXPECT_FALSE(
      comm.allReduce(*group, segments, segments, DType::F32, Reduction::Sum));
  EXPECT_FALSE(comm.allReduce(*group, one, {}, DType::F32, Reduction::Sum));
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(comm.allReduce(*group, one, one, DType::F32, Reduction::Sum));
  EXPECT_FALSE(comm.allReduce(*group, one, one, DType::F32, Reduction::Sum));
}

} // namespace
} // namespace reckon::comm
