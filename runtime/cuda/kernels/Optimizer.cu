//===- Optimizer.cu - squared norm, clipping and AdamW --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/Lanes.cuh"
#include "runtime/cuda/kernels/LossKernels.h"
#include "runtime/cuda/kernels/Reduce.cuh"

namespace reckon::cuda {

using device::AdamwCall;

namespace {

constexpr unsigned threads = 256;
/// Elements that a block of the first stage takes at least, and the most
/// blocks: enough to fill any GPU, few enough for one block to add up.
constexpr int64_t elementsPerPart = 1 << 14;
constexpr int64_t mostParts = 1024;
/// Blocks of an elementwise kernel; each takes several strides.
constexpr int64_t mostBlocks = 2048;

/// f32 elements from `at` to the next 16-byte boundary.
int64_t headOf(const void *at) {
  return static_cast<int64_t>((16 - reinterpret_cast<uintptr_t>(at) % 16) % 16 /
                              sizeof(float));
}

// --- Squared norm -----------------------------------------------------------

/// parts[block] = sum of squares of the block's share of x[n]; x + head is
/// aligned to 16 bytes. A product of two f32 is exact in f64.
__global__ void __launch_bounds__(threads)
    sumSquaresKernel(const float *x, int64_t n, int64_t head, double *parts) {
  RECKON_SHARED(double, entries);
  int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  auto square = [](float value) {
    return static_cast<double>(value) * static_cast<double>(value);
  };
  double sums[4] = {};
  if (first < head)
    sums[0] += square(x[first]);
  int64_t packs = (n - head) / 4;
#pragma unroll 4
  for (int64_t i = first; i < packs; i += stride) {
    Pack<float> four = loadPack(x + head + i * 4);
#pragma unroll
    for (int j = 0; j < 4; ++j)
      sums[j] += square(four.at[j]);
  }
  int64_t tail = head + packs * 4 + first;
  if (tail < n)
    sums[0] += square(x[tail]);
  double sum = sumBlock((sums[0] + sums[1]) + (sums[2] + sums[3]), entries);
  if (threadIdx.x == 0)
    parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(threads)
    sumPartsKernel(const double *parts, int count, double *metrics) {
  RECKON_SHARED(double, entries);
  double sum = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < count;
       i += static_cast<int>(blockDim.x))
    sum += parts[i];
  sum = sumBlock(sum, entries);
  if (threadIdx.x == 0)
    metrics[device::MetricSquaredNorm] += sum;
}

__global__ void clipFactorKernel(double clip, double *metrics) {
  double norm = sqrt(metrics[device::MetricSquaredNorm]);
  metrics[device::MetricNorm] = norm;
  // A norm that is NaN makes the factor NaN: the fault must not be hidden.
  double factor = clip / (norm + 1e-6);
  metrics[device::MetricClipFactor] =
      clip <= 0.0 || factor > 1.0 ? 1.0 : factor;
}

// --- AdamW ------------------------------------------------------------------

/// What the update multiplies with, the same for all elements.
struct Factors {
  float gradient, beta1, oneMinusBeta1, beta2, oneMinusBeta2, eps;
  float keep;        // 1 - lr * decay
  float stepSize;    // lr / (1 - beta1^t)
  float inverseRoot; // 1 / sqrt(1 - beta2^t)
};

struct Adamw {
  int64_t n, head, packs; // elements, those before and the units of 16 bytes
  double beta1, beta2, eps, decay;
  const float *grad;
  const double *metrics, *scalars;
  float *main, *m, *v;
  Bf16 *param;
};

__device__ void update(const Factors &f, float grad, float &main, float &m,
                       float &v) {
  float g = grad * f.gradient;
  m = m * f.beta1 + g * f.oneMinusBeta1;
  v = v * f.beta2 + g * g * f.oneMinusBeta2;
  float root = sqrtf(v) * f.inverseRoot + f.eps;
  main = main * f.keep - m / root * f.stepSize;
}

__device__ void updateOne(const Factors &f, const Adamw &a, int64_t i) {
  float main = a.main[i], m = a.m[i], v = a.v[i];
  update(f, a.grad[i], main, m, v);
  a.main[i] = main;
  a.m[i] = m;
  a.v[i] = v;
  if (a.param)
    a.param[i] = fromFloat<Bf16>(main);
}

__device__ void updateFour(const Factors &f, const Adamw &a, int64_t i) {
  Pack<float> grad = loadPack(a.grad + i), main = loadPack(a.main + i);
  Pack<float> m = loadPack(a.m + i), v = loadPack(a.v + i);
#pragma unroll
  for (int j = 0; j < 4; ++j)
    update(f, grad.at[j], main.at[j], m.at[j], v.at[j]);
  storePack(a.main + i, main);
  storePack(a.m + i, m);
  storePack(a.v + i, v);
  if (a.param) {
    Lanes<Bf16, 4> param;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      param.at[j] = fromFloat<Bf16>(main.at[j]);
    storeLanes<4>(a.param + i, param);
  }
}

__global__ void __launch_bounds__(threads) adamwKernel(Adamw a) {
  RECKON_SHARED(Factors, shared);
  if (threadIdx.x == 0) { // divisions in f64: once a block
    double lr = a.scalars[device::ScalarLearningRate];
    shared->gradient = static_cast<float>(a.metrics[device::MetricClipFactor]);
    shared->beta1 = static_cast<float>(a.beta1);
    shared->oneMinusBeta1 = static_cast<float>(1.0 - a.beta1);
    shared->beta2 = static_cast<float>(a.beta2);
    shared->oneMinusBeta2 = static_cast<float>(1.0 - a.beta2);
    shared->eps = static_cast<float>(a.eps);
    shared->keep = static_cast<float>(1.0 - lr * a.decay);
    shared->stepSize = static_cast<float>(lr / a.scalars[device::ScalarBias1]);
    shared->inverseRoot =
        static_cast<float>(1.0 / sqrt(a.scalars[device::ScalarBias2]));
  }
  __syncthreads();
  Factors f = *shared;
  int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < a.head; i += stride)
    updateOne(f, a, i);
  for (int64_t i = first; i < a.packs; i += stride)
    updateFour(f, a, a.head + i * 4);
  for (int64_t i = a.head + a.packs * 4 + first; i < a.n; i += stride)
    updateOne(f, a, i);
}

} // namespace

