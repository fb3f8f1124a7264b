//===- DeviceCode.h - CUDA's device language for g++ ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Keywords, built-in variables, barriers, shuffles, votes and atomics. Barriers
// and warp operations take the place where they stand, so that threads of a
// block that wait at different places are an error that names both.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_EMULATED_DEVICECODE_H
#define RECKON_RUNTIME_CUDA_EMULATED_DEVICECODE_H

#include "runtime/cuda/emulated/CudaRuntime.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

namespace reckon::cuda::emulated {

/// Where in a source a thread waits.
struct Site {
  const char *file;
  int line;
};

/// The thread that runs.
struct ThreadContext {
  uint3 threadIndex;
  uint3 blockIndex;
  dim3 blockSize;
  dim3 gridSize;
};
extern thread_local const ThreadContext *currentThread;

void *dynamicSharedMemory();
void blockBarrier(Site site);

/// Gives `bytes` (at most 16) of the calling lane to its warp and waits for all
/// lanes of the mask; returns 32 entries of 16 bytes, one a lane. Valid until
/// the lane's next warp operation.
const unsigned char *warpExchange(unsigned mask, const void *value,
                                  size_t bytes, Site site);
unsigned laneNumber();

template <typename T>
T warpRead(unsigned mask, T value, unsigned from, Site site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
  const unsigned char *all = warpExchange(mask, &value, sizeof(T), site);
  T result;
  std::memcpy(&result, all + size_t(from) * 16, sizeof(T));
  return result;
}

template <typename T>
T shuffleXor(Site site, unsigned mask, T value, int lanes, int width = 32) {
  unsigned lane = laneNumber(), w = static_cast<unsigned>(width);
  unsigned from = lane ^ static_cast<unsigned>(lanes);
  return warpRead(mask, value, from / w > lane / w ? lane : from, site);
}
template <typename T>
T shuffleDown(Site site, unsigned mask, T value, unsigned delta,
              int width = 32) {
  unsigned lane = laneNumber(), w = static_cast<unsigned>(width);
  unsigned from = lane % w + delta < w ? lane + delta : lane;
  return warpRead(mask, value, from, site);
}
template <typename T>
T shuffleUp(Site site, unsigned mask, T value, unsigned delta, int width = 32) {
  unsigned lane = laneNumber(), w = static_cast<unsigned>(width);
  unsigned from = lane % w >= delta ? lane - delta : lane;
  return warpRead(mask, value, from, site);
}
template <typename T>
T shuffleFrom(Site site, unsigned mask, T value, int source, int width = 32) {
  unsigned lane = laneNumber(), w = static_cast<unsigned>(width);
  unsigned from = lane / w * w + static_cast<unsigned>(source) % w;
  return warpRead(mask, value, from, site);
}
inline unsigned ballot(Site site, unsigned mask, bool predicate) {
  unsigned char mine = predicate;
  const unsigned char *all = warpExchange(mask, &mine, 1, site);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      bits |= unsigned(all[size_t(lane) * 16] != 0) << lane;
  return bits;
}
inline void warpBarrier(Site site, unsigned mask = 0xffffffffu) {
  unsigned char nothing = 0;
  (void)warpExchange(mask, &nothing, 1, site);
}

// Threads run one at a time, so that plain arithmetic is atomic.
template <typename T, typename U> T atomicAdd(T *address, U value) {
  T old = *address;
  *address = static_cast<T>(old + static_cast<T>(value));
  return old;
}
template <typename T, typename U> T atomicMax(T *address, U value) {
  T old = *address;
  if (static_cast<T>(value) > old)
    *address = static_cast<T>(value);
  return old;
}
template <typename T, typename U> T atomicExch(T *address, U value) {
  T old = *address;
  *address = static_cast<T>(value);
  return old;
}
template <typename T, typename U> T atomicCAS(T *address, U compare, U value) {
  T old = *address;
  if (old == static_cast<T>(compare))
    *address = static_cast<T>(value);
  return old;
}

inline void __threadfence() {}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

} // namespace reckon::cuda::emulated

#define threadIdx (::reckon::cuda::emulated::currentThread->threadIndex)
#define blockIdx (::reckon::cuda::emulated::currentThread->blockIndex)
#define blockDim (::reckon::cuda::emulated::currentThread->blockSize)
#define gridDim (::reckon::cuda::emulated::currentThread->gridSize)
#define warpSize 32

#define RECKON_SITE (::reckon::cuda::emulated::Site{__FILE__, __LINE__})
#define __syncthreads() ::reckon::cuda::emulated::blockBarrier(RECKON_SITE)
#define __syncwarp(...)                                                        \
  ::reckon::cuda::emulated::warpBarrier(RECKON_SITE __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_xor_sync(...)                                                   \
  ::reckon::cuda::emulated::shuffleXor(RECKON_SITE, __VA_ARGS__)
#define __shfl_down_sync(...)                                                  \
  ::reckon::cuda::emulated::shuffleDown(RECKON_SITE, __VA_ARGS__)
#define __shfl_up_sync(...)                                                    \
  ::reckon::cuda::emulated::shuffleUp(RECKON_SITE, __VA_ARGS__)
#define __shfl_sync(...)                                                       \
  ::reckon::cuda::emulated::shuffleFrom(RECKON_SITE, __VA_ARGS__)
#define __ballot_sync(...)                                                     \
  ::reckon::cuda::emulated::ballot(RECKON_SITE, __VA_ARGS__)
#define __any_sync(...)                                                        \
  (::reckon::cuda::emulated::ballot(RECKON_SITE, __VA_ARGS__) != 0)

#endif // RECKON_RUNTIME_CUDA_EMULATED_DEVICECODE_H
