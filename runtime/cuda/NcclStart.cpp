//===- NcclStart.cpp - making and trying NCCL communicators ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/Control.h"
#include "runtime/cuda/Check.h"
#include "runtime/cuda/NcclCommunicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace reckon::cuda {

namespace {

/// How long ranks that gave up wait for each other, to find out who is missing.
/// Rank 0 ends first, so its answer is everybody's.
constexpr double kGraceSeconds = 5;

/// What a channel's source sends first: another value for every channel.
int tokenOf(const NcclRequest &what) {
  uint32_t token = what.tag * 2654435761u + 1;
  for (unsigned char c : what.name)
    token = token * 31 + c;
  for (int rank : what.ranks)
    token = token * 31 + static_cast<uint32_t>(rank);
  return static_cast<int>(token & 0x7fffffff);
}

} // namespace

Status NcclCommunicator::connect() {
  RECKON_TRY(control_->start());
  RECKON_TRY(exchangeLists());
  if (layout_.members.empty())
    return Status();
  RECKON_TRY(makeParent());
  for (int round = 0; round < layout_.rounds; ++round)
    RECKON_TRY(split(round));
  if (!parentIsGroup_)
    RECKON_TRY(releaseParent());
  for (const auto &handle : handles_)
    RECKON_TRY(checkPlace(*handle));
  RECKON_TRY(preflight());
  // Nobody enters a step before everybody is connected.
  return control_->allGatherBytes("", options_.deadlineSeconds).status();
}

Status NcclCommunicator::exchangeLists() {
  std::vector<NcclRequest> requests;
  for (const auto *endpoints : {&groups_, &channels_})
    for (const auto &endpoint : *endpoints)
      if (endpoint->what.ranks.size() > 1)
        requests.push_back(endpoint->what);
  auto told = control_->allGatherBytes(encodeRequests(rank(), requests),
                                       options_.deadlineSeconds);
  RECKON_TRY(told.status());
  auto layout = layOut(*told);
  RECKON_TRY(layout.status());
  layout_ = std::move(*layout);
  return Status();
}

ncclConfig_t NcclCommunicator::configFor(const NcclHandle &handle) const {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 0;
  config.commName = handle.what.name.c_str();
  auto set = [](int &field, int value) {
    if (value > 0)
      field = value;
  };
  set(config.maxCTAs,
      handle.what.channel ? options_.channelMaxCtas : options_.groupMaxCtas);
  if (!handle.what.channel)
    set(config.minCTAs, options_.groupMinCtas);
  return config;
}

Status NcclCommunicator::makeParent() {
  handles_.push_back(std::make_unique<NcclHandle>());
  NcclHandle &parent = *handles_.back();
  parent.what.name = "all ranks";
  parent.what.ranks.resize(static_cast<size_t>(worldSize()));
  std::iota(parent.what.ranks.begin(), parent.what.ranks.end(), 0);
  for (const NcclMember &member : layout_.members)
    if (member.round < 0) {
      parent.what = member.what;
      parentIsGroup_ = true;
    }
  ncclUniqueId id;
  if (rank() == 0)
    RECKON_TRY(checked(ncclGetUniqueId(&id), nullptr, "ncclGetUniqueId"));
  std::string_view mine(id.internal, rank() == 0 ? sizeof id.internal : 0);
  auto ids = control_->allGatherBytes(mine, options_.deadlineSeconds);
  RECKON_TRY(ids.status());
  if ((*ids)[0].size() != sizeof id.internal)
    return makeError(ExitCode::Mismatch,
                     "expected an NCCL id from rank 0, got " +
                         std::to_string((*ids)[0].size()) +
                         " bytes; start all ranks with the same program");
  std::memcpy(id.internal, (*ids)[0].data(), sizeof id.internal);

  ncclConfig_t config = configFor(parent);
  RECKON_TRY(checked(
      ncclCommInitRankConfig(&parent.comm, worldSize(), id, rank(), &config),
      &parent, "ncclCommInitRankConfig"));
  RECKON_TRY(await(parent, "all its ranks"));
  if (parentIsGroup_)
    serve(parent);
  return Status();
}

