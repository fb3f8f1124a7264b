//===- CudaApi.cpp - the emulated functions of the CUDA runtime -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/emulated/Runtime.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace reckon::cuda::emulated {

namespace {

Runtime &self() { return Runtime::get(); }

constexpr int version = 13000;
/// cudaMalloc's own alignment.
constexpr size_t alignment = 256;

size_t machineBytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t deviceBytes() {
  return self().memoryLimit ? self().memoryLimit : machineBytes();
}

size_t sharedBytes() {
  return self().sharedLimit ? self().sharedLimit : size_t{227} << 10;
}

/// Whether [pointer, pointer + bytes) lies in one allocation or touches none.
bool inBounds(const void *pointer, size_t bytes) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = self().memory.upper_bound(address);
  bool free = after == self().memory.end() || after->first >= address + bytes;
  if (after == self().memory.begin())
    return free;
  auto own = std::prev(after);
  if (address >= own->first + own->second)
    return free;
  return address + bytes <= own->first + own->second;
}

template <typename T> T *drop(std::vector<std::unique_ptr<T>> &all, T *one) {
  auto at = std::find_if(all.begin(), all.end(),
                         [&](const auto &own) { return own.get() == one; });
  if (at == all.end())
    return nullptr;
  all.erase(at);
  return one;
}

/// A query is a chance for the device to go on, as time would be.
void pump() {
  for (int i = 0; i < 8 && self().turn(); ++i) {
  }
}

} // namespace

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return "cudaSuccess";
  case cudaErrorInvalidValue:
    return "cudaErrorInvalidValue";
  case cudaErrorMemoryAllocation:
    return "cudaErrorMemoryAllocation";
  case cudaErrorInvalidConfiguration:
    return "cudaErrorInvalidConfiguration";
  case cudaErrorInvalidDevice:
    return "cudaErrorInvalidDevice";
  case cudaErrorInvalidResourceHandle:
    return "cudaErrorInvalidResourceHandle";
  case cudaErrorNotReady:
    return "cudaErrorNotReady";
  case cudaErrorLaunchFailure:
    return "cudaErrorLaunchFailure";
  case cudaErrorStreamCaptureUnsupported:
    return "cudaErrorStreamCaptureUnsupported";
  case cudaErrorStreamCaptureInvalidated:
    return "cudaErrorStreamCaptureInvalidated";
  case cudaErrorStreamCaptureUnmatched:
    return "cudaErrorStreamCaptureUnmatched";
  case cudaErrorStreamCaptureUnjoined:
    return "cudaErrorStreamCaptureUnjoined";
  case cudaErrorStreamCaptureIsolation:
    return "cudaErrorStreamCaptureIsolation";
  case cudaErrorUnknown:
    break;
  }
  return "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t error) {
  if (error != cudaSuccess && error == self().error())
    return self().errorText().c_str();
  switch (error) {
  case cudaSuccess:
    return "no error";
  case cudaErrorMemoryAllocation:
    return "out of memory";
  case cudaErrorStreamCaptureUnjoined:
    return "a captured stream did not join the first one";
  case cudaErrorStreamCaptureIsolation:
    return "dependency on work outside of the capture";
  default:
    return cudaGetErrorName(error);
  }
}

cudaError_t cudaGetLastError() { return self().error(); }
cudaError_t cudaPeekAtLastError() { return self().error(); }

// --- Devices ----------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device) {
  if (device != 0)
    return cudaErrorInvalidDevice;
  *prop = {};
  std::strcpy(prop->name, "emulated");
  prop->totalGlobalMem = deviceBytes();
  prop->multiProcessorCount = 4;
  prop->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                   int device) {
  if (device != 0)
    return cudaErrorInvalidDevice;
  if (attribute != cudaDevAttrMaxSharedMemoryPerBlockOptin)
    return cudaErrorInvalidValue;
  *value = static_cast<int>(sharedBytes());
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return self().until([] {
    return std::all_of(
        self().streams.begin(), self().streams.end(),
        [](const auto &stream) { return stream->queue.empty(); });
  });
}
cudaError_t cudaDeviceReset() {
  self().reset();
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *out) {
  *out = version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *out) {
  *out = version;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

// --- Memory -----------------------------------------------------------------

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  *pointer = nullptr;
  if (bytes == 0)
    return cudaSuccess;
  if (bytes > deviceBytes() - std::min(deviceBytes(), self().memoryUsed))
    return cudaErrorMemoryAllocation;
  size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void *memory = std::aligned_alloc(alignment, whole);
  if (!memory)
    return cudaErrorMemoryAllocation;
  std::memset(memory, 0xff, whole);
  self().memory[reinterpret_cast<uintptr_t>(memory)] = bytes;
  self().memoryUsed += bytes;
  *pointer = memory;
  return cudaSuccess;
}
cudaError_t cudaFree(void *pointer) {
  if (!pointer)
    return cudaSuccess;
  auto own = self().memory.find(reinterpret_cast<uintptr_t>(pointer));
  if (own == self().memory.end())
    return cudaErrorInvalidValue;
  // As on a device: freeing waits for what may still use the memory.
  cudaError_t error = cudaDeviceSynchronize();
  self().memoryUsed -= own->second;
  self().memory.erase(own);
  std::free(pointer);
  return error;
}
cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
  size_t whole = (bytes + alignment - 1) / alignment * alignment;
  *pointer = std::aligned_alloc(alignment, std::max(whole, alignment));
  if (!*pointer)
    return cudaErrorMemoryAllocation;
  std::memset(*pointer, 0xff, std::max(whole, alignment));
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void *pointer) {
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  *total = deviceBytes();
  *free = *total - std::min(*total, self().memoryUsed);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       cudaMemcpyKind) {
  if (self().error() != cudaSuccess)
    return self().error();
  if (!inBounds(to, bytes) || !inBounds(from, bytes))
    return cudaErrorInvalidValue;
  if (bytes > 0)
    std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t stream) {
  if (!inBounds(to, bytes) || !inBounds(from, bytes))
    return cudaErrorInvalidValue;
  return self().issue(stream, {nullptr,
                               [=] {
                                 if (bytes > 0)
                                   std::memmove(to, from, bytes);
                               },
                               nullptr});
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes,
                            cudaStream_t stream) {
  if (!inBounds(to, bytes))
    return cudaErrorInvalidValue;
  return self().issue(stream, {nullptr,
                               [=] {
                                 if (bytes > 0)
                                   std::memset(to, value, bytes);
                               },
                               nullptr});
}

