//===- ChannelsTest.cpp - messages: rendezvous, order, segments -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One thread drives all ranks, so "this send does not complete" is a statement
// about turns and needs no clock.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/comm/Worlds.h"

#include <gtest/gtest.h>
#include <numeric>

namespace reckon::comm {
namespace {

/// Channel 0 runs from rank 0 to rank 1, channel 1 back.
Status twoWays(Communicator &comm) {
  bool low = comm.rank() == 0;
  RECKON_TRY(comm.createChannel("there", low ? 1 : 0,
                                low ? Direction::Send : Direction::Receive, 7));
  RECKON_TRY(comm.createChannel("back", low ? 1 : 0,
                                low ? Direction::Receive : Direction::Send, 8));
  return Status();
}

constexpr ChannelId kThere{0}, kBack{1};

class Channels : public testing::TestWithParam<Transport> {
protected:
  void SetUp() override {
    auto started = startedWorld(2, GetParam(), twoWays);
    ASSERT_TRUE(started) << started.error().message;
    ranks = std::move(*started);
  }
  Communicator &at(size_t rank) { return *ranks[rank]; }
  Ticket post(size_t rank, ChannelId channel, std::vector<float> &data,
              bool sending) {
    Segment segment{data.data(), data.size()};
    auto ticket = sending
                      ? at(rank).send(channel, {&segment, 1}, DType::F32)
                      : at(rank).receive(channel, {&segment, 1}, DType::F32);
    EXPECT_TRUE(ticket) << ticket.error().message;
    return ticket ? *ticket : Ticket();
  }
  bool done(size_t rank, Ticket ticket) { return *at(rank).test(ticket); }

  Ranks ranks;
};

TEST_P(Channels, ASendEndsOnlyAfterItsReceiveWasPosted) {
  for (size_t count : {0u, 1u, 3000u, 300000u}) {
    std::vector<float> from(count, 1.5f), to(count);
    Ticket send = post(0, kThere, from, true);
    ASSERT_TRUE(takeTurns(ranks));
    EXPECT_FALSE(done(0, send));
    EXPECT_NE(at(0).describePending().find("channel 'there'"),
              std::string::npos);
    Ticket receive = post(1, kThere, to, false);
    ASSERT_TRUE(takeTurns(ranks));
    EXPECT_TRUE(done(0, send));
    EXPECT_TRUE(done(1, receive));
    EXPECT_EQ(from, to);
    EXPECT_EQ(at(0).describePending(), "");
  }
}

TEST_P(Channels, SendsThatWaitForEachOtherDeadlock) {
  std::vector<float> a(16, 1), b(16, 2), c(16), d(16);
  Ticket there = post(0, kThere, a, true);
  Ticket back = post(1, kBack, b, true);
  ASSERT_TRUE(takeTurns(ranks));
  EXPECT_FALSE(done(0, there));
  EXPECT_FALSE(done(1, back));
  // Receives posted by either side resolve it.
  post(0, kBack, c, false);
  post(1, kThere, d, false);
  ASSERT_TRUE(takeTurns(ranks));
  EXPECT_TRUE(done(0, there));
  EXPECT_TRUE(done(1, back));
  EXPECT_EQ(c, b);
  EXPECT_EQ(d, a);
}

TEST_P(Channels, MessagesArriveInTheOrderOfPosting) {
  // Far more than the credits of a channel, of mixed sizes.
  constexpr size_t kMessages = 100;
  std::vector<std::vector<float>> from(kMessages), to(kMessages);
  std::vector<Ticket> sends, receives;
  for (size_t i = 0; i < kMessages; ++i) {
    size_t count = mix(i) % 3 == 0 ? 40000 : mix(i) % 50;
    from[i].assign(count, static_cast<float>(i));
    to[i].resize(count);
    // Half of the receives are there first.
    if (i % 2 == 0)
      receives.push_back(post(1, kThere, to[i], false));
    sends.push_back(post(0, kThere, from[i], true));
    if (i % 2 == 1)
      receives.push_back(post(1, kThere, to[i], false));
    if (i % 10 == 0) {
      ASSERT_TRUE(takeTurns(ranks, 3));
    }
  }
  ASSERT_TRUE(takeTurns(ranks, 100000));
  for (size_t i = 0; i < kMessages; ++i) {
    EXPECT_TRUE(done(0, sends[i])) << i;
    EXPECT_TRUE(done(1, receives[i])) << i;
    EXPECT_EQ(from[i], to[i]) << i;
  }
}

TEST_P(Channels, AWaitingChannelDoesNotHoldUpAnother) {
  std::vector<float> blocked(100000, 1), from(1000, 2), to(1000);
  Ticket waiting = post(0, kThere, blocked, true);
  Ticket send = post(1, kBack, from, true);
  post(0, kBack, to, false);
  ASSERT_TRUE(takeTurns(ranks));
  EXPECT_FALSE(done(0, waiting));
  EXPECT_TRUE(done(1, send));
  EXPECT_EQ(from, to);
}

TEST_P(Channels, SegmentsMayBeCutDifferently) {
  std::vector<float> from(1000), to(1000);
  std::iota(from.begin(), from.end(), 0.0f);
  std::vector<Segment> cut{{from.data(), 1},
                           {from.data() + 1, 0},
                           {from.data() + 1, 700},
                           {from.data() + 701, 299}};
  std::vector<Segment> other;
  for (size_t i = 0; i < 1000; i += 10)
    other.push_back({to.data() + i, 10});
  ASSERT_TRUE(at(0).send(kThere, cut, DType::F32));
  ASSERT_TRUE(at(1).receive(kThere, other, DType::F32));
  ASSERT_TRUE(takeTurns(ranks));
  EXPECT_EQ(from, to);
}

TEST_P(Channels, ATurnIsBounded) {
  // 64 MiB are under way, yet one turn of the sender takes less than a MiB of
  // it: other queues of the interpreter are not starved.
  constexpr size_t kCount = size_t(16) << 20;
  std::vector<float> from(kCount, 3), to(kCount);
  post(0, kThere, from, true);
  post(1, kThere, to, false);
  int turns = 0;
  for (; to.back() == 0 && turns < 100000; ++turns) {
    ASSERT_TRUE(at(0).progress());
    ASSERT_TRUE(at(1).progress());
  }
  EXPECT_GE(turns, 64);
  EXPECT_EQ(to.back(), 3);
}

TEST_P(Channels, DifferentLengthsNameBothRanksAndValues) {
  std::vector<float> from(100), to(101);
  post(0, kThere, from, true);
  post(1, kThere, to, false);
  Status status = takeTurns(ranks);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Mismatch);
  for (const char *part : {"channel 'there', message 0", "rank 0 sends 100 x",
                           "rank 1 expects 101 x"})
    EXPECT_NE(status.error().message.find(part), std::string::npos)
        << status.error().message;
  // The other side learns the same.
  for (int i = 0; i < 1000 && at(1).progress(); ++i)
    at(1).idle();
  auto other = at(1).progress();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, status.error().message);
}

TEST_P(Channels, ChannelsHaveADirection) {
  std::vector<float> data(1);
  Segment segment{data.data(), 1};
  auto wrong = at(0).receive(kThere, {&segment, 1}, DType::F32);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ExitCode::Internal);
}

INSTANTIATE_TEST_SUITE_P(Transports, Channels,
                         testing::Values(Transport::Ring, Transport::Socket,
                                         Transport::Tcp),
                         [](const auto &info) {
                           return std::string(comm::name(info.param));
                         });

} // namespace
} // namespace reckon::comm
