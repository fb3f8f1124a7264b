//===- NcclCommunicator.cpp - life, progress and errors
//--------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/NcclCommunicator.h"

#include "runtime/comm/Control.h"
#include "runtime/cuda/Check.h"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <sstream>
#include <time.h>

namespace reckon::cuda {

namespace {

constexpr int64_t kCheckNs = 1'000'000;
/// How long an error of NCCL waits for the control plane to tell which rank
/// failed first.
constexpr double kVerdictSeconds = 0.5;

const char *resultName(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "ncclSuccess";
  case ncclUnhandledCudaError:
    return "ncclUnhandledCudaError";
  case ncclSystemError:
    return "ncclSystemError";
  case ncclInternalError:
    return "ncclInternalError";
  case ncclInvalidArgument:
    return "ncclInvalidArgument";
  case ncclInvalidUsage:
    return "ncclInvalidUsage";
  case ncclRemoteError:
    return "ncclRemoteError";
  case ncclInProgress:
    return "ncclInProgress";
  default:
    return "an unknown result";
  }
}

} // namespace

std::string ncclText(ncclResult_t result) {
  return std::string(resultName(result)) + " (" + ncclGetErrorString(result) +
         ")";
}

std::string NcclHandle::text() const {
  return (what.channel ? "channel '" : "group '") + what.name + "' (" +
         comm::listRanks(what.ranks) + ")";
}

NcclCommunicator::NcclCommunicator(std::unique_ptr<comm::Communicator> control,
                                   NcclOptions options)
    : control_(std::move(control)), options_(std::move(options)) {}

NcclCommunicator::~NcclCommunicator() { abortAll(); }

// --- Set-up -----------------------------------------------------------------

Result<comm::GroupId> NcclCommunicator::createGroup(const std::string &name,
                                                    std::vector<int> ranks) {
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  bool distinct =
      std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  bool known =
      std::any_of(groups_.begin(), groups_.end(),
                  [&](const auto &group) { return group->what.name == name; });
  if (started_ || known || !distinct || sorted.empty() || sorted.front() < 0 ||
      sorted.back() >= worldSize() ||
      !std::binary_search(sorted.begin(), sorted.end(), rank()))
    return makeError(ExitCode::Internal,
                     "group '" + name +
                         "': expected, before the start, a new name and "
                         "distinct ranks below " +
                         std::to_string(worldSize()) + " with rank " +
                         std::to_string(rank()) + " among them");
  groups_.push_back(std::make_unique<Endpoint>());
  groups_.back()->what = {false, name, 0, std::move(ranks)};
  return static_cast<comm::GroupId>(groups_.size() - 1);
}

Result<comm::ChannelId>
NcclCommunicator::createChannel(const std::string &name, int peer,
                                comm::Direction direction, uint32_t tag) {
  if (started_ || peer < 0 || peer >= worldSize() || peer == rank())
    return makeError(ExitCode::Internal,
                     "channel '" + name +
                         "': expected, before the start, another rank below " +
                         std::to_string(worldSize()) + ", got rank " +
                         std::to_string(peer));
  bool sends = direction == comm::Direction::Send;
  channels_.push_back(std::make_unique<Endpoint>());
  channels_.back()->what = {true, name, tag,
                            sends ? std::vector{rank(), peer}
                                  : std::vector{peer, rank()}};
  channels_.back()->direction = direction;
  return static_cast<comm::ChannelId>(channels_.size() - 1);
}

Status NcclCommunicator::start() {
  if (error_)
    return *error_;
  RECKON_CHECK(!started_);
  if (Status status = connect(); !status)
    return fail(status.error());
  started_ = true;
  return Status();
}

// --- Driving ----------------------------------------------------------------

Result<bool> NcclCommunicator::test(comm::Ticket) {
  if (error_)
    return *error_;
  return true;
}

Result<bool> NcclCommunicator::progress() {
  if (error_)
    return *error_;
  Result<bool> moved = control_->progress();
  if (!moved)
    return fail(moved.error());
  int64_t now = comm::nowNs();
  if (started_ && now - lastCheck_ > kCheckNs) {
    lastCheck_ = now;
    RECKON_TRY(checkErrors());
  }
  if (*moved)
    idleTurns_ = 0;
  return moved;
}

