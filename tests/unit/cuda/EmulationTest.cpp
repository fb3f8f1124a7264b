//===- EmulationTest.cpp - the emulated CUDA runtime itself ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The tests of everything else trust the emulation: that it runs kernels as a
// device would, that it orders nothing but what streams and events order, and
// that it refuses what a device refuses.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/cuda/kernels/Types.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace reckon::cuda {
namespace {

#define GOOD(call) ASSERT_EQ((call), cudaSuccess) << cudaGetErrorString((call))

/// A sum over a block: shuffles, shared memory, a barrier.
__global__ void blockSum(const float *x, float *sums, int n) {
  RECKON_SHARED(float, parts);
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n;
       i += static_cast<int>(blockDim.x))
    sum += x[static_cast<int>(blockIdx.x) * n + i];
  for (int lanes = 16; lanes > 0; lanes /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0;
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp)
      all += parts[warp];
    sums[blockIdx.x] = all;
  }
}

/// The same without its barrier: what other warps gave may be missing.
__global__ void blockSumRacing(const float *x, float *sums, int n) {
  RECKON_SHARED(float, parts);
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n;
       i += static_cast<int>(blockDim.x))
    sum += x[static_cast<int>(blockIdx.x) * n + i];
  for (int lanes = 16; lanes > 0; lanes /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = sum;
  if (threadIdx.x == 0) {
    float all = 0;
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp)
      all += parts[warp];
    sums[blockIdx.x] = all;
  }
}

__global__ void divergent(float *x) {
  if (threadIdx.x < 16)
    __syncthreads();
  else
    x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);
}

__global__ void twoBarriers(float *x) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  x[threadIdx.x] = 1;
}

/// Warps leave the kernel at different times.
__global__ void earlyExit(int *count) {
  if (threadIdx.x >= 40)
    return;
  __syncthreads();
  atomicAdd(count, 1);
}

__global__ void order(int *next, int *seen) {
  seen[threadIdx.x] = atomicAdd(next, 1);
}

__global__ void fill(int *x, int value) { x[threadIdx.x] = value; }
__global__ void copyInto(const int *x, int *y) {
  y[threadIdx.x] = x[threadIdx.x];
}

class Emulation : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    clearSeed();
    for (cudaStream_t &one : stream)
      ASSERT_EQ(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking),
                cudaSuccess);
    for (cudaEvent_t &one : event)
      ASSERT_EQ(cudaEventCreateWithFlags(&one, cudaEventDisableTiming),
                cudaSuccess);
  }
  void TearDown() override {
    clearSeed();
    (void)cudaDeviceReset();
  }
  cudaStream_t stream[3];
  cudaEvent_t event[3];
};

TEST_F(Emulation, BlocksSumWithShufflesAndBarriers) {
  std::vector<float> x(3 * 1000);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 17);
  std::vector<float> first(3);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    if (seed > 0)
      setSeed(seed);
    std::vector<float> sums(3, NAN);
    GOOD(launch({3, 128, 4 * sizeof(float), stream[0]}, blockSum, x.data(),
                sums.data(), 1000));
    EXPECT_TRUE(std::isnan(sums[0])); // only queued
    GOOD(cudaStreamSynchronize(stream[0]));
    for (int block = 0; block < 3; ++block) {
      float expected = 0;
      for (int i = 0; i < 1000; ++i)
        expected += x[static_cast<size_t>(block * 1000 + i)];
      EXPECT_EQ(sums[static_cast<size_t>(block)], expected);
    }
  }
}

TEST_F(Emulation, AMissingBarrierShowsUnderSomeSeed) {
  std::vector<float> x(1000, 1.0f);
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    setSeed(seed);
    float sum = 0;
    GOOD(launch({1, 128, 4 * sizeof(float), stream[0]}, blockSumRacing,
                x.data(), &sum, 1000));
    GOOD(cudaStreamSynchronize(stream[0]));
    wrong += !(sum == 1000.0f);
  }
  EXPECT_GT(wrong, 10); // shared memory is poisoned, so a loss is NaN
}

