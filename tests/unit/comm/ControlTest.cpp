//===- ControlTest.cpp - the end of the control star, step by step --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Control.h"

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Wire.h"

#include <gtest/gtest.h>
#include <memory>

namespace reckon::comm {
namespace {

/// Rank 0 and rank 1 of a world of two, driven from one thread, so that every
/// order of events can be made.
struct Pair {
  explicit Pair(bool tcp)
      : zero(std::make_unique<Control>(0, 2)),
        one(std::make_unique<Control>(1, 2)) {
    auto sockets = socketPair(tcp);
    EXPECT_TRUE(sockets);
    zero->setPeer(1, std::move(sockets->first));
    one->setPeer(0, std::move(sockets->second));
  }

  /// Checks `rank` until it has all answers. Loopback TCP takes its time.
  static Status untilReady(Control &rank) {
    Deadline deadline(10);
    while (!rank.ready() && !deadline.passed())
      RECKON_TRY(rank.check());
    EXPECT_TRUE(rank.ready());
    return Status();
  }

  /// Checks `rank` until it reports that its peer is gone, for a while.
  static Status forAWhile(Control &rank) {
    Deadline deadline(0.2);
    while (!deadline.passed())
      RECKON_TRY(rank.check());
    return Status();
  }

  std::unique_ptr<Control> zero, one;
};

class ControlEnd : public testing::TestWithParam<bool> {};

TEST_P(ControlEnd, APeerMayLeaveBeforeTheAnswersAreTaken) {
  // Rank 0 may look again between having all answers and taking them, and the
  // other rank may have ended by then: that is how every run ends.
  Pair pair(GetParam());
  pair.zero->begin("0");
  pair.one->begin("1");
  ASSERT_TRUE(Pair::untilReady(*pair.zero));
  ASSERT_TRUE(Pair::untilReady(*pair.one));
  pair.one.reset();
  Status again = Pair::forAWhile(*pair.zero);
  EXPECT_TRUE(again) << again.error().message;
  EXPECT_EQ(pair.zero->take(), (std::vector<std::string>{"0", "1"}));
  pair.zero->expectClose();
  EXPECT_TRUE(pair.zero->check());
}

TEST_P(ControlEnd, RankZeroMayLeaveBeforeItsAnswerIsTaken) {
  Pair pair(GetParam());
  pair.zero->begin("0");
  pair.one->begin("1");
  ASSERT_TRUE(Pair::untilReady(*pair.zero));
  pair.zero.reset();
  ASSERT_TRUE(Pair::untilReady(*pair.one));
  Status again = Pair::forAWhile(*pair.one);
  EXPECT_TRUE(again) << again.error().message;
  EXPECT_EQ(pair.one->take(), (std::vector<std::string>{"0", "1"}));
}

TEST_P(ControlEnd, APeerThatDiesAfterAnEarlierGatherIsStillFound) {
  Pair pair(GetParam());
  pair.zero->begin("0");
  pair.one->begin("1");
  ASSERT_TRUE(Pair::untilReady(*pair.zero));
  pair.one.reset();
  ASSERT_TRUE(Pair::forAWhile(*pair.zero)); // seen, but not yet told
  (void)pair.zero->take();
  Status dead = Pair::forAWhile(*pair.zero);
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code, ExitCode::DeadPeer);
  EXPECT_EQ(blamedRank(dead.error()), 1);
}

TEST_P(ControlEnd, APeerThatDiesWithoutAnAnswerIsFound) {
  Pair pair(GetParam());
  pair.zero->begin("0");
  pair.one.reset();
  Status dead = Pair::forAWhile(*pair.zero);
  ASSERT_FALSE(dead);
  EXPECT_EQ(blamedRank(dead.error()), 1);
}

INSTANTIATE_TEST_SUITE_P(Sockets, ControlEnd, testing::Bool(),
                         [](const auto &info) {
                           return info.param ? "tcp" : "unix";
                         });

} // namespace
} // namespace reckon::comm
