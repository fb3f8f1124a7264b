//===- NcclOperations.cpp - what is put on streams ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Check.h"
#include "runtime/cuda/NcclCommunicator.h"

#include <algorithm>

namespace reckon::cuda {

namespace {

/// Every operation's: streams tell the rest.
constexpr comm::Ticket kPosted = {};

/// NCCL's element type of ours.
ncclDataType_t ncclType(comm::DType type) {
  switch (type) {
  case comm::DType::F32:
    return ncclFloat32;
  case comm::DType::BF16:
    return ncclBfloat16;
  case comm::DType::F16:
    return ncclFloat16;
  case comm::DType::F64:
    return ncclFloat64;
  case comm::DType::I32:
    return ncclInt32;
  case comm::DType::I64:
    return ncclInt64;
  default:
    return ncclUint8;
  }
}

ncclRedOp_t ncclReduction(comm::Reduction reduction) {
  return reduction == comm::Reduction::Max ? ncclMax : ncclSum;
}

size_t total(comm::Segments segments) {
  size_t sum = 0;
  for (const comm::Segment &segment : segments)
    sum += segment.count;
  return sum;
}

} // namespace

void NcclCommunicator::onStream(void *native) {
  stream_ = static_cast<cudaStream_t>(native);
}

Status NcclCommunicator::groupStart() {
  if (error_)
    return *error_;
  RECKON_TRY(checked(ncclGroupStart(), nullptr, "ncclGroupStart"));
  ++groupDepth_;
  return Status();
}

Status NcclCommunicator::groupEnd() {
  if (error_)
    return *error_;
  RECKON_CHECK(groupDepth_ > 0);
  --groupDepth_;
  ncclResult_t result = ncclGroupEnd();
  if (groupDepth_ > 0)
    return checked(result, nullptr, "ncclGroupEnd");
  std::vector<NcclHandle *> touched = std::exchange(touched_, {});
  RECKON_TRY(checked(result, touched.empty() ? nullptr : touched.front(),
                     "ncclGroupEnd"));
  // NCCL has put nothing on the streams until it says that it has.
  for (NcclHandle *handle : touched)
    if (Status status = await(*handle, "taking an operation"); !status)
      return fail(status.error());
  return Status();
}

Result<comm::Ticket> NcclCommunicator::post(Endpoint &endpoint, size_t segments,
                                            comm::DType type, size_t elements,
                                            const char *what,
                                            const Call &call) {
  RECKON_TRY(groupStart());
  NcclHandle &handle = *endpoint.handle;
  for (size_t i = 0; i < segments; ++i)
    RECKON_TRY(checked(call(handle, i), &handle, what));
  if (std::find(touched_.begin(), touched_.end(), &handle) == touched_.end())
    touched_.push_back(&handle);
  ++handle.posted;
  handle.last = std::string(what) + " of " + std::to_string(elements) + " x " +
                comm::name(type);
  RECKON_TRY(groupEnd());
  return kPosted;
}

Result<comm::Ticket> NcclCommunicator::copyAlone(comm::Segments in,
                                                 comm::Segments out,
                                                 comm::DType type) {
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].data != out[i].data && in[i].count > 0)
      if (Status status = RECKON_CUDA(cudaMemcpyAsync(
              out[i].data, in[i].data, in[i].count * comm::elementBytes(type),
              cudaMemcpyDeviceToDevice, stream_));
          !status)
        return fail(status.error());
  return kPosted;
}

Result<NcclCommunicator::Endpoint *>
NcclCommunicator::groupOf(comm::GroupId id, comm::Segments in,
                          comm::Segments out, bool gathers, bool scatters) {
  RECKON_TRY(open());
  RECKON_CHECK(static_cast<size_t>(id) < groups_.size());
  Endpoint &group = *groups_[static_cast<size_t>(id)];
  size_t n = group.what.ranks.size();
  bool fits = in.size() == out.size();
  for (size_t i = 0; fits && i < in.size(); ++i)
    fits = in[i].count * (gathers ? n : 1) == out[i].count * (scatters ? n : 1);
  if (!fits)
    return makeError(ExitCode::Internal,
                     "group '" + group.what.name +
                         "': the sizes of the inputs and outputs do not fit "
                         "the operation and the group's " +
                         std::to_string(n) + " ranks");
  return &group;
}

