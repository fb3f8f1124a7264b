//===- Blocks.cpp - a kernel's blocks, run by fibres ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A thread that never waits is a plain call on the one fibre that is free: only
// threads that wait at the same time need stacks of their own.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/emulated/Blocks.h"

#include "runtime/base/Status.h"
#include "runtime/cuda/emulated/DeviceCode.h"
#include "runtime/cuda/emulated/Fibre.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace reckon::cuda::emulated {

thread_local const ThreadContext *currentThread = nullptr;

namespace {

constexpr unsigned warpLanes = 32;

/// xorshift64*: quick, and good enough to shuffle.
class Random {
public:
  explicit Random(uint64_t seed)
      : state_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du) {
    if (state_ == 0)
      state_ = 1;
  }
  size_t below(size_t count) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<size_t>((state_ * 0x2545F4914F6CDD1Du) >> 33) % count;
  }

private:
  uint64_t state_;
};

enum class Wait : uint8_t { Fresh, Ready, Block, Warp, Gone };

struct Thread {
  ThreadContext context;
  Fibre *fibre = nullptr;
  Wait wait = Wait::Fresh;
  Site site = {};
  unsigned mask = 0;
  unsigned warp = 0;
  unsigned lane = 0;
  unsigned exchanges = 0; ///< parity picks the half of the warp's slots
};

/// What lanes gave to each other. Two halves: a lane that is quick to the next
/// exchange must not overwrite what a slow one has yet to read.
struct Warp {
  alignas(16) unsigned char slots[2][warpLanes][16];
  unsigned arrived = 0;
  unsigned alive = 0;
};

std::string placeOf(const Site &site) {
  const char *name = std::strrchr(site.file, '/');
  return std::string(name ? name + 1 : site.file) + ":" +
         std::to_string(site.line);
}

class BlockRun {
public:
  /// Empty, or what is wrong.
  std::string run(const KernelLaunch &launch, uint3 block, Random *random);

  void barrier(Site site);
  const unsigned char *exchange(unsigned mask, const void *value, size_t bytes,
                                Site site);
  void *shared() { return shared_.data(); }
  unsigned lane() const { return threads_[current_].lane; }

private:
  static void body(void *self);
  void set(const KernelLaunch &launch, uint3 block);
  void runThread(size_t index);
  void yield();
  void releaseBlock();
  void releaseWarp(unsigned warp);
  void ready(size_t index);
  std::string stuck() const;

  const KernelLaunch *launch_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<size_t> ready_;
  size_t readyHead_ = 0;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Fibre *> free_;
  struct alignas(16) Sixteen {
    unsigned char bytes[16];
  };
  std::vector<Sixteen> shared_;
  size_t current_ = 0;
  size_t alive_ = 0;
  size_t atBarrier_ = 0;
  std::string error_;
};

thread_local BlockRun *running = nullptr;

void BlockRun::body(void *self) {
  static_cast<BlockRun *>(self)->launch_->thread();
}

void BlockRun::set(const KernelLaunch &launch, uint3 block) {
  launch_ = &launch;
  size_t count = size_t{launch.block.x} * launch.block.y * launch.block.z;
  threads_.assign(count, Thread{});
  warps_.resize((count + warpLanes - 1) / warpLanes);
  for (Warp &warp : warps_)
    warp.arrived = warp.alive = 0;
  for (size_t i = 0; i < count; ++i) {
    Thread &thread = threads_[i];
    auto n = static_cast<unsigned>(i);
    thread.context = {{n % launch.block.x, n / launch.block.x % launch.block.y,
                       n / launch.block.x / launch.block.y},
                      block,
                      launch.block,
                      launch.grid};
    thread.warp = n / warpLanes;
    thread.lane = n % warpLanes;
    warps_[thread.warp].alive |= 1u << thread.lane;
  }
  // Poison: what a block did not write is no number.
  shared_.resize((launch.shared + 15) / 16);
  if (!shared_.empty())
    std::memset(shared_.data(), 0xff, shared_.size() * 16);
  ready_.resize(count);
  std::iota(ready_.begin(), ready_.end(), size_t{0});
  readyHead_ = 0;
  alive_ = count;
  atBarrier_ = 0;
  error_.clear();
}

void BlockRun::ready(size_t index) {
  threads_[index].wait = Wait::Ready;
  ready_.push_back(index);
}

void BlockRun::releaseBlock() {
  if (atBarrier_ == 0 || atBarrier_ < alive_)
    return;
  Site first = {};
  for (const Thread &thread : threads_)
    if (thread.wait == Wait::Block) {
      if (!first.file)
        first = thread.site;
      else if (first.line != thread.site.line)
        error_ = "threads of one block wait at different barriers, " +
                 placeOf(first) + " and " + placeOf(thread.site);
    }
  atBarrier_ = 0;
  for (size_t i = 0; i < threads_.size(); ++i)
    if (threads_[i].wait == Wait::Block)
      ready(i);
}

/// Lets the lanes of a mask go on once all of them that live have come.
void BlockRun::releaseWarp(unsigned warp) {
  size_t first = size_t{warp} * warpLanes;
  size_t last = std::min(first + warpLanes, threads_.size());
  bool again = true;
  while (again) {
    again = false;
    for (size_t i = first; i < last; ++i) {
      if (threads_[i].wait != Wait::Warp)
        continue;
      unsigned needed = threads_[i].mask & warps_[warp].alive;
      if ((warps_[warp].arrived & needed) != needed)
        continue;
      unsigned mask = threads_[i].mask;
      Site site = threads_[i].site;
      for (size_t j = first; j < last; ++j) {
        Thread &other = threads_[j];
        if (!(needed >> other.lane & 1))
          continue;
        if (other.mask != mask || other.site.line != site.line)
          error_ = "lanes of one warp meet at different warp operations, " +
                   placeOf(site) + " and " + placeOf(other.site);
        warps_[warp].arrived &= ~(1u << other.lane);
        ready(j);
      }
      again = true;
      break;
    }
  }
}

