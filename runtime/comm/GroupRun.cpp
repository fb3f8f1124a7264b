//===- GroupRun.cpp - one group's collectives, as state machines ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/GroupRun.h"

#include "runtime/comm/Reduce.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace reckon::comm {
namespace {

/// Names the members shortly but, with the hash, unmistakably.
std::string describeRanks(const std::vector<int> &ranks) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  std::string text = "[";
  for (size_t i = 0; i < ranks.size(); ++i) {
    hash = (hash ^ static_cast<uint64_t>(ranks[i])) * 0x100000001b3u;
    if (i > 0 && i < 8)
      text += ',';
    if (i < 8)
      text += std::to_string(ranks[i]);
  }
  if (ranks.size() > 8)
    text += ",... " + std::to_string(ranks.size()) + " ranks, #" +
            std::to_string(hash);
  return text + "]";
}

char *allocateTouched(uint64_t bytes) {
  void *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  RECKON_CHECK(memory);
  std::memset(memory, 0, bytes); // page faults now, not in a step
  return static_cast<char *>(memory);
}

} // namespace

GroupRun::GroupRun(std::string name, std::vector<int> ranks, int rank)
    : name_(std::move(name)), ranks_(std::move(ranks)), n_(ranks_.size()) {
  me_ = static_cast<uint64_t>(std::find(ranks_.begin(), ranks_.end(), rank) -
                              ranks_.begin());
  key_ = "group '" + name_ + "' of ranks " + describeRanks(ranks_);
}

void GroupRun::makePorts(const std::function<Link &(int)> &linkTo) {
  if (n_ == 1)
    return;
  std::string subject = "group '" + name_ + "'";
  auto rankAt = [&](uint64_t index) { return ranks_[index % n_]; };
  auto out = [&](uint64_t index, const std::string &what) {
    OutPort &port = linkTo(rankAt(index)).addOut(key_ + what, subject, kQueue);
    port.current = &current_;
    return &port;
  };
  auto in = [&](uint64_t index, const std::string &what) {
    return &linkTo(rankAt(index)).addIn(key_ + what, subject, kQueue);
  };
  ringOut_ = out(me_ + 1, ", ring");
  ringIn_ = in(me_ + n_ - 1, ", ring");
  uint32_t round = 0;
  for (uint64_t distance = 1; distance < n_; distance *= 2, ++round) {
    std::string what = ", round " + std::to_string(round);
    roundOut_.push_back(out(me_ + n_ - distance, what));
    roundIn_.push_back(in(me_ + distance, what));
  }
}

void GroupRun::prepare() {
  current_.sequence = UINT32_MAX; // the first operation has number 0
  if (n_ == 1)
    return;
  scratch_.reset(allocateTouched(kBuffers * kChunkBytes));
  exchange_.reset(allocateTouched(std::min(n_ * kSmallBytes, kExchangeBytes)));
  receiveBuffers_.setCapacity(kQueue);
  sendBuffers_.setCapacity(kQueue);
  partials_.setCapacity(kBuffers);
  freeBuffers_.setCapacity(kBuffers);
  for (int i = 0; i < kBuffers; ++i)
    freeBuffers_.push(i);
}

Status GroupRun::begin(Operation &operation) {
  operation_ = &operation;
  current_ = operation.signature;
  done_ = false;
  element_ = elementBytes(current_.type);
  accumulator_ =
      elementBytes(accumulatorType(current_.type, current_.reduction));
  copied_ = 0;
  if (n_ == 1)
    return Status();
  // Ports of the other algorithm count too: a rank with another length may
  // have chosen it.
  RECKON_TRY(ringOut_->link->checkCredits(*ringOut_));
  for (OutPort *port : roundOut_)
    RECKON_TRY(port->link->checkCredits(*port));
  bytes_ = contributionBytes();
  small_ = bytes_ <= kSmallBytes && bytes_ * n_ <= kExchangeBytes;
  if (small_)
    beginExchange();
  else
    beginRing();
  return Status();
}

Result<bool> GroupRun::advance() {
  if (n_ == 1) {
    copyAlone();
    return true;
  }
  return small_ ? advanceExchange() : advanceRing();
}

// --- Ring -------------------------------------------------------------------

uint64_t GroupRun::blockBehind(uint64_t steps) const {
  return (me_ + 2 * n_ - steps % n_) % n_;
}

void GroupRun::next(Position &position) const {
  uint64_t inWindow = std::min<uint64_t>(kWindow, chunks_ - position.base);
  if (++position.chunk < inWindow)
    return;
  position.chunk = 0;
  if (++position.step < steps_)
    return;
  position.step = 0;
  position.base += kWindow;
}

GroupRun::Chunk GroupRun::chunkOf(const Position &at, uint64_t block) const {
  uint64_t length = operation_->map.blockLength(block);
  uint64_t begin = std::min((at.base + at.chunk) * chunkElements_, length);
  return {begin, std::min(chunkElements_, length - begin)};
}