Result<NcclCommunicator::Endpoint *>
NcclCommunicator::channelOf(comm::ChannelId id, comm::Direction direction) {
  RECKON_TRY(open());
  RECKON_CHECK(static_cast<size_t>(id) < channels_.size());
  Endpoint &channel = *channels_[static_cast<size_t>(id)];
  if (channel.direction != direction)
    return makeError(ExitCode::Internal,
                     "channel '" + channel.what.name + "' runs the other way");
  return &channel;
}

Status NcclCommunicator::open() const {
  if (error_)
    return *error_;
  if (!started_)
    return makeError(ExitCode::Internal,
                     "an operation was posted before start() or after "
                     "finish()");
  return Status();
}

Result<comm::Ticket> NcclCommunicator::allReduce(comm::GroupId id,
                                                 comm::Segments in,
                                                 comm::Segments out,
                                                 comm::DType type,
                                                 comm::Reduction reduction) {
  auto group = groupOf(id, in, out, false, false);
  RECKON_TRY(group);
  if (!(*group)->handle)
    return copyAlone(in, out, type);
  return post(**group, in.size(), type, total(in), "ncclAllReduce",
              [&](NcclHandle &handle, size_t i) {
                return ncclAllReduce(in[i].data, out[i].data, in[i].count,
                                     ncclType(type), ncclReduction(reduction),
                                     handle.comm, stream_);
              });
}

Result<comm::Ticket> NcclCommunicator::allGather(comm::GroupId id,
                                                 comm::Segments in,
                                                 comm::Segments out,
                                                 comm::DType type) {
  auto group = groupOf(id, in, out, true, false);
  RECKON_TRY(group);
  if (!(*group)->handle)
    return copyAlone(in, out, type);
  return post(**group, in.size(), type, total(in), "ncclAllGather",
              [&](NcclHandle &handle, size_t i) {
                return ncclAllGather(in[i].data, out[i].data, in[i].count,
                                     ncclType(type), handle.comm, stream_);
              });
}

Result<comm::Ticket>
NcclCommunicator::reduceScatter(comm::GroupId id, comm::Segments in,
                                comm::Segments out, comm::DType type,
                                comm::Reduction reduction) {
  auto group = groupOf(id, in, out, false, true);
  RECKON_TRY(group);
  if (!(*group)->handle)
    return copyAlone(in, out, type);
  return post(**group, in.size(), type, total(in), "ncclReduceScatter",
              [&](NcclHandle &handle, size_t i) {
                return ncclReduceScatter(
                    in[i].data, out[i].data, out[i].count, ncclType(type),
                    ncclReduction(reduction), handle.comm, stream_);
              });
}

Result<comm::Ticket> NcclCommunicator::send(comm::ChannelId id,
                                            comm::Segments data,
                                            comm::DType type) {
  RECKON_CHECK(static_cast<size_t>(id) < channels_.size());
  Endpoint &channel = *channels_[static_cast<size_t>(id)];
  if (channel.direction != comm::Direction::Send)
    return makeError(ExitCode::Internal,
                     "channel '" + channel.what.name + "' runs the other way");
  return post(channel, data.size(), type, total(data), "ncclSend",
              [&](NcclHandle &handle, size_t i) {
                return ncclSend(data[i].data, data[i].count, ncclType(type), 1,
                                handle.comm, stream_);
              });
}

Result<comm::Ticket> NcclCommunicator::receive(comm::ChannelId id,
                                               comm::Segments data,
                                               comm::DType type) {
  RECKON_CHECK(static_cast<size_t>(id) < channels_.size());
  Endpoint &channel = *channels_[static_cast<size_t>(id)];
  if (channel.direction != comm::Direction::Receive)
    return makeError(ExitCode::Internal,
                     "channel '" + channel.what.name + "' runs the other way");
  return post(channel, data.size(), type, total(data), "ncclRecv",
              [&](NcclHandle &handle, size_t i) {
                return ncclRecv(data[i].data, data[i].count, ncclType(type), 0,
                                handle.comm, stream_);
              });
}

Status NcclCommunicator::registerBuffer(void *base, size_t bytes) {
  RECKON_TRY(open());
  for (const auto &handle : handles_) {
    RECKON_CHECK(!handle->buffer);
    RECKON_TRY(
        checked(ncclCommRegister(handle->comm, base, bytes, &handle->buffer),
                handle.get(), "ncclCommRegister"));
  }
  return Status();
}

} // namespace reckon::cuda
