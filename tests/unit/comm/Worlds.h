//===- Worlds.h - small worlds for tests: threads and processes -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_COMM_WORLDS_H
#define RECKON_TESTS_UNIT_COMM_WORLDS_H

#include "runtime/comm/Rendezvous.h"

#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace reckon::comm {

inline const char *name(Transport transport) {
  static const char *const names[] = {"ring", "socket", "tcp"};
  return names[static_cast<int>(transport)];
}

inline std::vector<int> allRanks(int world) {
  std::vector<int> ranks;
  for (int r = 0; r < world; ++r)
    ranks.push_back(r);
  return ranks;
}

/// A value from a counter: equal on every run, different everywhere.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

using RankBody = std::function<Status(Communicator &)>;

/// Runs `body` on every rank in a thread of its own; the error of each rank.
inline std::vector<Status> runThreads(int world, Transport transport,
                                      const RankBody &body) {
  WorldOptions options;
  options.transport = transport;
  options.timeoutSeconds = 30;
  auto ranks = makeLocalWorld(world, options);
  std::vector<Status> results(static_cast<size_t>(world));
  if (!ranks) {
    results.assign(results.size(), ranks.error());
    return results;
  }
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r)
    threads.emplace_back([&, r] {
      auto at = static_cast<size_t>(r);
      results[at] = body(*(*ranks)[at]);
      if (!results[at])
        (*ranks)[at]->abort(results[at].error());
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

/// A world that is up and may be driven from one thread: its ranks take turns.
/// `setUp` makes a rank's groups and channels.
using Ranks = std::vector<std::unique_ptr<Communicator>>;
inline Result<Ranks> startedWorld(int world, Transport transport,
                                  const RankBody &setUp) {
  WorldOptions options;
  options.transport = transport;
  options.timeoutSeconds = 30;
  auto ranks = makeLocalWorld(world, options);
  RECKON_TRY(ranks.status());
  std::vector<Status> results(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (size_t r = 0; r < results.size(); ++r)
    threads.emplace_back([&, r] {
      results[r] = setUp(*(*ranks)[r]);
      if (results[r])
        results[r] = (*ranks)[r]->start();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &status : results)
    if (!status)
      return status.error();
  return ranks;
}

/// Gives every rank up to `turns` turns, until none moves; the first error.
inline Status takeTurns(Ranks &ranks, int turns = 1000) {
  int quiet = 0;
  for (int i = 0; i < turns && quiet < 20; ++i) {
    bool any = false;
    for (auto &rank : ranks) {
      auto moved = rank->progress();
      RECKON_TRY(moved);
      any |= *moved;
    }
    quiet = any ? 0 : quiet + 1;
  }
  return Status();
}

struct Exit {
  int status = 0;      // as of waitpid()
  double seconds = 0;  // after the start of the world
  std::string message; // of a failed Status
  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
  int signal() const { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }
};

/// The same in processes that meet over the rendezvous. A child ends with its
/// error's exit code.
inline std::vector<Exit>
runProcesses(int world, WorldOptions options, const RankBody &body,
             const std::function<void(int, pid_t)> &started = {}) {
  static int counter = 0;
  options.world = world;
  std::string tag =
      std::to_string(::getpid()) + "-" + std::to_string(++counter);
  if (options.master.empty())
    options.master = "unix:@reckon-test-" + tag;
  if (options.nonce.empty())
    options.nonce = tag;
  int64_t begin = nowNs();
  std::vector<pid_t> pids;
  std::vector<int> pipes;
  for (int r = 0; r < world; ++r) {
    int ends[2];
    if (::pipe2(ends, 0) != 0)
      std::abort();
    std::fflush(nullptr);
    pid_t pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      ::alarm(120); // a hang is a failure of the test, not of the machine
      options.rank = r;
      Status status;
      {
        auto joined = joinWorld(options);
        if (!joined) {
          status = joined.error();
        } else {
          status = body(**joined);
          if (!status)
            (*joined)->abort(status.error());
        }
      }
      int code = 0;
      if (!status) {
        code = static_cast<int>(status.error().code);
        const std::string &text = status.error().message;
        (void)!::write(ends[1], text.data(), text.size());
      }
      ::_exit(code);
    }
    ::close(ends[1]);
    pids.push_back(pid);
    pipes.push_back(ends[0]);
    if (started)
      started(r, pid);
  }
  std::vector<Exit> exits(static_cast<size_t>(world));
  for (int left = world; left > 0; --left) {
    int status = 0;
    pid_t pid = ::wait(&status);
    for (size_t r = 0; r < exits.size(); ++r) {
      if (pids[r] != pid)
        continue;
      exits[r].status = status;
      exits[r].seconds = 1e-9 * static_cast<double>(nowNs() - begin);
      char buffer[4096];
      ssize_t n = ::read(pipes[r], buffer, sizeof buffer);
      if (n > 0)
        exits[r].message.assign(buffer, static_cast<size_t>(n));
      ::close(pipes[r]);
    }
  }
  return exits;
}

} // namespace reckon::comm

#endif // RECKON_TESTS_UNIT_COMM_WORLDS_H
