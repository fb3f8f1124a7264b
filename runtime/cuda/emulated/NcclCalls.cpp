//===- NcclCalls.cpp - emulated operations and group calls ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/emulated/NcclComm.h"

#include <algorithm>
#include <optional>
#include <sched.h>

namespace reckon::cuda::emulated {

namespace {

/// Why a call was refused, for callers that have no communicator to ask.
thread_local std::string lastError;

/// What a group call has for one communicator.
struct GroupPart {
  std::shared_ptr<ncclComm> communicator;
  std::vector<NcclCall> calls;
  std::vector<cudaStream_t> streams;
};

/// The group call under way on this thread.
struct GroupCall {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<GroupPart> parts; ///< in the order of their first calls
};
thread_local GroupCall group;

std::optional<comm::DType> elementType(ncclDataType_t type) {
  switch (type) {
  case ncclFloat32:
    return comm::DType::F32;
  case ncclBfloat16:
    return comm::DType::BF16;
  case ncclFloat16:
    return comm::DType::F16;
  case ncclFloat64:
    return comm::DType::F64;
  case ncclInt32:
    return comm::DType::I32;
  case ncclInt64:
    return comm::DType::I64;
  case ncclUint8:
    return comm::DType::U8;
  default:
    return std::nullopt;
  }
}

/// Adds one call to the group under way, or is a group of its own.
ncclResult_t post(const char *what, NcclCall call, ncclDataType_t type,
                  ncclRedOp_t reduction, ncclComm_t handle,
                  cudaStream_t stream) {
  if (ncclResult_t refused = ready(handle, what)) {
    if (group.depth > 0)
      group.error = refused;
    return refused;
  }
  auto communicator = NcclDevice::get().find(handle);
  std::optional<comm::DType> element = elementType(type);
  bool message = call.kind == NcclCall::Send || call.kind == NcclCall::Receive;
  bool peerExists = call.peer >= 0 && call.peer < communicator->size &&
                    call.peer != communicator->rank &&
                    communicator->size <= kMaxMessageRanks;
  bool pointers =
      call.count == 0 || ((call.in || call.kind == NcclCall::Receive) &&
                          (call.out || call.kind == NcclCall::Send));
  if (!element || !stream || !pointers || (message && !peerExists) ||
      (reduction != ncclSum && reduction != ncclMax)) {
    if (group.depth > 0)
      group.error = ncclInvalidArgument;
    return refuse(ncclInvalidArgument,
                  std::string(what) + ": invalid or not emulated argument");
  }
  call.type = *element;
  call.reduction =
      reduction == ncclMax ? comm::Reduction::Max : comm::Reduction::Sum;

  bool alone = group.depth == 0;
  if (alone)
    (void)ncclGroupStart();
  auto part = std::find_if(
      group.parts.begin(), group.parts.end(),
      [&](const GroupPart &own) { return own.communicator == communicator; });
  if (part == group.parts.end())
    part = group.parts.insert(part, {communicator, {}, {}});
  part->calls.push_back(call);
  if (std::find(part->streams.begin(), part->streams.end(), stream) ==
      part->streams.end())
    part->streams.push_back(stream);
  return alone ? ncclGroupEnd() : ncclSuccess;
}

} // namespace

ncclResult_t refuse(ncclResult_t result, std::string text) {
  lastError = std::move(text);
  return result;
}

const std::string &lastRefusal() { return lastError; }

bool inGroupCall() { return group.depth > 0; }

ncclResult_t ready(const ncclComm *handle, const char *call) {
  auto communicator = NcclDevice::get().find(handle);
  if (!communicator)
    return refuse(ncclInvalidArgument, std::string(call) + ": no communicator");
  if (communicator->error != ncclSuccess)
    return refuse(communicator->error, communicator->errorText);
  if (communicator->busy() || communicator->finalized)
    return refuse(ncclInvalidUsage,
                  std::string(call) + ": communicator '" + communicator->name +
                      (communicator->finalized
                           ? "' is finalized"
                           : "' has a call in progress; ask "
                             "ncclCommGetAsyncError until it is complete"));
  return ncclSuccess;
}

ncclResult_t begun(ncclComm &communicator) {
  if (!communicator.blocking) {
    communicator.pollsInProgress = NcclDevice::get().faults.pollsInProgress;
    return ncclInProgress;
  }
  for (;;) {
    ncclResult_t result = communicator.settle();
    if (result != ncclInProgress)
      return result;
    ::sched_yield();
  }
}

// --- Operations -------------------------------------------------------------

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count,
                           ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream) {
  NcclCall call{NcclCall::AllReduce, in, out, count};
  return post("ncclAllReduce", call, type, reduction, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count,
                               ncclDataType_t type, ncclRedOp_t reduction,
                               ncclComm_t comm, cudaStream_t stream) {
  NcclCall call{NcclCall::ReduceScatter, in, out, count};
  return post("ncclReduceScatter", call, type, reduction, comm, stream);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  NcclCall call{NcclCall::AllGather, in, out, count};
  return post("ncclAllGather", call, type, ncclSum, comm, stream);
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream) {
  NcclCall call{NcclCall::Send, data, nullptr, count};
  call.peer = peer;
  return post("ncclSend", call, type, ncclSum, comm, stream);
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  NcclCall call{NcclCall::Receive, nullptr, data, count};
  call.peer = peer;
  return post("ncclRecv", call, type, ncclSum, comm, stream);
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0)
    return refuse(ncclInvalidUsage, "ncclGroupEnd: no group was started");
  if (--group.depth > 0)
    return ncclSuccess;
  std::vector<GroupPart> parts = std::exchange(group.parts, {});
  if (ncclResult_t error = std::exchange(group.error, ncclSuccess))
    return error;
  for (const GroupPart &part : parts)
    if (part.calls.size() > kMaxFused)
      return refuse(ncclInvalidUsage,
                    "ncclGroupEnd: more operations than are emulated");
  ncclResult_t result = ncclSuccess;
  for (GroupPart &part : parts) {
    ncclComm *self = part.communicator.get();
    self->launches.push_back([self, calls = std::move(part.calls),
                              streams = std::move(part.streams),
                              order = NcclDevice::get().order()] {
      return self->launch(calls, streams, order);
    });
    ncclResult_t state = begun(*self);
    if (result == ncclSuccess || state != ncclInProgress)
      result = state == ncclSuccess ? result : state;
  }
  return result;
}

} // namespace reckon::cuda::emulated