TEST_F(Emulation, DivergentBarriersAreNamed) {
  std::vector<float> x(64, 0.0f);
  GOOD(launch({1, 32, 0, stream[0]}, divergent, x.data()));
  EXPECT_EQ(cudaStreamSynchronize(stream[0]), cudaErrorLaunchFailure);
  std::string text = cudaGetErrorString(cudaErrorLaunchFailure);
  EXPECT_NE(text.find("EmulationTest.cpp"), std::string::npos) << text;
  EXPECT_NE(text.find("barrier"), std::string::npos) << text;
  // Every later call fails too.
  EXPECT_EQ(cudaEventRecord(event[0], stream[0]), cudaErrorLaunchFailure);

  SetUp();
  GOOD(launch({1, 64, 0, stream[0]}, twoBarriers, x.data()));
  EXPECT_EQ(cudaStreamSynchronize(stream[0]), cudaErrorLaunchFailure);
  text = cudaGetErrorString(cudaErrorLaunchFailure);
  EXPECT_NE(text.find("different barriers"), std::string::npos) << text;
}

TEST_F(Emulation, ThreadsThatEndedHoldNoBarrierUp) {
  int count = 0;
  GOOD(launch({1, 100, 0, stream[0]}, earlyExit, &count));
  GOOD(cudaStreamSynchronize(stream[0]));
  EXPECT_EQ(count, 40);
}

TEST_F(Emulation, SeedsChooseTheOrderOfThreads) {
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    setSeed(seed);
    int next = 0;
    std::vector<int> seen(64, -1);
    GOOD(launch({1, 64, 0, stream[0]}, order, &next, seen.data()));
    GOOD(cudaStreamSynchronize(stream[0]));
    EXPECT_EQ(next, 64);
    orders.insert(seen);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST_F(Emulation, OnlyEventsOrderStreams) {
  int differ = 0, differOrdered = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    for (bool ordered : {false, true}) {
      setSeed(seed);
      int *x = nullptr, *y = nullptr;
      GOOD(cudaMalloc(&x, 32 * sizeof(int)));
      GOOD(cudaMalloc(&y, 32 * sizeof(int)));
      EXPECT_EQ(x[7], -1); // poison
      GOOD(launch({1, 32, 0, stream[0]}, fill, x, 5));
      if (ordered) {
        GOOD(cudaEventRecord(event[0], stream[0]));
        GOOD(cudaStreamWaitEvent(stream[1], event[0]));
      }
      GOOD(launch({1, 32, 0, stream[1]}, copyInto, x, y));
      GOOD(cudaDeviceSynchronize());
      (ordered ? differOrdered : differ) += y[31] != 5;
      GOOD(cudaFree(x));
      GOOD(cudaFree(y));
    }
  EXPECT_GT(differ, 2);
  EXPECT_EQ(differOrdered, 0);
}

TEST_F(Emulation, AWaitIsForTheNewestRecordBeforeIt) {
  int *x = nullptr;
  GOOD(cudaMalloc(&x, 32 * sizeof(int)));
  // Never recorded: passes.
  GOOD(cudaStreamWaitEvent(stream[1], event[0]));
  GOOD(cudaStreamSynchronize(stream[1]));
  GOOD(launch({1, 32, 0, stream[0]}, fill, x, 1));
  GOOD(cudaEventRecord(event[0], stream[0]));
  EXPECT_EQ(cudaEventSynchronize(event[0]), cudaSuccess);
  EXPECT_EQ(x[0], 1);
  GOOD(cudaFree(x));
}

TEST_F(Emulation, GraphsReplayAcrossStreams) {
  int *x = nullptr, *y = nullptr;
  GOOD(cudaMalloc(&x, 32 * sizeof(int)));
  GOOD(cudaMalloc(&y, 32 * sizeof(int)));
  GOOD(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeRelaxed));
  GOOD(launch({1, 32, 0, stream[0]}, fill, x, 9));
  GOOD(cudaEventRecord(event[0], stream[0]));
  GOOD(cudaStreamWaitEvent(stream[1], event[0]));
  GOOD(launch({1, 32, 0, stream[1]}, copyInto, x, y));
  GOOD(cudaEventRecord(event[1], stream[1]));
  GOOD(cudaStreamWaitEvent(stream[0], event[1]));
  cudaGraph_t graph = nullptr;
  GOOD(cudaStreamEndCapture(stream[0], &graph));
  cudaGraphExec_t exec = nullptr;
  GOOD(cudaGraphInstantiate(&exec, graph));
  GOOD(cudaDeviceSynchronize());
  EXPECT_EQ(y[0], -1); // captured, not run
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    setSeed(seed);
    GOOD(cudaMemsetAsync(x, 0, 32 * sizeof(int), stream[2]));
    GOOD(cudaMemsetAsync(y, 0, 32 * sizeof(int), stream[2]));
    GOOD(cudaStreamSynchronize(stream[2]));
    GOOD(cudaGraphLaunch(exec, stream[2]));
    GOOD(cudaStreamSynchronize(stream[2]));
    EXPECT_EQ(y[31], 9);
  }
}

