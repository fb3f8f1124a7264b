//===- NcclComm.cpp - an emulated communicator's life ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/emulated/NcclComm.h"

#include "runtime/comm/Rendezvous.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sched.h>
#include <sstream>
#include <time.h>
#include <unistd.h>

namespace reckon::cuda::emulated {

// --- Worlds and jobs --------------------------------------------------------

std::string NcclWorld::freshAddress() {
  std::random_device random;
  std::ostringstream text;
  text << "unix:@reckon-nccl-" << ::getpid() << '-' << std::hex << random()
       << random();
  return text.str();
}

Result<NcclWorld> NcclWorld::join(const std::string &address, int rank,
                                  int size, const Cancel *cancel) {
  comm::WorldOptions options;
  options.rank = rank;
  options.world = size;
  options.master = address;
  options.nonce = address;
  options.timeoutSeconds = 0; // NCCL has no deadline, its callers have one
  options.cancel = cancel;
  options.maxOperations = kMaxFused;
  options.maxSegments = 1;
  Result<comm::Transport> transport = comm::transportFromEnvironment();
  RECKON_TRY(transport.status());
  options.transport = *transport;
  auto joined = comm::joinWorld(options);
  RECKON_TRY(joined.status());

  NcclWorld world;
  world.ranks = std::move(*joined);
  std::vector<int> everybody;
  for (int r = 0; r < size; ++r)
    everybody.push_back(r);
  Result<comm::GroupId> all = world.ranks->createGroup("all", everybody);
  RECKON_TRY(all.status());
  world.all = *all;
  world.to.resize(static_cast<size_t>(size));
  world.from.resize(static_cast<size_t>(size));
  for (int peer = 0; peer < size && size <= kMaxMessageRanks; ++peer) {
    if (peer == rank)
      continue;
    auto name = [](int source, int target) {
      return std::to_string(source) + " to " + std::to_string(target);
    };
    auto to = world.ranks->createChannel(name(rank, peer), peer,
                                         comm::Direction::Send, 0);
    RECKON_TRY(to.status());
    auto from = world.ranks->createChannel(name(peer, rank), peer,
                                           comm::Direction::Receive, 0);
    RECKON_TRY(from.status());
    world.to[static_cast<size_t>(peer)] = *to;
    world.from[static_cast<size_t>(peer)] = *from;
  }
  RECKON_TRY(world.ranks->start());
  return world;
}

NcclJob::NcclJob(std::function<Status()> body)
    : thread_([this, body = std::move(body)] {
        status_ = body();
        ended_ = true;
      }) {}

// --- One communicator -------------------------------------------------------

ncclComm::~ncclComm() {
  cancel = true;
  if (child)
    child->cancel = true;
  job.reset();
}

void ncclComm::fail(ncclResult_t result, std::string text) {
  if (error != ncclSuccess)
    return;
  error = result;
  errorText = std::move(text);
}

void ncclComm::fail(const Error &failure) {
  fail(failure.code == ExitCode::DeadPeer   ? ncclRemoteError
       : failure.code == ExitCode::Mismatch ? ncclInvalidUsage
                                            : ncclSystemError,
       failure.message);
}

ncclResult_t ncclComm::settle() {
  if (error != ncclSuccess)
    return error;
  if (stalled || (job && !job->ended()))
    return ncclInProgress;
  if (job) {
    Status status = job->status();
    job.reset();
    if (!status) {
      child.reset();
      fail(status.error());
      return error;
    }
    std::exchange(whenEnded, nullptr)();
  }
  if (pollsInProgress > 0) {
    --pollsInProgress;
    return ncclInProgress;
  }
  if (finalized && world.ranks) { // until all that was issued is complete
    if (unfinished.empty()) {
      job = std::make_unique<NcclJob>([this] { return world.ranks->finish(); });
      whenEnded = [this] { world.ranks.reset(); };
    }
    return ncclInProgress;
  }
  for (const auto &launch : std::exchange(launches, {}))
    if (cudaError_t result = launch(); result != cudaSuccess)
      fail(ncclUnhandledCudaError,
           std::string("Cuda failure '") + cudaGetErrorString(result) + "'");
  return error;
}

bool ncclComm::progress() {
  if (job || !world.ranks || error != ncclSuccess)
    return false;
  Result<bool> moved = world.ranks->progress();
  if (!moved) {
    fail(moved.error());
    return true;
  }
  return *moved;
}

void ncclComm::abort() {
  aborted = cancel = true;
  if (child)
    child->cancel = true;
  job.reset();
  child.reset();
  launches.clear();
  if (world.ranks)
    world.ranks->abort(makeError(ExitCode::DeadPeer,
                                 "rank " + std::to_string(rank) +
                                     " stopped: it aborted the communicator"));
  world.ranks.reset();
}

// --- The communicators of a device ------------------------------------------

NcclDevice &NcclDevice::get() {
  thread_local NcclDevice device;
  return device;
}

std::shared_ptr<LaunchOrder> NcclDevice::order() {
  const char *implicit = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  return implicit && std::strcmp(implicit, "1") == 0 ? order_ : nullptr;
}

std::shared_ptr<ncclComm> NcclDevice::find(const ncclComm *handle) const {
  for (const auto &communicator : communicators)
    if (communicator.get() == handle)
      return communicator;
  RECKON_CHECK(!handle && "a communicator of this thread, not yet destroyed");
  return nullptr;
}

void NcclDevice::add(const std::shared_ptr<ncclComm> &communicator) {
  if (communicators.empty())
    hook_ = addProgress({[this] { return poll(); }, [this] { idle(); }});
  communicators.push_back(communicator);
}

void NcclDevice::remove(const ncclComm *communicator) {
  std::erase_if(communicators,
                [&](const auto &own) { return own.get() == communicator; });
  if (communicators.empty())
    removeProgress(hook_);
}

/// Communicators with operations at every turn; the others from time to time,
/// for what they tell about their peers.
bool NcclDevice::poll() {
  constexpr int64_t fullPollNs = 2'000'000;
  int64_t now = comm::nowNs();
  bool full = now - lastFullPoll_ > fullPollNs;
  if (full)
    lastFullPoll_ = now;
  bool moved = false;
  for (const auto &communicator : communicators)
    if (full || communicator->running)
      moved |= communicator->progress();
  if (moved)
    idleTurns_ = 0;
  return moved;
}

void NcclDevice::idle() {
  constexpr int yields = 100;
  constexpr long sleepNs = 100'000;
  if (++idleTurns_ < yields) {
    ::sched_yield();
    return;
  }
  timespec pause{0, sleepNs};
  ::nanosleep(&pause, nullptr);
}

} // namespace reckon::cuda::emulated
