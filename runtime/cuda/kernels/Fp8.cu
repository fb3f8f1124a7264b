//===- Fp8.cu - largest magnitude and casts to fp8 ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/Fp8Kernels.h"
#include "runtime/cuda/kernels/Reduce.cuh"
#include "runtime/cuda/kernels/Types.cuh"
#include "runtime/device/kernels/Fp8.h"

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

namespace reckon::cuda {

using device::Fp8;

namespace {

constexpr unsigned threads = 256;
/// Blocks of the maximum: enough to fill any GPU, few enough that their one
/// atomic each costs nothing.
constexpr int64_t mostBlocks = 2048;

// --- Largest magnitude ------------------------------------------------------

/// bf16 without their signs are, as integers, in the order of the magnitudes,
/// with NaN above infinity. amax holds 0 before; an integer maximum has no
/// order, so that the atomic one is the same on every run.
__global__ void __launch_bounds__(threads)
    amaxKernel(const Bf16 *x, int64_t n, int64_t packs, unsigned *amax) {
  RECKON_SHARED(unsigned, entries);
  int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  unsigned most = 0;
  auto take = [&most](Bf16 value) {
    unsigned magnitude = value.bits & 0x7fffu;
    most = magnitude > most ? magnitude : most;
  };
  for (int64_t i = first; i < packs; i += step) {
    Pack<Bf16> eight = loadPack(x + i * lanesOf<Bf16>);
#pragma unroll
    for (int lane = 0; lane < lanesOf<Bf16>; ++lane)
      take(eight.at[lane]);
  }
  for (int64_t i = packs * lanesOf<Bf16> + first; i < n; i += step)
    take(x[i]);
  most = reduceBlock(most, 0u, entries,
                     [](unsigned a, unsigned b) { return a > b ? a : b; });
  if (threadIdx.x == 0)
    atomicMax(amax, most << 16);
}

// --- Casts ------------------------------------------------------------------

/// A block casts a square of x of this side. A thread makes 16 codes of a row,
/// then gathers 16 of a column from shared memory.
constexpr int side = 64, group = 16;
/// A row of codes in shared memory: the padding spreads a column's over banks.
constexpr int pitch = side + 4;

struct alignas(16) SixteenCodes {
  uint8_t at[group];
};

template <Fp8 format> __device__ uint8_t codeOf(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE,
                               format == Fp8::E5M2 ? __NV_E5M2 : __NV_E4M3);
#else
  return device::toFp8<format>(value);
#endif
}

/// `packed`: rows of x start at 16-byte boundaries. straight and transposed are
/// null where not wanted. Grid: squares along columns, along rows.
template <Fp8 format>
__global__ void __launch_bounds__(threads)
    castFp8Kernel(const Bf16 *x, int64_t rows, int64_t columns, bool packed,
                  const float *amax, float *scale, uint8_t *straight,
                  uint8_t *transposed) {
  RECKON_SHARED(uint8_t, tile);
  float factor = device::fp8Scale<format>(amax[0]);
  float inverse = 1.0f / factor;
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
    scale[0] = factor;
  int thread = static_cast<int>(threadIdx.x);
  int64_t height = fp8Padded(rows), width = fp8Padded(columns);
  int64_t top = int64_t{blockIdx.y} * side, left = int64_t{blockIdx.x} * side;

  int64_t row = top + thread / (side / group);
  int at = thread % (side / group) * group;
  int64_t column = left + at;
  SixteenCodes codes = {};
  if (row < rows && packed && column + group <= columns) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Pack<Bf16> eight = loadPack(x + row * columns + column + 8 * half);
#pragma unroll
      for (int lane = 0; lane < 8; ++lane)
        codes.at[8 * half + lane] =
            codeOf<format>(toFloat(eight.at[lane]) * inverse);
    }
  } else if (row < rows) {
#pragma unroll
    for (int lane = 0; lane < group; ++lane)
      if (column + lane < columns)
        codes.at[lane] =
            codeOf<format>(toFloat(x[row * columns + column + lane]) * inverse);
  }
  if (straight && row < height && column < width)
    *reinterpret_cast<SixteenCodes *>(straight + row * width + column) = codes;
  if (!transposed)
    return; // so do all threads of the block
#pragma unroll
  for (int lane = 0; lane < group; ++lane)
    tile[(row - top) * pitch + at + lane] = codes.at[lane];
  __syncthreads();

  // The threads of a warp take neighbouring columns of one group of rows.
  int64_t turned = left + thread % side;
  int from = thread / side * group;
#pragma unroll
  for (int lane = 0; lane < group; ++lane)
    codes.at[lane] = tile[(from + lane) * pitch + thread % side];
  if (turned < width && top + from < height)
    *reinterpret_cast<SixteenCodes *>(transposed + turned * height + top +
                                      from) = codes;
}

} // namespace

cudaError_t amax(const device::AmaxCall &call, const void *x, float *amax,
                 cudaStream_t stream) {
  if (cudaError_t error = cudaMemsetAsync(amax, 0, sizeof(float), stream))
    return error;
  int64_t packs =
      aligned16(static_cast<const Bf16 *>(x)) ? call.n / lanesOf<Bf16> : 0;
  int64_t items = packs > 0 ? packs : call.n;
  int64_t blocks = (items + threads - 1) / threads;
  blocks = blocks < mostBlocks ? blocks : mostBlocks;
  if (blocks == 0)
    return cudaSuccess;
  return launch({static_cast<unsigned>(blocks), threads,
                 reduceEntries * sizeof(unsigned), stream},
                amaxKernel, static_cast<const Bf16 *>(x), call.n, packs,
                reinterpret_cast<unsigned *>(amax));
}

cudaError_t castFp8(const device::CastFp8Call &call, const void *x,
                    const float *amax, float *scale, void *straight,
                    void *transposed, cudaStream_t stream) {
  auto *values = static_cast<const Bf16 *>(x);
  bool packed = aligned16(values) && call.columns % lanesOf<Bf16> == 0;
  int64_t wide = (call.columns + side - 1) / side;
  int64_t high = (call.rows + side - 1) / side;
  constexpr int64_t mostHigh = 65535; // of a grid's second dimension
  if (high > mostHigh)
    return cudaErrorInvalidValue;
  LaunchShape shape{
      dim3(static_cast<unsigned>(wide), static_cast<unsigned>(high)), threads,
      size_t{side} * pitch, stream};
  auto *kernel = call.codes == device::DType::F8E5M2 ? castFp8Kernel<Fp8::E5M2>
                                                     : castFp8Kernel<Fp8::E4M3>;
  return launch(shape, kernel, values, call.rows, call.columns, packed, amax,
                scale, static_cast<uint8_t *>(straight),
                static_cast<uint8_t *>(transposed));
}

} // namespace reckon::cuda
