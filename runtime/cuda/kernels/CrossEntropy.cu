//===- CrossEntropy.cu - one shard's share of the loss --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One block a row, of as many warps as its 16-byte units feed. A row begins at
// any element: the elements before its first 16-byte boundary and after the
// last unit are taken one by one.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/LossKernels.h"
#include "runtime/cuda/kernels/Reduce.cuh"
#include "runtime/cuda/kernels/Types.cuh"

namespace reckon::cuda {

using device::CrossEntropyCall;

namespace {

/// Threads for rows of n elements.
template <typename T> unsigned rowThreads(int64_t n) {
  int64_t warps = (n / lanesOf<T> + 31) / 32;
  return static_cast<unsigned>(warps < 1 ? 32 : warps > 16 ? 512 : warps * 32);
}

/// Elements from `at` to the next 16-byte boundary, at most n.
template <typename T> __device__ int headOf(const T *at, int n) {
  int past = static_cast<int>(reinterpret_cast<uintptr_t>(at) % 16);
  int head = past == 0 ? 0 : (16 - past) / static_cast<int>(sizeof(T));
  return head < n ? head : n;
}

/// Deals a row out to the block: packed(column, Pack) for whole 16-byte units,
/// single(column, value) for the other elements.
template <typename T, typename Packed, typename Single>
__device__ void dealRow(const T *row, int n, Packed packed, Single single) {
  constexpr int lanes = lanesOf<T>;
  int thread = static_cast<int>(threadIdx.x),
      all = static_cast<int>(blockDim.x);
  int head = headOf(row, n), packs = (n - head) / lanes;
  if (thread < head)
    single(thread, row[thread]);
#pragma unroll 4
  for (int i = thread; i < packs; i += all)
    packed(head + i * lanes, loadPack(row + head + i * lanes));
  int tail = head + packs * lanes + thread;
  if (tail < n) // fewer than `lanes` elements
    single(tail, row[tail]);
}

template <typename T>
__global__ void __launch_bounds__(512)
    crossEntropyMaxKernel(CrossEntropyCall call, const T *logits, float *max) {
  RECKON_SHARED(float, entries);
  int64_t row = blockIdx.x;
  float most = -INFINITY;
  dealRow(
      logits + row * call.v, static_cast<int>(call.valid),
      [&](int, const Pack<T> &x) {
#pragma unroll
        for (int i = 0; i < lanesOf<T>; ++i)
          most = fmaxf(most, toFloat(x.at[i]));
      },
      [&](int, T x) { most = fmaxf(most, toFloat(x)); });
  most = reduceBlock(most, -INFINITY, entries,
                     [](float a, float b) { return fmaxf(a, b); });
  if (threadIdx.x == 0)
    max[row] = most;
}

template <typename T>
__global__ void __launch_bounds__(512)
    crossEntropySumKernel(CrossEntropyCall call, const T *logits,
                          const int32_t *targets, const float *max,
                          float *sums) {
  RECKON_SHARED(double, entries);
  int64_t row = blockIdx.x;
  logits += row * call.v;
  float top = max[row];
  // A unit's sum is f32, the rest f64: the error does not grow with v.
  double total = 0.0;
  dealRow(
      logits, static_cast<int>(call.valid),
      [&](int, const Pack<T> &x) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < lanesOf<T>; ++i)
          sum += expf(toFloat(x.at[i]) - top);
        total += static_cast<double>(sum);
      },
      [&](int, T x) { total += static_cast<double>(expf(toFloat(x) - top)); });
  total = sumBlock(total, entries);
  if (threadIdx.x == 0) {
    int64_t target = targets[row] - call.offset;
    bool owned = target >= 0 && target < call.valid;
    sums[row] = static_cast<float>(total);
    sums[call.rows + row] = owned ? toFloat(logits[target]) - top : 0.0f;
  }
}

/// One block for all rows, so that the loss has one order.
__global__ void __launch_bounds__(1024)
    crossEntropyLossKernel(device::CrossEntropyLossCall call, const float *sums,
                           const float *max, float *lse, double *metrics) {
  RECKON_SHARED(double, entries);
  double loss = 0.0;
  for (int64_t row = threadIdx.x; row < call.rows; row += blockDim.x) {
    double logSum = log(static_cast<double>(sums[row]));
    lse[row] = static_cast<float>(static_cast<double>(max[row]) + logSum);
    loss += logSum - static_cast<double>(sums[call.rows + row]);
  }
  loss = sumBlock(loss, entries);
  if (threadIdx.x == 0 && call.owner)
    metrics[device::MetricLossSum] += loss;
}