/// Gives a communicator to the group or channel that it was made for.
void NcclCommunicator::serve(NcclHandle &handle) {
  for (const auto *endpoints : {&groups_, &channels_})
    for (const auto &endpoint : *endpoints)
      if (endpoint->what == handle.what)
        endpoint->handle = &handle;
}

Status NcclCommunicator::split(int round) {
  int color = NCCL_SPLIT_NOCOLOR, key = 0;
  // NCCL writes the child when it is made, so it has its place from now on.
  handles_.push_back(std::make_unique<NcclHandle>());
  NcclHandle &parent = *handles_.front(), &child = *handles_.back();
  for (const NcclMember &member : layout_.members) {
    const std::vector<int> &ranks = member.what.ranks;
    auto self = std::find(ranks.begin(), ranks.end(), rank());
    if (member.round != round || self == ranks.end())
      continue;
    color = member.color;
    key = static_cast<int>(self - ranks.begin());
    child.what = member.what;
  }
  ncclConfig_t config = configFor(child);
  RECKON_TRY(
      checked(ncclCommSplit(parent.comm, color, key, &child.comm, &config),
              &parent, "ncclCommSplit"));
  RECKON_TRY(await(parent, "split " + std::to_string(round + 1) + " of " +
                               std::to_string(layout_.rounds)));
  if (color == NCCL_SPLIT_NOCOLOR) {
    handles_.pop_back();
    return Status();
  }
  if (!child.comm)
    return makeError(ExitCode::Environment,
                     child.text() +
                         ": expected ncclCommSplit to make it, got none; set "
                         "NCCL_DEBUG=WARN and see the logs");
  RECKON_TRY(await(child, "its ranks"));
  serve(child);
  return Status();
}

Status NcclCommunicator::checkPlace(NcclHandle &handle) {
  int count = 0, place = 0;
  RECKON_TRY(
      checked(ncclCommCount(handle.comm, &count), &handle, "ncclCommCount"));
  RECKON_TRY(checked(ncclCommUserRank(handle.comm, &place), &handle,
                     "ncclCommUserRank"));
  const std::vector<int> &ranks = handle.what.ranks;
  if (static_cast<size_t>(count) != ranks.size() ||
      ranks[static_cast<size_t>(place)] != rank())
    return makeError(
        ExitCode::Internal,
        handle.text() + ": expected " + std::to_string(ranks.size()) +
            " ranks in that order, got place " + std::to_string(place) +
            " of " + std::to_string(count));
  return Status();
}

/// The splits share nothing with it, and its buffers are memory of the GPU.
Status NcclCommunicator::releaseParent() {
  NcclHandle &parent = *handles_.front();
  RECKON_TRY(
      checked(ncclCommFinalize(parent.comm), &parent, "ncclCommFinalize"));
  RECKON_TRY(await(parent, "its end"));
  RECKON_TRY(checked(ncclCommDestroy(std::exchange(parent.comm, nullptr)),
                     nullptr, "ncclCommDestroy"));
  handles_.erase(handles_.begin());
  return Status();
}

/// Every group adds its positions up, every channel carries a value of its own:
/// connections that NCCL makes at the first use are made now, and a wrong
/// result is an error of the machine and not of the training. One stream takes
/// them in the order of the layout, a projection of one order of all, so they
/// cannot block each other.
Status NcclCommunicator::preflight() {
  size_t count = handles_.size();
  if (count == 0)
    return Status();
  cudaStream_t stream = nullptr;
  int *device = nullptr, *host = nullptr;
  Status status =
      RECKON_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (status)
    status = RECKON_CUDA(cudaMalloc(&device, count * sizeof(int)));
  if (status)
    status = RECKON_CUDA(cudaMallocHost(&host, count * sizeof(int)));
  if (status)
    status = runPreflight(device, host, stream);
  if (!status)
    (void)fail(status.error()); // ends what may be on the stream
  (void)cudaFreeHost(host);
  (void)cudaFree(device);
  if (stream)
    (void)cudaStreamDestroy(stream);
  return status;
}

