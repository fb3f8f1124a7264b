//===- CalibrateCollectives.cpp - all-reduces between two processes -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Calibrate.h"
#include "runtime/comm/Rendezvous.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

using namespace reckon;
using namespace reckon::calibrate;
using namespace reckon::comm;

namespace {

constexpr size_t kLargeElements = 4u << 20; // 16 MiB of fp32
constexpr int kLeastRuns = 5;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Median seconds of an all-reduce of `elements`. Both ranks run equally many:
/// rank 0 tells the other how many are left by an extra element.
Result<double> allReduceTime(Communicator &world, GroupId group,
                             size_t elements, double budget) {
  std::vector<float> data(elements + 1, 1.0f);
  std::vector<double> times;
  double begin = now();
  bool more = true;
  while (more) {
    // Rank 0 asks for one more run with a positive sum.
    data.back() =
        world.rank() == 0 && (now() - begin < budget ||
                              static_cast<int>(times.size()) < kLeastRuns)
            ? 1.0f
            : 0.0f;
    Segment segment{data.data(), data.size()};
    double start = now();
    Result<Ticket> ticket =
        world.allReduce(group, Segments(&segment, 1), Segments(&segment, 1),
                        DType::F32, Reduction::Max);
    RECKON_TRY(ticket.status());
    RECKON_TRY(world.wait(*ticket));
    times.push_back(now() - start);
    more = data.back() > 0;
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2,
                   times.end());
  return times[times.size() / 2];
}

Status runRank(int rank, const std::string &master, double seconds,
               double &large, double &small) {
  WorldOptions options;
  options.rank = rank;
  options.world = 2;
  options.master = master;
  options.nonce = master;
  options.timeoutSeconds = 30;
  Result<std::unique_ptr<Communicator>> world = joinWorld(options);
  RECKON_TRY(world.status());
  Result<GroupId> group = (*world)->createGroup("calibrate", {0, 1});
  RECKON_TRY(group.status());
  RECKON_TRY((*world)->start());
  Result<double> big = allReduceTime(**world, *group, kLargeElements, seconds);
  RECKON_TRY(big.status());
  Result<double> tiny = allReduceTime(**world, *group, 1, seconds / 2);
  RECKON_TRY(tiny.status());
  large = *big;
  small = *tiny;
  return (*world)->finish();
}

} // namespace

Status calibrate::measureCollectives(const Accelerator &nominal, double seconds,
                                     Calibration &result) {
  std::string master = "unix:@reckon-calibrate-" + std::to_string(getpid());
  double large = 0, small = 0;
  pid_t child = fork();
  if (child < 0)
    return makeError(ExitCode::Environment,
                     "cannot start a second process to measure collectives; "
                     "check the limit on processes");
  if (child == 0) {
    double ignored = 0;
    _exit(runRank(1, master, seconds, ignored, ignored).ok() ? 0 : 1);
  }
  Status status = runRank(0, master, seconds, large, small);
  int ended = 0;
  waitpid(child, &ended, 0);
  RECKON_TRY(status);
  if (ended != 0)
    return makeError(ExitCode::Environment,
                     "the second process that measures collectives failed; "
                     "run reckon doctor");
  // An all-reduce of two ranks is two passes of half of the bytes each.
  double bytes = 4.0 * static_cast<double>(kLargeElements);
  double rate = bytes / std::max(1e-9, large - small);
  result.measurements.push_back(
      {"all_reduce 16 MiB, 2 processes", rate / 1e9, "GB/s"});
  result.measurements.push_back(
      {"all_reduce 8 B, 2 processes", 1e6 * small, "us"});
  double share = rate / (nominal.intraNodeBwGbs * 1e9);
  result.constants.emplace_back("intra", share);
  // One hop of a ring; the rest of a larger ring is more of them.
  result.constants.emplace_back("intra_latency", 0.0);
  result.constants.emplace_back("intra_hop", small / 2);
  return Status();
}
