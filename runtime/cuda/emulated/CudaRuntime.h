//===- CudaRuntime.h - the emulated part of the CUDA runtime --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The names, signatures and semantics of the CUDA runtime that Reckon uses, on
// the host. What is issued to a stream waits in its queue until somebody asks
// for progress (a query or a synchronisation); then one stream after the other,
// or one that a seed picks, runs the operation at its head. So only streams and
// events order execution, and what lacks an event may run in any order.
//
// One emulated device a host thread: ranks of one test may be threads. Memory
// is filled with 0xff on allocation, which is NaN in every float type.
//
// What a real device refuses is refused here with the same error: waiting for
// an event of a capture outside of it, ending a capture whose streams did not
// join, capturing twice. After a kernel's failure every call returns its error,
// and cudaGetErrorString tells what the kernel did.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_EMULATED_CUDARUNTIME_H
#define RECKON_RUNTIME_CUDA_EMULATED_CUDARUNTIME_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace reckon::cuda::emulated {

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorUnknown = 999,
};

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
      : x(x), y(y), z(z) {}
};
struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

// --- Devices ----------------------------------------------------------------

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int multiProcessorCount;
  int major;
  int minor;
};
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device);
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                   int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);

// --- Memory -----------------------------------------------------------------

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
cudaError_t cudaMalloc(void **pointer, size_t bytes);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       cudaMemcpyKind kind);

template <typename T> cudaError_t cudaMalloc(T **pointer, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void **>(pointer), bytes);
}
template <typename T> cudaError_t cudaMallocHost(T **pointer, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void **>(pointer), bytes);
}

// --- Streams and events -----------------------------------------------------

struct Stream;
struct Event;
using cudaStream_t = Stream *;
using cudaEvent_t = Event *;

inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0;
inline constexpr unsigned cudaEventDisableTiming = 2;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                         int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags = 0);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes,
                            cudaStream_t stream);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start,
                                 cudaEvent_t end);

// --- Graphs -----------------------------------------------------------------

struct Graph;
struct GraphExec;
using cudaGraph_t = Graph *;
using cudaGraphExec_t = GraphExec *;

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};
cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus *status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

// --- What a real runtime does not have --------------------------------------

/// Queues a kernel: `thread` is called once for each of its threads.
cudaError_t enqueueKernel(dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream, std::function<void()> thread);

/// An operation that ends when something outside this device happened.
class ExternalOperation {
public:
  enum class State { Blocked, Moved, Done, Failed };
  virtual ~ExternalOperation() = default;
  /// Called while the operation is at the head of its stream, again and again
  /// until it is Done or Failed.
  virtual State advance() = 0;
  /// Why it failed.
  virtual const char *failure() const { return "external operation failed"; }
};
using ExternalFactory = std::function<std::unique_ptr<ExternalOperation>()>;

/// Queues an external operation. The factory is called when the operation is
/// issued: now, or at each launch of the graph that is being captured, in the
/// order of capture.
cudaError_t enqueueExternal(cudaStream_t stream, ExternalFactory factory);

/// Somebody who moves bytes while streams are blocked.
struct Progress {
  std::function<bool()> poll; ///< whether anything moved
  std::function<void()> idle; ///< nothing to do: may sleep shortly
};
/// Registered for this thread's device until removed.
int addProgress(Progress progress);
void removeProgress(int handle);

/// Lets the device go on, or waits for those who registered.
void relax();

/// Without a seed threads, blocks and streams run in their natural order; with
/// one they run in an order that it chooses.
void setSeed(uint64_t seed);
void clearSeed();

/// Limits what cudaMalloc gives, to test for exhaustion; 0: the machine's.
void setDeviceMemory(size_t bytes);
/// Limits a block's shared memory; 0: an H100's 227 KiB.
void setSharedMemory(size_t bytes);

/// Kernels that ran on this thread's device, for tests.
uint64_t kernelsRun();

} // namespace reckon::cuda::emulated

namespace reckon::cuda {
using namespace emulated;
}

#endif // RECKON_RUNTIME_CUDA_EMULATED_CUDARUNTIME_H