/// Nothing wakes a host that waits for a GPU, so it looks often.
void NcclCommunicator::idle() {
  constexpr int yields = 200;
  constexpr long sleepNs = 50'000;
  if (++idleTurns_ < yields) {
    ::sched_yield();
    return;
  }
  timespec pause{0, sleepNs};
  ::nanosleep(&pause, nullptr);
}

Status NcclCommunicator::checkErrors() {
  for (const auto &handle : handles_) {
    ncclResult_t state = ncclSuccess;
    RECKON_TRY(checked(ncclCommGetAsyncError(handle->comm, &state),
                       handle.get(), "ncclCommGetAsyncError"));
    if (state != ncclInProgress)
      RECKON_TRY(checked(state, handle.get(), "an operation"));
  }
  return Status();
}

/// What a call of NCCL gave, as a Status. The control plane may know better who
/// failed: a peer that died shows here as an error of the network.
Status NcclCommunicator::checked(ncclResult_t result, NcclHandle *handle,
                                 const char *call) {
  if (result == ncclSuccess || result == ncclInProgress)
    return Status();
  const char *last = ncclGetLastError(handle ? handle->comm : nullptr);
  std::string text =
      (handle ? handle->text() + ": " : "") + "expected " + call +
      " to succeed, got " + ncclText(result) +
      (last && *last ? std::string(", ") + last : "") +
      "; set NCCL_DEBUG=WARN and see the logs of " +
      (handle ? comm::listRanks(handle->what.ranks) : "all ranks");
  comm::Deadline deadline(kVerdictSeconds);
  while (!deadline.passed()) {
    Result<bool> moved = control_->progress();
    if (!moved)
      return fail(moved.error());
    if (!*moved)
      control_->idle();
  }
  bool remote = result == ncclRemoteError;
  return fail(makeError(remote ? ExitCode::DeadPeer : ExitCode::Environment,
                        std::move(text)));
}

// --- Control ----------------------------------------------------------------

Result<std::vector<std::string>>
NcclCommunicator::allGatherBytes(std::string_view mine, double timeout) {
  if (error_)
    return *error_;
  auto all = control_->allGatherBytes(mine, timeout);
  if (!all)
    return fail(all.error());
  return all;
}

/// All ranks must abort, and an abort may wait for kernels to end: so the
/// others are told first.
Error NcclCommunicator::fail(const Error &error) {
  if (error_)
    return *error_;
  error_ = error;
  control_->abort(error);
  abortAll();
  return error;
}

void NcclCommunicator::abortAll() {
  while (groupDepth_ > 0) {
    --groupDepth_;
    (void)ncclGroupEnd();
  }
  touched_.clear();
  // The parent first: a split under way may still give its child.
  for (const auto &handle : handles_)
    if (ncclComm_t comm = std::exchange(handle->comm, nullptr))
      (void)ncclCommAbort(comm);
}

void NcclCommunicator::abort(const Error &reason) { (void)fail(reason); }

Status NcclCommunicator::finish() {
  RECKON_TRY(allGatherBytes("", 0).status());
  for (const auto &handle : handles_) {
    if (void *buffer = std::exchange(handle->buffer, nullptr))
      RECKON_TRY(checked(ncclCommDeregister(handle->comm, buffer), handle.get(),
                         "ncclCommDeregister"));
    RECKON_TRY(checked(ncclCommFinalize(handle->comm), handle.get(),
                       "ncclCommFinalize"));
  }
  for (const auto &handle : handles_) {
    if (Status status = await(*handle, "its end"); !status)
      return fail(status.error());
    RECKON_TRY(checked(ncclCommDestroy(std::exchange(handle->comm, nullptr)),
                       nullptr, "ncclCommDestroy"));
  }
  handles_.clear();
  started_ = false;
  return control_->finish();
}

std::string NcclCommunicator::describePending() const {
  std::ostringstream out;
  for (const auto &handle : handles_)
    if (handle->posted > 0)
      out << handle->text() << ": " << handle->posted
          << " operations posted, the last " << handle->last << '\n';
  return out.str();
}

} // namespace reckon::cuda
