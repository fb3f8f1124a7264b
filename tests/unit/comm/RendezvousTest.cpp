//===- RendezvousTest.cpp - how ranks meet, and how they do not -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/comm/Worlds.h"

#include <gtest/gtest.h>
#include <set>
#include <sys/socket.h>

namespace reckon::comm {
namespace {

std::string freeTcpAddress() {
  auto listener = listenOn({false, "127.0.0.1", 0});
  return "tcp:127.0.0.1:" + std::to_string(boundPort(listener->get()));
}

Status sumOverWorld(Communicator &comm) {
  auto group = comm.createGroup("world", allRanks(comm.worldSize()));
  RECKON_TRY(group);
  RECKON_TRY(comm.start());
  for (size_t count : {1u, 50000u}) {
    std::vector<double> data(count, comm.rank() + 1);
    Segment segment{data.data(), count};
    auto ticket = comm.allReduce(*group, {&segment, 1}, {&segment, 1},
                                 DType::F64, Reduction::Sum);
    RECKON_TRY(ticket);
    RECKON_TRY(comm.wait(*ticket));
    if (data.back() != comm.worldSize() * (comm.worldSize() + 1) / 2)
      return makeError(ExitCode::Internal, "wrong sum");
  }
  return comm.finish();
}

void expectAllDone(const std::vector<Exit> &exits) {
  for (const Exit &exit : exits)
    EXPECT_EQ(exit.status, 0) << exit.message;
}

TEST(Address, ParsesAndPrints) {
  for (const char *text : {"tcp:node1:29500", "tcp:10.0.0.1:1",
                           "tcp:[fe80::1]:20000", "unix:@name", "unix:/a/b"}) {
    auto address = Address::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
  }
  for (const char *text : {"", "node1:29500", "tcp:", "tcp:node1", "tcp::1",
                           "tcp:a:x", "tcp:a:70000", "unix:"})
    EXPECT_FALSE(Address::parse(text)) << text;
}

TEST(Rendezvous, OverTcp) {
  WorldOptions options;
  options.master = freeTcpAddress();
  expectAllDone(runProcesses(3, options, sumOverWorld));
}

TEST(Rendezvous, RanksOfDifferentHostsUseTcp) {
  // Two "hosts" of two ranks: within a host rings, between them TCP.
  WorldOptions options;
  options.master = freeTcpAddress();
  expectAllDone(runProcesses(1, {}, [&](Communicator &) -> Status {
    std::vector<pid_t> pids;
    options.nonce = "two hosts";
    options.world = 4;
    for (int r = 0; r < 4; ++r) {
      pid_t pid = ::fork();
      if (pid == 0) {
        options.rank = r;
        options.hostId = r < 2 ? "host a" : "host b";
        auto joined = joinWorld(options);
        Status status = joined ? sumOverWorld(**joined) : joined.status();
        if (!status)
          std::fprintf(stderr, "%s\n", status.error().message.c_str());
        ::_exit(status ? 0 : 1);
      }
      pids.push_back(pid);
    }
    for (pid_t pid : pids) {
      int status = 0;
      ::waitpid(pid, &status, 0);
      if (status != 0)
        return makeError(ExitCode::Internal, "a rank failed");
    }
    return Status();
  }));
}

TEST(Rendezvous, SixteenRanksMeet) {
  expectAllDone(runProcesses(16, {}, sumOverWorld));
}

/// Joins as `rank` in a thread each; what every one of them got.
std::vector<Status> joinAs(const std::vector<WorldOptions> &ranks) {
  std::vector<Status> results(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      auto joined = joinWorld(ranks[i]);
      if (!joined)
        results[i] = joined.error();
      else if (Status status = (*joined)->finish(); !status)
        results[i] = status;
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

WorldOptions member(int rank, int world, const char *test,
                    double timeout = 20) {
  WorldOptions options;
  options.rank = rank;
  options.world = world;
  options.master =
      std::string("unix:@reckon-test-") + test + std::to_string(::getpid());
  options.nonce = test;
  options.timeoutSeconds = timeout;
  return options;
}

TEST(Rendezvous, NamesTheHostsOfMissingRanks) {
  WorldOptions first = member(0, 6, "hosts", 0.5);
  first.hosts = {"n1", "n1", "n2", "n2", "", ""};
  auto results = joinAs({first});
  ASSERT_FALSE(results[0]);
  EXPECT_NE(results[0].error().message.find(
                "got 1: rank 1 on n1, ranks 2, 3 on n2, ranks 4, 5 did not"),
            std::string::npos)
      << results[0].error().message;
}

TEST(Rendezvous, NamesTheMissingRanksAtTheDeadline) {
  auto results =
      joinAs({member(0, 5, "missing", 0.5), member(2, 5, "missing", 5)});
  for (const Status &status : results) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Environment);
    EXPECT_NE(status.error().message.find("got 2: ranks 1, 3, 4 did not come"),
              std::string::npos)
        << status.error().message;
  }
}

TEST(Rendezvous, ARankWithoutRankZeroSaysWhereItTried) {
  auto results = joinAs({member(1, 2, "nobody", 0.3)});
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().code, ExitCode::Environment);
  EXPECT_NE(results[0].error().message.find("unix:@reckon-test-nobody"),
            std::string::npos);
}

TEST(Rendezvous, DifferentWorldSizesAreAMismatchWithBothNumbers) {
  auto results = joinAs({member(0, 2, "sizes"), member(1, 4, "sizes")});
  for (const Status &status : results) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Mismatch);
    EXPECT_NE(status.error().message.find("got 2 on rank 0 and 4 on rank 1"),
              std::string::npos)
        << status.error().message;
  }
}

