//===- NcclRanks.h - ranks with emulated devices, a thread each -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_CUDA_NCCLRANKS_H
#define RECKON_TESTS_UNIT_CUDA_NCCLRANKS_H

#include "runtime/comm/Control.h"
#include "runtime/comm/Rendezvous.h"
#include "runtime/cuda/Check.h"
#include "runtime/cuda/NcclCommunicator.h"
#include "tests/unit/comm/Worlds.h"

#include <gtest/gtest.h>

namespace reckon::cuda {

/// Memory of the emulated device with some values.
template <typename T> class DeviceArray {
public:
  explicit DeviceArray(std::vector<T> values) : count_(values.size()) {
    if (cudaMalloc(&data_, count_ * sizeof(T)) != cudaSuccess)
      std::abort();
    std::copy(values.begin(), values.end(), data_);
  }
  DeviceArray(size_t count, T value)
      : DeviceArray(std::vector<T>(count, value)) {}
  DeviceArray(const DeviceArray &) = delete;
  ~DeviceArray() { (void)cudaFree(data_); }
  T *data() { return data_; }
  comm::Segment segment(size_t begin, size_t count) {
    return {data_ + begin, count};
  }
  comm::Segment segment() { return segment(0, count_); }
  std::vector<T> values() const { return {data_, data_ + count_}; }

private:
  T *data_ = nullptr;
  size_t count_;
};

inline cudaStream_t newStream() {
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
    std::abort();
  return stream;
}

/// Whether all that was put on the stream ends within `seconds`.
inline bool ends(cudaStream_t stream, double seconds) {
  comm::Deadline deadline(seconds);
  while (!deadline.passed()) {
    if (cudaStreamQuery(stream) == cudaSuccess)
      return true;
    ::sched_yield();
  }
  return false;
}
/// Long enough for whatever can end on a busy machine, and for what cannot.
inline constexpr double kEnds = 60, kBlocked = 0.3;

/// Runs `body` on every rank of a world, in a thread and with an emulated
/// device of its own, and gives each rank's error.
using ControlBody =
    std::function<Status(std::unique_ptr<comm::Communicator> control)>;
inline std::vector<Status> runControls(int world, const ControlBody &body) {
  comm::WorldOptions options;
  options.timeoutSeconds = 60;
  auto controls = comm::makeLocalWorld(world, options);
  std::vector<Status> results(static_cast<size_t>(world));
  if (!controls) {
    results.assign(results.size(), controls.error());
    return results;
  }
  std::vector<std::thread> threads;
  for (size_t r = 0; r < results.size(); ++r)
    threads.emplace_back(
        [&, r] { results[r] = body(std::move((*controls)[r])); });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

/// The same with a communicator that is not started.
using NcclBody = std::function<Status(NcclCommunicator &)>;
inline std::vector<Status> runNccl(int world, const NcclBody &body,
                                   NcclOptions options = {}) {
  return runControls(world, [&](std::unique_ptr<comm::Communicator> control) {
    NcclCommunicator communicator(std::move(control), options);
    Status status = body(communicator);
    if (!status)
      communicator.abort(status.error());
    return status;
  });
}

inline void expectAllGood(const std::vector<Status> &results) {
  for (size_t r = 0; r < results.size(); ++r)
    EXPECT_TRUE(results[r])
        << "rank " << r << ": " << results[r].error().message;
}

/// A failed expectation as an error of a rank's body.
inline Status expect(bool holds, const std::string &what) {
  return holds ? Status()
               : Status(makeError(ExitCode::Internal, "expected " + what));
}

} // namespace reckon::cuda

#endif // RECKON_TESTS_UNIT_CUDA_NCCLRANKS_H