void BlockRun::runThread(size_t index) {
  Thread &thread = threads_[index];
  current_ = index;
  currentThread = &thread.context;
  if (thread.wait == Wait::Fresh) {
    if (free_.empty()) {
      fibres_.push_back(std::make_unique<Fibre>());
      free_.push_back(fibres_.back().get());
    }
    thread.fibre = free_.back();
    free_.pop_back();
    thread.wait = Wait::Ready;
    thread.fibre->start(&BlockRun::body, this);
  } else {
    thread.fibre->resume();
  }
  if (!thread.fibre->finished())
    return;
  free_.push_back(thread.fibre);
  thread.wait = Wait::Gone;
  --alive_;
  warps_[thread.warp].alive &= ~(1u << thread.lane);
  releaseWarp(thread.warp);
  releaseBlock();
}

std::string BlockRun::stuck() const {
  std::string text = "threads of one block wait for each other for ever:";
  size_t told = 0;
  for (size_t i = 0; i < threads_.size() && told < 3; ++i) {
    const Thread &thread = threads_[i];
    if (thread.wait != Wait::Block && thread.wait != Wait::Warp)
      continue;
    bool known = false;
    for (size_t j = 0; j < i; ++j)
      known |= threads_[j].wait == thread.wait &&
               threads_[j].site.line == thread.site.line;
    if (known)
      continue;
    ++told;
    text += " thread " + std::to_string(i) + " at the " +
            (thread.wait == Wait::Block ? "barrier" : "warp operation") +
            " of " + placeOf(thread.site) + ";";
  }
  return text + " a barrier under a condition that differs within the block?";
}

std::string BlockRun::run(const KernelLaunch &launch, uint3 block,
                          Random *random) {
  set(launch, block);
  while (alive_ > 0 && error_.empty()) {
    if (readyHead_ == ready_.size()) {
      error_ = stuck();
      break;
    }
    size_t pick = readyHead_;
    if (random)
      pick += random->below(ready_.size() - readyHead_);
    std::swap(ready_[pick], ready_[readyHead_]);
    size_t index = ready_[readyHead_++];
    if (readyHead_ == ready_.size()) {
      ready_.clear();
      readyHead_ = 0;
    }
    runThread(index);
  }
  if (!error_.empty()) {
    // Paused threads are given up; their stacks may not be used again.
    for (const Thread &thread : threads_)
      if (thread.fibre && thread.wait != Wait::Gone)
        std::erase_if(fibres_, [&](const std::unique_ptr<Fibre> &fibre) {
          return fibre.get() == thread.fibre;
        });
  }
  return error_;
}

void BlockRun::yield() { threads_[current_].fibre->pause(); }

void BlockRun::barrier(Site site) {
  Thread &thread = threads_[current_];
  thread.wait = Wait::Block;
  thread.site = site;
  ++atBarrier_;
  releaseBlock();
  yield();
}

const unsigned char *BlockRun::exchange(unsigned mask, const void *value,
                                        size_t bytes, Site site) {
  size_t index = current_;
  Thread &thread = threads_[index];
  Warp &warp = warps_[thread.warp];
  unsigned half = thread.exchanges++ & 1;
  std::memcpy(warp.slots[half][thread.lane], value, bytes);
  if (!(mask >> thread.lane & 1))
    error_ = "lane " + std::to_string(thread.lane) + " is not in the mask of " +
             "the warp operation of " + placeOf(site);
  thread.wait = Wait::Warp;
  thread.site = site;
  thread.mask = mask;
  warp.arrived |= 1u << thread.lane;
  releaseWarp(thread.warp);
  yield();
  return &warp.slots[half][0][0];
}

BlockRun &blockRun() {
  thread_local BlockRun run;
  return run;
}

} // namespace

void *dynamicSharedMemory() { return running->shared(); }
void blockBarrier(Site site) { running->barrier(site); }
const unsigned char *warpExchange(unsigned mask, const void *value,
                                  size_t bytes, Site site) {
  return running->exchange(mask, value, bytes, site);
}
unsigned laneNumber() { return running->lane(); }

std::string runKernel(const KernelLaunch &launch,
                      std::optional<uint64_t> seed) {
  std::optional<Random> random;
  if (seed)
    random.emplace(*seed);
  std::vector<uint3> blocks;
  for (unsigned z = 0; z < launch.grid.z; ++z)
    for (unsigned y = 0; y < launch.grid.y; ++y)
      for (unsigned x = 0; x < launch.grid.x; ++x)
        blocks.push_back({x, y, z});
  if (random)
    for (size_t i = blocks.size(); i > 1; --i)
      std::swap(blocks[i - 1], blocks[random->below(i)]);
  running = &blockRun();
  std::string error;
  for (const uint3 &block : blocks) {
    error = running->run(launch, block, random ? &*random : nullptr);
    if (!error.empty())
      break;
  }
  running = nullptr;
  currentThread = nullptr;
  return error;
}

} // namespace reckon::cuda::emulated