void GroupRun::beginRing() {
  reduces_ = current_.kind != OpKind::AllGather;
  gathers_ = current_.kind != OpKind::ReduceScatter;
  auto hops = static_cast<uint32_t>(n_ - 1);
  reduceSteps_ = reduces_ ? hops : 0;
  steps_ = reduceSteps_ + (gathers_ ? hops : 0);

  // A block smaller than the window's chunks is still cut, so that a chunk
  // travels while the one before is reduced.
  uint64_t width = reduces_ ? accumulator_ : element_;
  uint64_t block = operation_->map.longestBlock();
  uint64_t elements =
      std::max((block + kWindow - 1) / kWindow, kLeastChunkBytes / width);
  elements = std::min((elements + 63) / 64 * 64, kChunkBytes / width);
  chunkElements_ = elements;
  chunks_ = (block + elements - 1) / elements;

  receivePost_ = receiveTake_ = sendPost_ = Position();
  inBase_ = ringIn_->completed;
  outBase_ = ringOut_->completed;
  receivesPosted_ = receivesTaken_ = sendsPosted_ = sendsTaken_ = 0;
  finals_ = forwardable_ = 0;
  postReceives();
}

bool GroupRun::postReceives() {
  bool any = false;
  for (; !atEnd(receivePost_) && receivesPosted_ - receivesTaken_ < kQueue;
       next(receivePost_)) {
    const Position &at = receivePost_;
    Region region;
    int id = -1;
    if (at.step < reduceSteps_) {
      if (freeBuffers_.empty())
        break;
      id = freeBuffers_.front();
      freeBuffers_.pop();
      uint64_t count = chunkOf(at, blockBehind(2 + at.step)).count;
      bool first = at.step == 0; // travels in the element type
      uint64_t offset =
          first ? firstHopOffset(count, current_.type, current_.reduction) : 0;
      region = Region::memory(buffer(id) + offset,
                              count * (first ? element_ : accumulator_));
    } else {
      uint64_t block = blockBehind(1 + at.step - reduceSteps_);
      Chunk chunk = chunkOf(at, block);
      region = Region::part(operation_->map, Side::Out, block, chunk.begin,
                            chunk.count);
    }
    receiveBuffers_.push(id);
    ringIn_->link->postReceive(*ringIn_, region, current_);
    ++receivesPosted_;
    any = true;
  }
  return any;
}

void GroupRun::reduceChunk(const Position &at, uint64_t block, int id) {
  const SegmentMap &map = operation_->map;
  DType type = current_.type;
  Reduction reduction = current_.reduction;
  Chunk chunk = chunkOf(at, block);
  bool first = at.step == 0, last = at.step == reduceSteps_ - 1;
  char *raw = buffer(id) + firstHopOffset(chunk.count, type, reduction);
  char *acc = buffer(id);
  for (uint64_t done = 0; done < chunk.count;) {
    uint64_t run = 0;
    char *mine = map.at(Side::In, block, chunk.begin + done, run);
    run = std::min(run, chunk.count - done);
    char *partial = first ? raw + done * element_ : acc + done * accumulator_;
    if (last) {
      // Both sides are cut at the same places, so one run serves both.
      uint64_t outRun = 0;
      char *out = map.at(Side::Out, block, chunk.begin + done, outRun);
      if (first)
        combine(out, partial, mine, run, type, reduction);
      else
        accumulateInto(out, partial, mine, run, type, reduction);
    } else if (first) {
      expand(acc + done * accumulator_, partial, mine, run, type, reduction);
    } else {
      accumulate(partial, mine, run, type, reduction);
    }
    done += run;
  }
  if (last) {
    freeBuffers_.push(id);
    ++finals_;
  } else {
    partials_.push(id);
  }
}

bool GroupRun::takeReceives() {
  bool any = false;
  for (; ringIn_->completed - inBase_ > receivesTaken_;
       next(receiveTake_), ++receivesTaken_) {
    const Position &at = receiveTake_;
    int id = receiveBuffers_.front();
    receiveBuffers_.pop();
    if (at.step < reduceSteps_)
      reduceChunk(at, blockBehind(2 + at.step), id);
    else if (at.step + 1 < steps_)
      ++forwardable_;
    any = true;
  }
  return any;
}

void GroupRun::copyOwnBlock(uint64_t begin, uint64_t count) {
  const SegmentMap &map = operation_->map;
  for (uint64_t done = 0; done < count;) {
    uint64_t run = 0;
    char *to = map.at(Side::Out, me_, begin + done, run);
    char *from = map.at(Side::In, me_, begin + done, run);
    run = std::min(run, count - done);
    if (to != from)
      std::memcpy(to, from, run * element_);
    done += run;
  }
}