TEST_F(Emulation, CapturesThatADeviceRefusesAreRefused) {
  int x[32];
  cudaGraph_t graph = nullptr;
  // A stream that does not join.
  GOOD(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeRelaxed));
  GOOD(cudaEventRecord(event[0], stream[0]));
  GOOD(cudaStreamWaitEvent(stream[1], event[0]));
  GOOD(launch({1, 32, 0, stream[1]}, fill, &x[0], 1));
  EXPECT_EQ(cudaStreamEndCapture(stream[0], &graph),
            cudaErrorStreamCaptureUnjoined);
  // An event of the world outside.
  GOOD(cudaEventRecord(event[1], stream[2]));
  GOOD(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(cudaStreamWaitEvent(stream[0], event[1]),
            cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(stream[0], &graph),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamSynchronize(stream[0]), cudaSuccess);
}

TEST_F(Emulation, MemoryIsBoundedAndChecked) {
  setDeviceMemory(1 << 20);
  char *x = nullptr, *y = nullptr;
  GOOD(cudaMalloc(&x, 1 << 19));
  EXPECT_EQ(cudaMalloc(&y, (1 << 19) + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMemsetAsync(x + 8, 0, 1 << 19, stream[0]),
            cudaErrorInvalidValue);
  size_t free = 0, total = 0;
  GOOD(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(total, size_t{1} << 20);
  EXPECT_EQ(free, size_t{1} << 19);
  GOOD(cudaFree(x));
  setDeviceMemory(0);
}

TEST_F(Emulation, ShapesThatADeviceRefusesAreRefused) {
  int x[32];
  EXPECT_EQ(launch({1, 1025, 0, stream[0]}, fill, &x[0], 1),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({1, 32, 228 << 10, stream[0]}, fill, &x[0], 1),
            cudaErrorInvalidConfiguration);
  GOOD(launch({0, 32, 0, stream[0]}, fill, &x[0], 1)); // nothing to do
}

/// An operation that somebody else ends.
class Outside : public ExternalOperation {
public:
  explicit Outside(int *left) : left_(left) {}
  State advance() override {
    if (*left_ > 0)
      return State::Blocked;
    return State::Done;
  }

private:
  int *left_;
};

TEST_F(Emulation, OutsideOperationsHoldTheirStreamUp) {
  int left = 3;
  std::vector<int> x(32, 0), y(32, 0);
  int hook = addProgress({[&] { return left > 0 && left-- > 0; }, nullptr});
  GOOD(enqueueExternal(stream[0],
                       [&] { return std::make_unique<Outside>(&left); }));
  GOOD(launch({1, 32, 0, stream[0]}, fill, x.data(), 1));
  GOOD(launch({1, 32, 0, stream[1]}, fill, y.data(), 2));
  GOOD(cudaStreamSynchronize(stream[0]));
  removeProgress(hook);
  EXPECT_EQ(left, 0);
  EXPECT_EQ(x[0], 1);
}

TEST_F(Emulation, AddHandlesOddSizesAndAddresses) {
  for (int64_t n : {0, 1, 3, 4, 5, 255, 1027})
    for (int shift : {0, 1}) {
      std::vector<float> a(static_cast<size_t>(n + 8)), b(a), c(a);
      for (size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<float>(i);
        b[i] = 0.5f * static_cast<float>(i);
      }
      GOOD(add(Storage::F32, a.data() + shift, b.data() + shift,
               c.data() + shift, n, stream[0]));
      GOOD(cudaStreamSynchronize(stream[0]));
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(c[static_cast<size_t>(i + shift)],
                  1.5f * static_cast<float>(i + shift));
      EXPECT_EQ(c[static_cast<size_t>(n + shift)], 0.0f); // nothing beyond
    }
}

} // namespace
} // namespace reckon::cuda