// --- Streams and events -----------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  self().streams.push_back(std::make_unique<Stream>());
  *stream = self().streams.back().get();
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                         int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!self().owns(stream))
    return cudaErrorInvalidResourceHandle;
  cudaError_t error = self().error() != cudaSuccess
                          ? self().error()
                          : cudaStreamSynchronize(stream);
  self().drop(stream);
  return error;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!self().owns(stream))
    return cudaErrorInvalidResourceHandle;
  if (stream->capture)
    return cudaErrorStreamCaptureUnsupported;
  return self().until([=] { return stream->queue.empty(); });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (!self().owns(stream))
    return cudaErrorInvalidResourceHandle;
  pump();
  if (self().error() != cudaSuccess)
    return self().error();
  return stream->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  return self().wait(event, stream);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  self().events.push_back(std::make_unique<Event>());
  *event = self().events.back().get();
  (*event)->timed = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!self().owns(event))
    return cudaErrorInvalidResourceHandle;
  // Entries of queues point to it.
  (void)self().until([=] { return event->completed >= event->issued; });
  bool waited = std::any_of(
      self().streams.begin(), self().streams.end(), [&](const auto &stream) {
        return std::any_of(
            stream->queue.begin(), stream->queue.end(),
            [&](const Entry &entry) { return entry.event == event; });
      });
  if (!waited)
    drop(self().events, event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return self().record(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!self().owns(event))
    return cudaErrorInvalidResourceHandle;
  pump();
  if (self().error() != cudaSuccess)
    return self().error();
  return event->completed >= event->issued ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (!self().owns(event))
    return cudaErrorInvalidResourceHandle;
  return self().until([=] { return event->completed >= event->issued; });
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start,
                                 cudaEvent_t end) {
  if (!self().owns(start) || !self().owns(end) || !start->timed ||
      !end->timed || start->issued == 0 || end->issued == 0)
    return cudaErrorInvalidResourceHandle;
  if (start->completed < start->issued || end->completed < end->issued)
    return cudaErrorNotReady;
  *milliseconds = static_cast<float>(end->timeNs - start->timeNs) * 1e-6f;
  return cudaSuccess;
}

// --- Graphs -----------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return self().beginCapture(stream);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  return self().endCapture(stream, graph);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus *status) {
  if (!self().owns(stream))
    return cudaErrorInvalidResourceHandle;
  *status = !stream->capture           ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long) {
  if (!graph)
    return cudaErrorInvalidValue;
  self().execs.push_back(std::make_unique<GraphExec>());
  self().execs.back()->graph = std::make_shared<const Graph>(*graph);
  *exec = self().execs.back().get();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!exec)
    return cudaErrorInvalidValue;
  return self().launchGraph(*exec, stream);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return drop(self().execs, exec) ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return drop(self().graphs, graph) ? cudaSuccess : cudaErrorInvalidValue;
}

// --- What a real runtime does not have --------------------------------------

cudaError_t enqueueKernel(dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream, std::function<void()> thread) {
  uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0)
    return cudaSuccess;
  if (threads == 0 || threads > 1024 || grid.y > 65535 || grid.z > 65535 ||
      shared > sharedBytes())
    return cudaErrorInvalidConfiguration;
  auto launch = std::make_shared<KernelLaunch>(
      KernelLaunch{grid, block, shared, std::move(thread)});
  return self().issue(stream, {std::move(launch), nullptr, nullptr});
}
cudaError_t enqueueExternal(cudaStream_t stream, ExternalFactory factory) {
  return self().issue(stream, {nullptr, nullptr, std::move(factory)});
}
int addProgress(Progress hook) {
  int handle = self().nextProgress++;
  self().progress[handle] = std::move(hook);
  return handle;
}
void removeProgress(int handle) { self().progress.erase(handle); }
void relax() {
  if (self().turn())
    return;
  for (auto &[handle, hook] : self().progress)
    if (hook.idle)
      hook.idle();
}
void setSeed(uint64_t seed) {
  self().seed = seed;
  self().seedAgain();
}
void clearSeed() { self().seed.reset(); }
void setDeviceMemory(size_t bytes) { self().memoryLimit = bytes; }
void setSharedMemory(size_t bytes) { self().sharedLimit = bytes; }
uint64_t kernelsRun() { return self().kernels; }

} // namespace reckon::cuda::emulated