int64_t sumSquaresParts(int64_t n) {
  int64_t parts = (n + elementsPerPart - 1) / elementsPerPart;
  return parts < mostParts ? parts : mostParts;
}

cudaError_t sumSquares(const device::SumSquaresCall &call, const float *x,
                       double *parts, double *metrics, cudaStream_t stream) {
  if (call.n == 0 || !call.owner)
    return cudaSuccess;
  int64_t head = headOf(x), count = sumSquaresParts(call.n);
  size_t shared = reduceEntries * sizeof(double);
  cudaError_t error =
      launch({static_cast<unsigned>(count), threads, shared, stream},
             sumSquaresKernel, x, call.n, head < call.n ? head : call.n, parts);
  if (error != cudaSuccess)
    return error;
  return launch({1, threads, shared, stream}, sumPartsKernel, parts,
                static_cast<int>(count), metrics);
}

cudaError_t clipFactor(const device::ClipFactorCall &call, double *metrics,
                       cudaStream_t stream) {
  return launch({1, 1, 0, stream}, clipFactorKernel, call.clip, metrics);
}

cudaError_t adamw(const AdamwCall &call, const AdamwOperands &p,
                  cudaStream_t stream) {
  if (call.n == 0)
    return cudaSuccess;
  Bf16 *param = static_cast<Bf16 *>(p.param);
  // Units of 16 bytes need all operands to reach a boundary at one element.
  int64_t head = headOf(p.main) < call.n ? headOf(p.main) : call.n;
  bool packed = aligned16(p.grad + head, p.main + head, p.m + head, p.v + head);
  if (param)
    packed = packed && reinterpret_cast<uintptr_t>(param + head) % 8 == 0;
  int64_t packs = packed ? (call.n - head) / 4 : 0;
  int64_t each = packed ? threads * 4 : threads;
  int64_t blocks = (call.n + each - 1) / each;
  Adamw a{call.n,   head,       packs,  call.beta1, call.beta2,
          call.eps, call.decay, p.grad, p.metrics,  p.scalars,
          p.main,   p.m,        p.v,    param};
  return launch(
      {static_cast<unsigned>(blocks < mostBlocks ? blocks : mostBlocks),
       threads, sizeof(Factors), stream},
      adamwKernel, a);
}

} // namespace reckon::cuda
