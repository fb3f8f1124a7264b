//===- NcclOperation.cpp - emulated operations on streams -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/emulated/NcclComm.h"

namespace reckon::cuda::emulated {

namespace {

/// What a group call has for one communicator.
class FusedOperation : public ExternalOperation {
public:
  FusedOperation(std::shared_ptr<ncclComm> communicator,
                 std::shared_ptr<const std::vector<NcclCall>> calls,
                 std::shared_ptr<LaunchOrder> order)
      : communicator_(std::move(communicator)), calls_(std::move(calls)),
        order_(std::move(order)), number_(communicator_->issued++) {
    communicator_->unfinished.insert(number_);
    if (order_) {
      launch_ = order_->issued++;
      order_->waiting.insert(launch_);
    }
  }

  ~FusedOperation() override { leave(); }

  State advance() override {
    if (communicator_->aborted) { // its kernel sees the flag and ends
      leave();
      return State::Done;
    }
    if (communicator_->error != ncclSuccess)
      return State::Blocked;
    if (!begun_ && !begin())
      return State::Blocked;
    comm::Communicator &ranks = *communicator_->world.ranks;
    size_t before = ended_;
    while (ended_ < tickets_.size()) {
      Result<bool> done = ranks.test(tickets_[ended_]);
      if (!done) {
        communicator_->fail(done.error());
        return State::Blocked;
      }
      if (!*done)
        return ended_ > before ? State::Moved : State::Blocked;
      ++ended_;
    }
    leave();
    return State::Done;
  }

private:
  bool begin() {
    if (*communicator_->unfinished.begin() != number_)
      return false; // an earlier one of this communicator is not complete
    if (order_ && *order_->waiting.begin() != launch_)
      return false; // an earlier one of this device has not begun
    for (const NcclCall &call : *calls_) {
      Result<comm::Ticket> ticket = post(call);
      if (!ticket) {
        communicator_->fail(ticket.error());
        return false;
      }
      tickets_.push_back(*ticket);
    }
    if (order_)
      order_->waiting.erase(launch_);
    begun_ = communicator_->running = true;
    return true;
  }

  Result<comm::Ticket> post(const NcclCall &call) {
    NcclWorld &world = communicator_->world;
    auto n = static_cast<size_t>(communicator_->size);
    auto peer = static_cast<size_t>(call.peer);
    comm::Segment in{const_cast<void *>(call.in), call.count};
    comm::Segment out{call.out, call.count};
    switch (call.kind) {
    case NcclCall::AllReduce:
      return world.ranks->allReduce(world.all, {&in, 1}, {&out, 1}, call.type,
                                    call.reduction);
    case NcclCall::AllGather:
      out.count *= n;
      return world.ranks->allGather(world.all, {&in, 1}, {&out, 1}, call.type);
    case NcclCall::ReduceScatter:
      in.count *= n;
      return world.ranks->reduceScatter(world.all, {&in, 1}, {&out, 1},
                                        call.type, call.reduction);
    case NcclCall::Send:
      return world.ranks->send(world.to[peer], {&in, 1}, call.type);
    case NcclCall::Receive:
      break;
    }
    return world.ranks->receive(world.from[peer], {&out, 1}, call.type);
  }

  /// Makes way for those behind.
  void leave() {
    if (std::exchange(begun_, false))
      communicator_->running = false;
    communicator_->unfinished.erase(number_);
    if (order_)
      order_->waiting.erase(launch_);
  }

  std::shared_ptr<ncclComm> communicator_;
  std::shared_ptr<const std::vector<NcclCall>> calls_;
  std::shared_ptr<LaunchOrder> order_;
  uint64_t number_, launch_ = 0;
  bool begun_ = false;
  std::vector<comm::Ticket> tickets_;
  size_t ended_ = 0;
};

} // namespace

cudaError_t ncclComm::launch(const std::vector<NcclCall> &calls,
                             const std::vector<cudaStream_t> &streams,
                             const std::shared_ptr<LaunchOrder> &order) {
  cudaStream_t first = streams[0];
  for (size_t i = 1; i < streams.size(); ++i) {
    auto &[before, after] = joints[streams[i]];
    for (cudaEvent_t *event : {&before, &after})
      if (!*event)
        if (auto error =
                cudaEventCreateWithFlags(event, cudaEventDisableTiming))
          return error;
    if (auto error = cudaEventRecord(before, streams[i]))
      return error;
    if (auto error = cudaStreamWaitEvent(first, before))
      return error;
  }
  auto shared = std::make_shared<const std::vector<NcclCall>>(calls);
  auto factory = [self = shared_from_this(), shared, order] {
    return std::make_unique<FusedOperation>(self, shared, order);
  };
  if (auto error = enqueueExternal(first, factory))
    return error;
  for (size_t i = 1; i < streams.size(); ++i) {
    cudaEvent_t after = joints[streams[i]].second;
    if (auto error = cudaEventRecord(after, first))
      return error;
    if (auto error = cudaStreamWaitEvent(streams[i], after))
      return error;
  }
  return cudaSuccess;
}

} // namespace reckon::cuda::emulated
