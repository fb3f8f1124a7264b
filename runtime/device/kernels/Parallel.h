//===- Parallel.h - dividing a kernel among threads -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every division is fixed by the counts alone, and no kernel's result depends
// on where the cuts are: what is summed is summed whole by one thread.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_PARALLEL_H
#define RECKON_RUNTIME_DEVICE_KERNELS_PARALLEL_H

#include <cstdint>
#include <omp.h>

namespace reckon::device {

class Parallel {
public:
  explicit Parallel(int threads) : threads_(threads) {}
  int threads() const { return threads_; }

  /// body(begin, end) on contiguous parts of [0, count), cut at multiples of
  /// `unit`; `bytes` is what one item moves, so that small work stays on one
  /// thread.
  template <typename Body>
  void ranges(int64_t count, int64_t bytes, Body body, int64_t unit = 1) const {
    constexpr int64_t worthwhile = 64 << 10; // bytes per thread
    int64_t team = count * bytes / worthwhile;
    team = team < threads_ ? team : threads_;
    if (team <= 1) {
      if (count > 0)
        body(int64_t{0}, count);
      return;
    }
#pragma omp parallel num_threads(static_cast<int>(team))
    {
      int64_t size = omp_get_num_threads(), self = omp_get_thread_num();
      int64_t units = (count + unit - 1) / unit;
      int64_t begin = units * self / size * unit;
      int64_t end = units * (self + 1) / size * unit;
      end = end < count ? end : count;
      if (begin < end)
        body(begin, end);
    }
  }

  /// body(task, thread) for each task, dealt round robin.
  template <typename Body> void tasks(int64_t count, Body body) const {
    if (threads_ <= 1 || count <= 1) {
      for (int64_t task = 0; task < count; ++task)
        body(task, 0);
      return;
    }
#pragma omp parallel num_threads(threads_)
    {
      int size = omp_get_num_threads(), self = omp_get_thread_num();
      for (int64_t task = self; task < count; task += size)
        body(task, self);
    }
  }

private:
  int threads_;
};

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_PARALLEL_H
