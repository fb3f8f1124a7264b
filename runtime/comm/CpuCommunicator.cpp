//===- CpuCommunicator.cpp - the communicator over sockets and rings ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/CpuCommunicator.h"

#include "runtime/comm/Wiring.h"

#include <algorithm>
#include <sched.h>
#include <sstream>

namespace reckon::comm {
namespace {

constexpr int kSpins = 16;   // progress() turns before the first yield
constexpr int kYields = 200; // and before the first sleep
constexpr int kSleepMs = 20;
constexpr int64_t kCheckNs = 2'000'000;
/// How long a closed data connection waits for the control star to tell which
/// rank failed first.
constexpr int64_t kVerdictNs = 500'000'000;

Error usageError(const std::string &text) {
  return makeError(ExitCode::Internal, text);
}

/// What the others end with when a rank stops for `code`: verdicts about the
/// whole job are shared, a rank's own trouble makes it a dead peer.
ExitCode sharedCode(ExitCode code) {
  switch (code) {
  case ExitCode::PreemptedSaved:
  case ExitCode::Interrupted:
  case ExitCode::Hang:
  case ExitCode::Mismatch:
  case ExitCode::DeadPeer:
  case ExitCode::SpikeGuard:
  case ExitCode::SilentCorruption:
    return code;
  default:
    return ExitCode::DeadPeer;
  }
}

} // namespace

std::unique_ptr<Communicator> makeCpuCommunicator(const WorldOptions &options,
                                                  Meeting meeting) {
  return std::make_unique<CpuCommunicator>(options, std::move(meeting));
}

CpuCommunicator::CpuCommunicator(const WorldOptions &options, Meeting meeting)
    : options_(options), control_(std::move(meeting.control)),
      wiring_(std::move(meeting.wiring)) {
  operations_.resize(options_.maxOperations);
  free_.setCapacity(options_.maxOperations);
  for (uint32_t slot = 0; slot < options_.maxOperations; ++slot) {
    operations_[slot].map.reserve(options_.maxSegments);
    free_.push(slot);
  }
}

// --- Set-up -----------------------------------------------------------------

Link &CpuCommunicator::linkTo(int peer) {
  auto at = std::lower_bound(
      links_.begin(), links_.end(), peer,
      [](const auto &link, int rank) { return link->peer() < rank; });
  if (at == links_.end() || (*at)->peer() != peer)
    at = links_.insert(
        at, std::make_unique<Link>(rank(), peer, Fd(), SharedRing()));
  return **at;
}

Result<GroupId> CpuCommunicator::createGroup(const std::string &name,
                                             std::vector<int> ranks) {
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  bool distinct =
      std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (started_ || !distinct || sorted.empty() || sorted.front() < 0 ||
      sorted.back() >= worldSize() ||
      !std::binary_search(sorted.begin(), sorted.end(), rank()))
    return usageError("group '" + name +
                      "': expected, before the start, distinct ranks below " +
                      std::to_string(worldSize()) + " with rank " +
                      std::to_string(rank()) + " among them");
  for (const auto &group : groups_)
    if (group->run.name() == name)
      return usageError("group '" + name + "' exists already");
  groups_.push_back(std::make_unique<Group>(
      Group{GroupRun(name, std::move(ranks), rank()), {}, 0}));
  Group &group = *groups_.back();
  group.queue.setCapacity(options_.maxOperations);
  group.run.makePorts([this](int peer) -> Link & { return linkTo(peer); });
  return static_cast<GroupId>(groups_.size() - 1);
}

Result<ChannelId> CpuCommunicator::createChannel(const std::string &name,
                                                 int peer, Direction direction,
                                                 uint32_t tag) {
  if (started_ || peer < 0 || peer >= worldSize() || peer == rank())
    return usageError("channel '" + name +
                      "': expected, before the start, another rank below " +
                      std::to_string(worldSize()) + ", got rank " +
                      std::to_string(peer));
  channels_.push_back(std::make_unique<Channel>());
  Channel &channel = *channels_.back();
  channel.name = name;
  channel.direction = direction;
  channel.peer = peer;
  channel.queue.setCapacity(options_.maxOperations);
  std::string key = "channel '" + name + "' with tag " + std::to_string(tag);
  std::string subject = "channel '" + name + "'";
  if (direction == Direction::Send)
    channel.out = &linkTo(peer).addOut(key, subject, options_.maxOperations);
  else
    channel.in = &linkTo(peer).addIn(key, subject, options_.maxOperations);
  return static_cast<ChannelId>(channels_.size() - 1);
}

/// A rank that expects a connection nobody will make would wait until the
/// deadline; so the ranks tell each other first.
Status CpuCommunicator::checkNeighbours() {
  std::string mine;
  for (const auto &link : links_)
    mine += std::to_string(link->peer()) + " ";
  auto all = allGatherBytes(mine, options_.timeoutSeconds);
  RECKON_TRY(all);
  std::vector<std::vector<int>> peers(all->size());
  for (size_t r = 0; r < all->size(); ++r) {
    std::istringstream in((*all)[r]);
    for (int peer; in >> peer;)
      peers[r].push_back(peer);
  }
  for (size_t r = 0; r < peers.size(); ++r)
    for (int peer : peers[r]) {
      const auto &back = peers[static_cast<size_t>(peer)];
      if (std::find(back.begin(), back.end(), static_cast<int>(r)) ==
          back.end())
        return makeError(
            ExitCode::Mismatch,
            "rank " + std::to_string(r) + " has a group or channel with rank " +
                std::to_string(peer) + ", but rank " + std::to_string(peer) +
                " has none with rank " + std::to_string(r) +
                "; start all ranks from one plan directory");
    }
  return Status();
}

Status CpuCommunicator::connectAll() {
  Deadline deadline(options_.timeoutSeconds, options_.cancel);
  RECKON_TRY(checkNeighbours());
  std::vector<std::string> tables;
  for (const auto &link : links_)
    tables.push_back(link->sealPorts());
  RECKON_TRY(wiring_->connect(links_, *control_, deadline));
  RECKON_TRY(comparePortTables(links_, tables, deadline));
  for (const auto &group : groups_)
    group->run.prepare();
  pollEntries_.reserve(links_.size() + static_cast<size_t>(worldSize()));
  // Nobody enters a step before everybody is connected.
  return allGatherBytes("", options_.timeoutSeconds).status();
}

Status CpuCommunicator::start() {
  if (error_)
    return *error_;
  RECKON_CHECK(!started_);
  if (Status status = connectAll(); !status)
    return fail(status.error());
  started_ = true;
  return Status();
}

// --- Posting ----------------------------------------------------------------

Result<uint32_t> CpuCommunicator::acquire(size_t segments) {
  if (error_)
    return *error_;
  if (!started_)
    return usageError("an operation was posted before start()");
  if (segments > options_.maxSegments)
    return usageError("an operation has " + std::to_string(segments) +
                      " segments, more than the " +
                      std::to_string(options_.maxSegments) +
                      " of WorldOptions::maxSegments");
  if (free_.empty())
    return usageError("more than " + std::to_string(options_.maxOperations) +
                      " operations (WorldOptions::maxOperations) are posted "
                      "and not complete");
  uint32_t slot = free_.front();
  free_.pop();
  operations_[slot].busy = true;
  return slot;
}

Ticket CpuCommunicator::ticketOf(uint32_t slot) const {
  return {slot, operations_[slot].generation};
}

void CpuCommunicator::release(uint32_t slot) {
  operations_[slot].busy = false;
  ++operations_[slot].generation;
  free_.push(slot);
}

Result<Ticket> CpuCommunicator::postCollective(GroupId id, Segments in,
                                               Segments out, OpKind kind,
                                               DType type,
                                               Reduction reduction) {
  RECKON_CHECK(static_cast<size_t>(id) < groups_.size());
  Group &group = *groups_[static_cast<size_t>(id)];
  uint64_t n = group.run.size();
  uint64_t inBlocks = kind == OpKind::ReduceScatter ? n : 1;
  uint64_t outBlocks = kind == OpKind::AllGather ? n : 1;
  bool fits = in.size() == out.size();
  for (size_t i = 0; fits && i < in.size(); ++i)
    fits = in[i].count * outBlocks == out[i].count * inBlocks &&
           in[i].count % inBlocks == 0;
  if (!fits)
    return usageError("group '" + group.run.name() +
                      "': the sizes of the inputs and outputs do not fit the "
                      "operation and the group's " +
                      std::to_string(n) + " ranks");
  Result<uint32_t> slot = acquire(in.size());
  RECKON_TRY(slot);
  Operation &operation = operations_[*slot];
  bool cut = kind == OpKind::AllReduce;
  operation.map.reset(n, elementBytes(type),
                      cut             ? Layout::Cut
                      : inBlocks == 1 ? Layout::Plain
                                      : Layout::Blocked,
                      cut              ? Layout::Cut
                      : outBlocks == 1 ? Layout::Plain
                                       : Layout::Blocked);
  for (size_t i = 0; i < in.size(); ++i)
    operation.map.add(in[i].data, out[i].data, in[i].count / inBlocks);
  operation.signature = {kind, type,           reduction,
                         0,    group.posted++, operation.map.total()};
  group.queue.push(*slot);
  Ticket ticket = ticketOf(*slot);
  if (group.queue.size() == 1)
    if (Status status = group.run.begin(operation); !status)
      return fail(status.error());
  return ticket;
}

Result<Ticket> CpuCommunicator::allReduce(GroupId group, Segments in,
                                          Segments out, DType type,
                                          Reduction reduction) {
  return postCollective(group, in, out, OpKind::AllReduce, type, reduction);
}

Result<Ticket> CpuCommunicator::allGather(GroupId group, Segments in,
                                          Segments out, DType type) {
  return postCollective(group, in, out, OpKind::AllGather, type,
                        Reduction::Sum);
}

Result<Ticket> CpuCommunicator::reduceScatter(GroupId group, Segments in,
                                              Segments out, DType type,
                                              Reduction reduction) {
  return postCollective(group, in, out, OpKind::ReduceScatter, type, reduction);
}

Result<Ticket> CpuCommunicator::postMessage(ChannelId id, Segments data,
                                            DType type, Direction direction) {
  RECKON_CHECK(static_cast<size_t>(id) < channels_.size());
  Channel &channel = *channels_[static_cast<size_t>(id)];
  if (channel.direction != direction)
    return usageError("channel '" + channel.name + "' runs the other way");
  Result<uint32_t> slot = acquire(data.size());
  RECKON_TRY(slot);
  Operation &operation = operations_[*slot];
  SegmentMap &map = operation.map;
  map.reset(1, elementBytes(type), Layout::Plain, Layout::Plain);
  for (const Segment &segment : data)
    map.add(segment.data, segment.data, segment.count);
  operation.signature = {OpKind::Message,  type,       Reduction::Sum, 0,
                         channel.posted++, map.total()};
  Region region = Region::part(map, Side::In, 0, 0, map.total());
  if (channel.out)
    channel.out->link->postSend(*channel.out, region, operation.signature);
  else
    channel.in->link->postReceive(*channel.in, region, operation.signature);
  channel.queue.push(*slot);
  return ticketOf(*slot);
}

Result<Ticket> CpuCommunicator::send(ChannelId channel, Segments data,
                                     DType type) {
  return postMessage(channel, data, type, Direction::Send);
}

Result<Ticket> CpuCommunicator::receive(ChannelId channel, Segments data,
                                        DType type) {
  return postMessage(channel, data, type, Direction::Receive);
}

// --- Driving ----------------------------------------------------------------

Result<bool> CpuCommunicator::test(Ticket ticket) {
  if (error_)
    return *error_;
  RECKON_CHECK(ticket.slot < operations_.size());
  return operations_[ticket.slot].generation != ticket.generation;
}

Result<bool> CpuCommunicator::advanceGroup(Group &group) {
  bool moved = false;
  while (!group.queue.empty()) {
    Result<bool> step = group.run.advance();
    RECKON_TRY(step);
    moved |= *step;
    if (!group.run.done())
      break;
    group.run.end();
    release(group.queue.front());
    group.queue.pop();
    if (!group.queue.empty())
      RECKON_TRY(group.run.begin(operations_[group.queue.front()]));
  }
  return moved;
}

bool CpuCommunicator::advanceChannel(Channel &channel) {
  uint64_t completed =
      channel.out ? channel.out->completed : channel.in->completed;
  bool moved = channel.taken < completed;
  for (; channel.taken < completed; ++channel.taken) {
    release(channel.queue.front());
    channel.queue.pop();
  }
  return moved;
}

Result<bool> CpuCommunicator::progress() {
  if (error_)
    return *error_;
  bool moved = false;
  if (started_) {
    for (const auto &link : links_) {
      Result<bool> turned = link->turn();
      if (!turned)
        return fail(turned.error());
      moved |= *turned;
    }
    for (const auto &group : groups_) {
      Result<bool> advanced = advanceGroup(*group);
      if (!advanced)
        return fail(advanced.error());
      moved |= *advanced;
    }
    for (const auto &channel : channels_)
      moved |= advanceChannel(*channel);
  }
  if (moved)
    emptyTurns_ = 0;
  int64_t now = nowNs();
  if (now - lastCheck_ > kCheckNs) {
    lastCheck_ = now;
    if (Status status = checkPeers(); !status)
      return fail(status.error());
  }
  return moved;
}

Status CpuCommunicator::checkPeers() {
  RECKON_TRY(control_->check());
  if (!started_ || finishing_)
    return Status();
  for (const auto &link : links_) {
    link->turnBell();
    if (link->notice())
      return toError(*link->notice());
    if (!link->closed())
      continue;
    // The peer may have closed because of another rank's death; rank 0 knows.
    if (closedSince_ == 0)
      closedSince_ = nowNs();
    else if (nowNs() - closedSince_ > kVerdictNs)
      return diedError(link->peer());
  }
  return Status();
}

void CpuCommunicator::idle() {
  ++emptyTurns_;
  if (emptyTurns_ < kSpins)
    return;
  if (emptyTurns_ < kYields)
    ::sched_yield();
  else
    sleep();
}

void CpuCommunicator::sleep() {
  pollEntries_.clear();
  control_->addPollEntries(pollEntries_);
  bool ready = false;
  if (started_)
    for (const auto &link : links_) {
      link->announceSleep();
      ready |= link->isReady();
      pollEntries_.push_back({link->pollFd(), link->pollEvents(), 0});
    }
  if (!ready)
    ::poll(pollEntries_.data(), pollEntries_.size(), kSleepMs);
  if (started_)
    for (const auto &link : links_)
      link->wakeUp();
  lastCheck_ = 0; // the bell has to be taken off the sockets
}

// --- Control ----------------------------------------------------------------

Result<std::vector<std::string>>
CpuCommunicator::allGatherBytes(std::string_view mine, double timeout) {
  if (error_)
    return *error_;
  Deadline deadline(timeout, options_.cancel);
  control_->begin(mine);
  for (;;) {
    if (Status status = control_->check(); !status)
      return fail(status.error());
    if (control_->ready())
      return control_->take();
    if (deadline.passed())
      return fail(makeError(ExitCode::Environment,
                            "expected all ranks to agree within " +
                                std::to_string(timeout) +
                                " s, got nothing from " + control_->missing() +
                                "; see whether those processes still run"));
    Result<bool> moved = progress();
    RECKON_TRY(moved);
    if (!*moved)
      idle();
  }
}

Error CpuCommunicator::fail(const Error &error) {
  if (error_)
    return *error_;
  error_ = error;
  Notice notice{static_cast<int>(sharedCode(error.code)), error.message};
  if (sharedCode(error.code) != error.code)
    notice.text =
        "rank " + std::to_string(rank()) + " stopped with exit code " +
        std::to_string(static_cast<int>(error.code)) + ": " + error.message;
  control_->sendNotice(notice);
  control_->shutDown();
  for (const auto &link : links_) {
    link->sendNotice(notice);
    link->shutDown();
  }
  return error;
}

void CpuCommunicator::abort(const Error &reason) { (void)fail(reason); }

Status CpuCommunicator::finish() {
  finishing_ = true;
  RECKON_TRY(allGatherBytes("", 0).status());
  control_->expectClose();
  return Status();
}

std::string CpuCommunicator::describePending() const {
  std::ostringstream out;
  for (const auto &group : groups_)
    for (size_t i = 0; i < group->queue.size(); ++i) {
      const Signature &what = operations_[group->queue[i]].signature;
      out << "group '" << group->run.name() << "', operation " << what.sequence
          << ": " << what.text() << (i == 0 ? " (running)\n" : "\n");
    }
  for (const auto &channel : channels_)
    for (size_t i = 0; i < channel->queue.size(); ++i) {
      const Signature &what = operations_[channel->queue[i]].signature;
      out << "channel '" << channel->name << "', message " << what.sequence
          << (channel->out ? " to rank " : " from rank ") << channel->peer
          << ": " << what.text() << '\n';
    }
  return out.str();
}

} // namespace reckon::comm
