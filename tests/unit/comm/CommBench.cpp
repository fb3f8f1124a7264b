//===- CommBench.cpp - bandwidth and latency of the CPU transport ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// usage: reckon-comm-bench [RANKS...]        (default: 2 4)
//
// Prints, for every transport, the bus bandwidth of all_reduce, that is bytes
// * 2 (P - 1) / P / time, of the best and the median repetition, and the time
// of small operations.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/comm/Worlds.h"

#include <algorithm>
#include <cstdlib>

using namespace reckon;
using namespace reckon::comm;

namespace {

struct Times {
  double best, median;
};

template <typename F>
Result<Times> measure(int repetitions, F &&post, Communicator &comm) {
  std::vector<double> seconds;
  for (int i = 0; i < repetitions + 2; ++i) {
    int64_t begin = nowNs();
    Result<Ticket> ticket = post();
    RECKON_TRY(ticket);
    RECKON_TRY(comm.wait(*ticket));
    if (i >= 2) // the first two warm up
      seconds.push_back(1e-9 * static_cast<double>(nowNs() - begin));
  }
  std::sort(seconds.begin(), seconds.end());
  return Times{seconds.front(), seconds[seconds.size() / 2]};
}

Status benchRank(Communicator &comm, Transport transport) {
  auto world = comm.createGroup("world", allRanks(comm.worldSize()));
  RECKON_TRY(world);
  RECKON_TRY(comm.start());
  double ranks = comm.worldSize();
  for (size_t bytes :
       {size_t(4), size_t(4) << 10, size_t(64) << 10, size_t(1) << 20,
        size_t(4) << 20, size_t(16) << 20, size_t(64) << 20}) {
    std::vector<float> data(bytes / 4, 1.0f);
    Segment segment{data.data(), data.size()};
    int repetitions = bytes <= 65536 ? 300 : bytes <= (4u << 20) ? 30 : 6;
    auto times = measure(
        repetitions,
        [&] {
          return comm.allReduce(*world, {&segment, 1}, {&segment, 1},
                                DType::F32, Reduction::Max);
        },
        comm);
    RECKON_TRY(times);
    if (comm.rank() != 0)
      continue;
    double factor = static_cast<double>(bytes) * 2 * (ranks - 1) / ranks * 1e-9;
    std::printf("%-6s P=%d  %9zu B  best %9.1f us  median %9.1f us  "
                "bus %6.2f / %6.2f GB/s\n",
                name(transport), comm.worldSize(), bytes, times->best * 1e6,
                times->median * 1e6, factor / times->best,
                factor / times->median);
    std::fflush(stdout);
  }
  return comm.finish();
}

} // namespace

int main(int argc, char **argv) {
  std::vector<int> worlds;
  for (int i = 1; i < argc; ++i)
    worlds.push_back(std::atoi(argv[i]));
  if (worlds.empty())
    worlds = {2, 4};
  int code = 0;
  for (int world : worlds)
    for (Transport transport :
         {Transport::Ring, Transport::Socket, Transport::Tcp}) {
      WorldOptions options;
      options.transport = transport;
      auto exits = runProcesses(world, options, [&](Communicator &comm) {
        return benchRank(comm, transport);
      });
      for (const Exit &exit : exits)
        if (exit.status != 0) {
          std::fprintf(stderr, "reckon-comm-bench: %s\n", exit.message.c_str());
          code = 1;
        }
    }
  return code;
}