bool GroupRun::postSends() {
  bool any = false;
  const SegmentMap &map = operation_->map;
  for (; !atEnd(sendPost_) && sendsPosted_ - sendsTaken_ < kQueue;
       next(sendPost_)) {
    const Position &at = sendPost_;
    bool reducing = at.step < reduceSteps_;
    uint64_t step = reducing ? at.step : at.step - reduceSteps_;
    uint64_t block = blockBehind(reducing ? 1 + step : step);
    Chunk chunk = chunkOf(at, block);
    int id = -1;
    Region region;
    if (reducing && step == 0) {
      region = Region::part(map, Side::In, block, chunk.begin, chunk.count);
    } else if (reducing) {
      if (partials_.empty())
        break;
      id = partials_.front();
      partials_.pop();
      region = Region::memory(buffer(id), chunk.count * accumulator_);
    } else {
      uint64_t &available = step == 0 ? finals_ : forwardable_;
      if (step == 0 && !reduces_)
        copyOwnBlock(chunk.begin, chunk.count);
      else if (available == 0)
        break;
      else
        --available;
      region = Region::part(map, Side::Out, block, chunk.begin, chunk.count);
    }
    sendBuffers_.push(id);
    ringOut_->link->postSend(*ringOut_, region, current_);
    ++sendsPosted_;
    any = true;
  }
  return any;
}

bool GroupRun::takeSends() {
  bool any = false;
  for (; ringOut_->completed - outBase_ > sendsTaken_; ++sendsTaken_) {
    int id = sendBuffers_.front();
    sendBuffers_.pop();
    if (id >= 0)
      freeBuffers_.push(id);
    any = true;
  }
  return any;
}

Result<bool> GroupRun::advanceRing() {
  bool any = false, more = true;
  while (more) {
    more = takeReceives();
    more |= takeSends();
    more |= postSends();
    more |= postReceives();
    any |= more;
  }
  done_ =
      atEnd(receiveTake_) && atEnd(sendPost_) && sendsTaken_ == sendsPosted_;
  return any;
}

// --- Exchange ---------------------------------------------------------------

uint64_t GroupRun::contributionBytes() const {
  uint64_t blocks = current_.kind == OpKind::ReduceScatter ? n_ : 1;
  return operation_->map.total() * blocks * element_;
}

void GroupRun::beginExchange() {
  const SegmentMap &map = operation_->map;
  char *to = exchange_.get();
  uint64_t blocks = current_.kind == OpKind::AllGather ? 1 : n_;
  for (uint64_t block = 0; block < blocks; ++block) {
    uint64_t length = map.blockLength(block);
    for (uint64_t done = 0; done < length;) {
      uint64_t run = 0;
      char *from = map.at(Side::In, block, done, run);
      run = std::min(run, length - done);
      std::memcpy(to, from, run * element_);
      to += run * element_;
      done += run;
    }
  }
  round_ = 0;
  postRound();
}

void GroupRun::postRound() {
  // Before round k slots 0 .. 2^k - 1 hold the contributions of ranks me,
  // me + 1, ...; the round appends those of rank me + 2^k.
  uint64_t distance = uint64_t(1) << round_;
  uint64_t bytes = std::min(distance, n_ - distance) * bytes_;
  InPort &in = *roundIn_[round_];
  OutPort &out = *roundOut_[round_];
  inBase_ = in.completed;
  outBase_ = out.completed;
  in.link->postReceive(
      in, Region::memory(exchange_.get() + distance * bytes_, bytes), current_);
  out.link->postSend(out, Region::memory(exchange_.get(), bytes), current_);
}

Result<bool> GroupRun::advanceExchange() {
  if (roundIn_[round_]->completed == inBase_ ||
      roundOut_[round_]->completed == outBase_)
    return false;
  if (++round_ < roundIn_.size()) {
    postRound();
  } else {
    finishExchange();
    done_ = true;
  }
  return true;
}

void GroupRun::finishExchange() {
  const SegmentMap &map = operation_->map;
  DType type = current_.type;
  Reduction reduction = current_.reduction;
  auto contribution = [&](uint64_t rank) {
    return exchange_.get() + (rank + n_ - me_) % n_ * bytes_;
  };
  if (current_.kind == OpKind::AllGather) {
    for (uint64_t rank = 0; rank < n_; ++rank)
      forEachRun(map, Side::Out, rank, 0, map.total(), contribution(rank),
                 element_, [&](char *out, char *from, size_t run) {
                   std::memcpy(out, from, run * element_);
                 });
    return;
  }
  bool scatters = current_.kind == OpKind::ReduceScatter;
  uint64_t count = map.total();
  uint64_t offset = scatters ? me_ * count * element_ : 0;
  char *acc = buffer(0); // no ring runs in this group at the same time
  widen(acc, contribution(0) + offset, count, type, reduction);
  for (uint64_t rank = 1; rank < n_; ++rank)
    accumulate(acc, contribution(rank) + offset, count, type, reduction);
  for (uint64_t block = 0; block < n_; ++block) {
    if (scatters && block != me_)
      continue;
    uint64_t length = map.blockLength(block);
    forEachRun(map, Side::Out, block, 0, length, acc, accumulator_,
               [&](char *out, char *from, size_t run) {
                 narrow(out, from, run, type, reduction);
               });
    acc += length * accumulator_;
  }
}

// --- A group of one ---------------------------------------------------------

void GroupRun::copyAlone() {
  constexpr uint64_t kTurnBytes = uint64_t(1) << 20;
  uint64_t total = operation_->map.total();
  uint64_t count = std::min(total - copied_, kTurnBytes / element_);
  copyOwnBlock(copied_, count);
  copied_ += count;
  done_ = copied_ == total;
}

} // namespace reckon::comm
