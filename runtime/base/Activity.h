//===- Activity.h - what a long computation is at -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Whoever computes says so here; whoever waits may read it from another thread
// at any time. Nothing depends on what is read, so all of it is relaxed.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_BASE_ACTIVITY_H
#define RECKON_RUNTIME_BASE_ACTIVITY_H

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace reckon {

/// One activity, from its construction to its end; those begun meanwhile are
/// parts of it. Activities begin and end on one thread.
class Activity {
public:
  /// `what` is a literal; `total` steps, 0 when nobody knows.
  explicit Activity(const char *what, int64_t total = 0)
      : depth_(state().depth.load(std::memory_order_relaxed)) {
    if (Frame *frame = this->frame()) {
      frame->what.store(what, std::memory_order_relaxed);
      frame->done.store(0, std::memory_order_relaxed);
      frame->total.store(total, std::memory_order_relaxed);
    }
    state().depth.store(depth_ + 1, std::memory_order_release);
  }
  ~Activity() { state().depth.store(depth_, std::memory_order_release); }
  Activity(const Activity &) = delete;
  Activity &operator=(const Activity &) = delete;

  void advance(int64_t steps = 1) {
    if (Frame *frame = this->frame())
      frame->done.fetch_add(steps, std::memory_order_relaxed);
  }

  /// `numbers of nodes 3 of 7, search 120 of 48000`; empty when idle.
  static std::string current() {
    std::string text;
    int depth = std::min(state().depth.load(std::memory_order_acquire), kMost);
    for (int i = 0; i < depth; ++i) {
      const Frame &frame = state().frames[static_cast<size_t>(i)];
      const char *what = frame.what.load(std::memory_order_relaxed);
      text += (i ? ", " : "") + std::string(what ? what : "");
      int64_t total = frame.total.load(std::memory_order_relaxed);
      if (total > 0)
        text += " " +
                std::to_string(frame.done.load(std::memory_order_relaxed)) +
                " of " + std::to_string(total);
    }
    return text;
  }

private:
  /// Deeper ones are not shown.
  static constexpr int kMost = 6;
  struct Frame {
    std::atomic<const char *> what{nullptr};
    std::atomic<int64_t> done{0}, total{0};
  };
  struct State {
    std::array<Frame, kMost> frames;
    std::atomic<int> depth{0};
  };
  static State &state() {
    static State state;
    return state;
  }
  Frame *frame() const {
    return depth_ < kMost ? &state().frames[static_cast<size_t>(depth_)]
                          : nullptr;
  }

  int depth_;
};

} // namespace reckon

#endif // RECKON_RUNTIME_BASE_ACTIVITY_H