template <typename T>
__global__ void __launch_bounds__(512)
    crossEntropyGradKernel(CrossEntropyCall call, const T *logits,
                           const int32_t *targets, const float *lse,
                           T *dlogits) {
  int64_t row = blockIdx.x;
  logits += row * call.v;
  dlogits += row * call.v;
  float all = lse[row], scale = call.scale;
  int64_t target = targets[row] - call.offset;
  auto gradient = [=](int column, T x) {
    float p = expf(toFloat(x) - all);
    return fromFloat<T>((column == target ? p - 1.0f : p) * scale);
  };
  auto single = [=](int column, T x) { dlogits[column] = gradient(column, x); };
  int valid = static_cast<int>(call.valid), v = static_cast<int>(call.v);
  int thread = static_cast<int>(threadIdx.x);
  auto phase = [](const T *at) { return reinterpret_cast<uintptr_t>(at) % 16; };
  if (phase(logits) == phase(dlogits))
    dealRow(
        logits, valid,
        [=](int column, const Pack<T> &x) {
          Pack<T> y;
#pragma unroll
          for (int i = 0; i < lanesOf<T>; ++i)
            y.at[i] = gradient(column + i, x.at[i]);
          storePack(dlogits + column, y);
        },
        single);
  else
    for (int i = thread; i < valid; i += static_cast<int>(blockDim.x))
      single(i, logits[i]);
  for (int i = valid + thread; i < v; i += static_cast<int>(blockDim.x))
    dlogits[i] = fromFloat<T>(0.0f);
}

/// Whether a call's sizes fit the grid and the kernels' column numbers.
bool fits(const CrossEntropyCall &call) {
  return call.rows <= maxLossRows && call.v <= 0x7fffffff;
}

template <typename T>
LaunchShape rowShape(const CrossEntropyCall &call, size_t shared,
                     cudaStream_t stream) {
  return {static_cast<unsigned>(call.rows), rowThreads<T>(call.v), shared,
          stream};
}

/// body(T()) for the storage type T of the call.
template <typename Body>
cudaError_t withType(const CrossEntropyCall &call, Body body) {
  if (!fits(call))
    return cudaErrorInvalidValue;
  if (call.rows == 0)
    return cudaSuccess;
  return call.dtype == device::DType::BF16 ? body(Bf16()) : body(float());
}

} // namespace

cudaError_t crossEntropyMax(const CrossEntropyCall &call, const void *logits,
                            float *max, cudaStream_t stream) {
  return withType(call, [&](auto stored) {
    using T = decltype(stored);
    return launch(rowShape<T>(call, reduceEntries * sizeof(float), stream),
                  crossEntropyMaxKernel<T>, call,
                  static_cast<const T *>(logits), max);
  });
}

cudaError_t crossEntropySum(const CrossEntropyCall &call, const void *logits,
                            const int32_t *targets, const float *max,
                            float *sums, cudaStream_t stream) {
  return withType(call, [&](auto stored) {
    using T = decltype(stored);
    return launch(rowShape<T>(call, reduceEntries * sizeof(double), stream),
                  crossEntropySumKernel<T>, call,
                  static_cast<const T *>(logits), targets, max, sums);
  });
}

cudaError_t crossEntropyLoss(const device::CrossEntropyLossCall &call,
                             const float *sums, const float *max, float *lse,
                             double *metrics, cudaStream_t stream) {
  if (call.rows == 0)
    return cudaSuccess;
  int64_t threads = (call.rows + 31) / 32 * 32;
  return launch({1, static_cast<unsigned>(threads < 1024 ? threads : 1024),
                 reduceEntries * sizeof(double), stream},
                crossEntropyLossKernel, call, sums, max, lse, metrics);
}

cudaError_t crossEntropyGrad(const CrossEntropyCall &call, const void *logits,
                             const int32_t *targets, const float *lse,
                             void *dlogits, cudaStream_t stream) {
  return withType(call, [&](auto stored) {
    using T = decltype(stored);
    return launch(rowShape<T>(call, 0, stream), crossEntropyGradKernel<T>, call,
                  static_cast<const T *>(logits), targets, lse,
                  static_cast<T *>(dlogits));
  });
}

} // namespace reckon::cuda