TEST(Rendezvous, TwoProcessesOfOneRankAreRefused) {
  // The later one of the twins is told; the rest meets.
  auto results = joinAs({member(0, 3, "twins"), member(1, 3, "twins"),
                         member(1, 3, "twins"), member(2, 3, "twins")});
  EXPECT_TRUE(results[0]);
  EXPECT_TRUE(results[3]);
  int refused = !results[1] + !results[2];
  ASSERT_EQ(refused, 1);
  const Error &error = (results[1] ? results[2] : results[1]).error();
  EXPECT_NE(error.message.find("rank 1"), std::string::npos) << error.message;
}

TEST(Rendezvous, StraysAreRefusedAndHarmNothing) {
  // Rank 1 of another run and of another generation, a talker of nonsense and
  // one that says nothing, all at the same address.
  auto address = Address::parse(member(0, 2, "strays").master);
  WorldOptions otherRun = member(1, 2, "strays", 1);
  otherRun.nonce = "another";
  WorldOptions otherGeneration = member(1, 2, "strays", 1);
  otherGeneration.generation = 3;
  std::vector<Status> results(4);
  std::thread zero([&] { results[0] = joinAs({member(0, 2, "strays")})[0]; });
  std::thread strays([&] {
    bool retry = true;
    Result<Fd> nonsense = connectTo(*address, retry);
    while (!nonsense)
      nonsense = connectTo(*address, retry);
    Result<Fd> silent = connectTo(*address, retry);
    (void)!::send(nonsense->get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    auto refused = joinAs({otherRun, otherGeneration});
    results[1] = refused[0];
    results[2] = refused[1];
    results[3] = joinAs({member(1, 2, "strays")})[0];
  });
  strays.join();
  zero.join();
  EXPECT_TRUE(results[0]) << results[0].error().message;
  EXPECT_TRUE(results[3]) << results[3].error().message;
  for (size_t i : {1u, 2u}) {
    ASSERT_FALSE(results[i]);
    EXPECT_EQ(results[i].error().code, ExitCode::Environment);
    EXPECT_NE(results[i].error().message.find("another run"), std::string::npos)
        << results[i].error().message;
  }
}

TEST(Rendezvous, ARankOutsideTheWorldIsABadSpec) {
  auto results = joinAs({member(2, 2, "outside")});
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().code, ExitCode::BadSpec);
}

} // namespace
} // namespace reckon::comm