Status NcclCommunicator::runPreflight(int *device, int *host,
                                      cudaStream_t stream) {
  size_t count = handles_.size();
  std::vector<int> expected(count);
  for (size_t i = 0; i < count; ++i) {
    const NcclRequest &what = handles_[i]->what;
    auto n = static_cast<int>(what.ranks.size());
    auto self = std::find(what.ranks.begin(), what.ranks.end(), rank());
    auto position = static_cast<int>(self - what.ranks.begin());
    bool receives = what.channel && position == 1;
    host[i] = receives ? -1 : what.channel ? tokenOf(what) : position + 1;
    expected[i] = what.channel ? tokenOf(what) : n * (n + 1) / 2;
  }
  size_t bytes = count * sizeof(int);
  RECKON_TRY(RECKON_CUDA(
      cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream)));
  for (size_t i = 0; i < count; ++i) {
    NcclHandle &handle = *handles_[i];
    bool sends = handle.what.channel && handle.what.ranks[0] == rank();
    ncclResult_t result =
        !handle.what.channel
            ? ncclAllReduce(device + i, device + i, 1, ncclInt32, ncclSum,
                            handle.comm, stream)
        : sends ? ncclSend(device + i, 1, ncclInt32, 1, handle.comm, stream)
                : ncclRecv(device + i, 1, ncclInt32, 0, handle.comm, stream);
    RECKON_TRY(checked(result, &handle, "its first operation"));
    RECKON_TRY(await(handle, "its first operation"));
  }
  RECKON_TRY(RECKON_CUDA(
      cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream)));
  RECKON_TRY(awaitUntil(
      [&]() -> Result<bool> {
        cudaError_t state = cudaStreamQuery(stream);
        if (state != cudaErrorNotReady)
          RECKON_TRY(cuda::checked(state, "cudaStreamQuery"));
        RECKON_TRY(checkErrors());
        return state == cudaSuccess;
      },
      "the first operations of all groups and channels"));
  for (size_t i = 0; i < count; ++i)
    if (host[i] != expected[i])
      return makeError(
          ExitCode::Environment,
          handles_[i]->text() + ": expected " + std::to_string(expected[i]) +
              " of its first operation, got " + std::to_string(host[i]) +
              "; a GPU or a link is broken, see the system log");
  return Status();
}

// --- Waiting ----------------------------------------------------------------

Status NcclCommunicator::await(NcclHandle &handle, const std::string &what) {
  return awaitUntil(
      [&]() -> Result<bool> {
        ncclResult_t state = ncclSuccess;
        RECKON_TRY(checked(ncclCommGetAsyncError(handle.comm, &state), &handle,
                           "ncclCommGetAsyncError"));
        RECKON_TRY(checked(state, &handle, what.c_str()));
        return state == ncclSuccess;
      },
      handle.text() + ": " + what);
}

Status NcclCommunicator::awaitUntil(const std::function<Result<bool>()> &done,
                                    const std::string &what) {
  comm::Deadline deadline(options_.deadlineSeconds);
  int64_t begin = comm::nowNs();
  double reported = 0;
  for (;;) {
    Result<bool> ended = done();
    RECKON_TRY(ended);
    if (*ended)
      return Status();
    Result<bool> moved = control_->progress();
    RECKON_TRY(moved);
    double waited = 1e-9 * static_cast<double>(comm::nowNs() - begin);
    if (waited - reported > options_.reportSeconds && options_.report) {
      reported = waited;
      options_.report("waiting for " + what + ", " +
                      std::to_string(static_cast<int>(waited)) + " s");
    }
    if (deadline.passed())
      return timedOut(what);
    idle();
  }
}

/// NCCL does not tell for whom it waits. But whoever waits gives up about now
/// and comes here, so who does not come is missing.
Error NcclCommunicator::timedOut(const std::string &what) {
  std::string text = "expected " + what + " within " +
                     std::to_string(options_.deadlineSeconds) + " s, got none";
  double grace = std::min(kGraceSeconds, options_.deadlineSeconds);
  auto there = control_->allGatherBytes(text, rank() == 0 ? grace : 2 * grace);
  if (!there)
    return makeError(ExitCode::Environment,
                     text + "; " + there.error().message);
  return makeError(ExitCode::Environment,
                   text + "; all ranks are there, so the GPUs do not reach "
                          "each other: set NCCL_DEBUG=INFO, and "
                          "NCCL_SOCKET_IFNAME to the right network");
}

} // namespace reckon::cuda
