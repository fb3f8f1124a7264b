//===- CudaDevice.cpp - one GPU, or its emulation -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/CudaDevice.h"

#include "runtime/cuda/Check.h"
#include "runtime/cuda/CudaContext.h"
#include "runtime/cuda/Libraries.h"
#include "runtime/cuda/Prepare.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace reckon::cuda {

namespace {

/// A step's scalars and metrics fit many times; states pass in a few hundred
/// parts a gigabyte.
constexpr int64_t stagingBytes = 4 << 20;

class CudaDevice final : public device::StreamDevice {
public:
  explicit CudaDevice(const CudaDeviceOptions &options) : options_(options) {}
  ~CudaDevice() override;

  Status open();

  // --- Device ---------------------------------------------------------------
  std::string name() const override { return name_; }
  int threads() const override { return 1; }
  Result<void *> allocateArena(int64_t bytes) override;
  void freeArena() override;
  int64_t arenaBytes() const override { return arenaBytes_; }
  Status copyToDevice(void *to, const void *from, int64_t bytes) override;
  Status copyToHost(void *to, const void *from, int64_t bytes) override;
  Status copyWithin(void *to, const void *from, int64_t bytes) override {
    RECKON_TRY(RECKON_CUDA(cudaMemcpy(to, from, static_cast<size_t>(bytes),
                                      cudaMemcpyDeviceToDevice)));
    // Copies within the device return before they are done.
    return synchronize();
  }
  Status zero(void *to, int64_t bytes) override {
    RECKON_TRY(RECKON_CUDA(
        cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), housekeeping_)));
    return RECKON_CUDA(cudaStreamSynchronize(housekeeping_));
  }
  Status fillNormal(void *to, device::DType dtype,
                    const device::NormalStream &normal, int64_t first,
                    int64_t count) override {
    RECKON_CHECK(dtype == device::DType::F32 || dtype == device::DType::BF16);
    return RECKON_CUDA(cuda::fillNormal(storageOf(dtype), to, normal, first,
                                        count, housekeeping_));
  }
  Status synchronize() override { return RECKON_CUDA(cudaDeviceSynchronize()); }
  Result<std::unique_ptr<device::PreparedKernel>>
  prepare(device::Kernel kernel, const device::KernelCall &call) override;
  int64_t workspaceBytes() const override { return workspace_.bytes(); }

  // --- StreamDevice ---------------------------------------------------------
  Result<device::DeviceMemory> memory() override;
  Status openStreams(std::span<const std::string> names) override;
  void *nativeStream(int stream) const override { return at(stream); }
  Result<uint32_t> makeEvent(bool timed) override;
  Status record(uint32_t event, int stream) override {
    return RECKON_CUDA(cudaEventRecord(events_[event], at(stream)));
  }
  Status wait(uint32_t event, int stream) override {
    return RECKON_CUDA(cudaStreamWaitEvent(at(stream), events_[event], 0));
  }
  Result<bool> reached(uint32_t event) override {
    return ready(cudaEventQuery(events_[event]));
  }
  Result<double> secondsBetween(uint32_t from, uint32_t to) override;
  Result<void *> pinned(int64_t bytes) override;
  Status upload(void *to, const void *from, int64_t bytes,
                int stream) override {
    return RECKON_CUDA(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes),
                                       cudaMemcpyHostToDevice, at(stream)));
  }
  Status copyOnStream(void *to, const void *from, int64_t bytes,
                      int stream) override {
    if (to == from || bytes == 0)
      return Status::success();
    return RECKON_CUDA(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes),
                                       cudaMemcpyDeviceToDevice, at(stream)));
  }
  Status beginCapture(int stream) override {
    return RECKON_CUDA(
        cudaStreamBeginCapture(at(stream), cudaStreamCaptureModeThreadLocal));
  }
  Result<uint32_t> endCapture(int stream) override;
  Status launchGraph(uint32_t graph, int stream) override {
    return RECKON_CUDA(cudaGraphLaunch(graphs_[graph], at(stream)));
  }
  Result<bool> finished() override;
  void relax() override { cuda::relax(); }
  void abandon() override { abandoned_ = true; }

private:
  cudaStream_t at(int stream) const {
    return streams_[static_cast<size_t>(stream)];
  }
  static Result<bool> ready(cudaError_t error) {
    if (error == cudaSuccess)
      return true;
    if (error == cudaErrorNotReady)
      return false;
    return cudaFailure(error, "the work on a stream");
  }

  CudaDeviceOptions options_;
  std::string name_;
  bool abandoned_ = false;
  void *arena_ = nullptr;
  int64_t arenaBytes_ = 0;
  device::DeviceMemory atOpen_;
  cudaStream_t housekeeping_ = nullptr;
  void *staging_ = nullptr; ///< pinned, stagingBytes
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<cudaGraphExec_t> graphs_;
  std::vector<void *> pinned_;
  Workspace workspace_;
  Libraries libraries_;
  std::unique_ptr<CudaContext> context_;
};

CudaDevice::~CudaDevice() {
  if (abandoned_) {
    workspace_.abandon();
    return;
  }
  // What is still under way may use all of it. Errors were told already.
  (void)cudaDeviceSynchronize();
  for (cudaGraphExec_t graph : graphs_)
    (void)cudaGraphExecDestroy(graph);
  for (cudaEvent_t event : events_)
    (void)cudaEventDestroy(event);
  for (cudaStream_t stream : streams_)
    (void)cudaStreamDestroy(stream);
  if (housekeeping_)
    (void)cudaStreamDestroy(housekeeping_);
  for (void *memory : pinned_)
    (void)cudaFreeHost(memory);
  freeArena();
}

Status CudaDevice::open() {
  RECKON_TRY(RECKON_CUDA(cudaSetDevice(options_.device)));
  cudaDeviceProp prop;
  RECKON_TRY(RECKON_CUDA(cudaGetDeviceProperties(&prop, options_.device)));
  RECKON_TRY(RECKON_CUDA(
      cudaStreamCreateWithFlags(&housekeeping_, cudaStreamNonBlocking)));
  Result<void *> staging = pinned(stagingBytes);
  if (!staging)
    return staging.error();
  staging_ = *staging;
  Result<device::DeviceMemory> before = memory();
  if (!before)
    return before.error();
  Result<Libraries> libraries = makeLibraries(workspace_);
  if (!libraries)
    return libraries.error();
  libraries_ = std::move(*libraries);
  Result<device::DeviceMemory> after = memory();
  if (!after)
    return after.error();
  atOpen_.context = before->total - before->free;
  atOpen_.libraries = before->free - after->free;
  name_ = std::string(deviceKind) + " (" + prop.name + ", sm_" +
          std::to_string(prop.major) + std::to_string(prop.minor) + ", " +
          std::to_string(prop.multiProcessorCount) + " SMs, " +
          libraries_.names + ")";
  context_.reset(new CudaContext{
      [this](int stream) -> Result<cudaStream_t> {
        if (stream < 0 || static_cast<size_t>(stream) >= streams_.size())
          return makeError(
              ExitCode::Incompatible,
              "expected one of " + std::to_string(streams_.size()) +
                  " streams, got stream " + std::to_string(stream) +
                  "; compile the plan again");
        return at(stream);
      },
      *libraries_.matmul, *libraries_.attention, workspace_});
  return Status::success();
}

// --- Memory -----------------------------------------------------------------

Result<void *> CudaDevice::allocateArena(int64_t bytes) {
  RECKON_CHECK(!arena_ && bytes >= 0);
  size_t free = 0, total = 0;
  RECKON_TRY(RECKON_CUDA(cudaMemGetInfo(&free, &total)));
  if (static_cast<size_t>(bytes) > free)
    return makeError(ExitCode::Environment,
                     "expected " + std::to_string(bytes) +
                         " bytes of GPU memory for the arena, got " +
                         std::to_string(free) + " free of " +
                         std::to_string(total) +
                         "; end what else runs on this GPU, or compile with a "
                         "smaller constraints.memory_limit_gib");
  if (bytes == 0)
    return static_cast<void *>(nullptr);
  auto size = static_cast<size_t>(bytes);
  RECKON_TRY(options_.arena.allocate ? options_.arena.allocate(&arena_, size)
                                     : RECKON_CUDA(cudaMalloc(&arena_, size)));
  arenaBytes_ = bytes;
  return arena_;
}

void CudaDevice::freeArena() {
  // An error here is one of work that was told elsewhere.
  if (arena_ && !abandoned_)
    (void)(options_.arena.release ? options_.arena.release(arena_)
                                  : RECKON_CUDA(cudaFree(arena_)))
        .ok();
  arena_ = nullptr;
  arenaBytes_ = 0;
}

// Through pinned memory: pageable memory would be staged by the driver, behind
// whatever else it does on the legacy stream.

Status CudaDevice::copyToDevice(void *to, const void *from, int64_t bytes) {
  for (int64_t done = 0; done < bytes; done += stagingBytes) {
    auto size = static_cast<size_t>(std::min(stagingBytes, bytes - done));
    std::memcpy(staging_, static_cast<const char *>(from) + done, size);
    RECKON_TRY(RECKON_CUDA(
        cudaMemcpyAsync(static_cast<char *>(to) + done, staging_, size,
                        cudaMemcpyHostToDevice, housekeeping_)));
    RECKON_TRY(RECKON_CUDA(cudaStreamSynchronize(housekeeping_)));
  }
  return Status::success();
}

Status CudaDevice::copyToHost(void *to, const void *from, int64_t bytes) {
  for (int64_t done = 0; done < bytes; done += stagingBytes) {
    auto size = static_cast<size_t>(std::min(stagingBytes, bytes - done));
    RECKON_TRY(RECKON_CUDA(
        cudaMemcpyAsync(staging_, static_cast<const char *>(from) + done, size,
                        cudaMemcpyDeviceToHost, housekeeping_)));
    RECKON_TRY(RECKON_CUDA(cudaStreamSynchronize(housekeeping_)));
    std::memcpy(static_cast<char *>(to) + done, staging_, size);
  }
  return Status::success();
}

Result<device::DeviceMemory> CudaDevice::memory() {
  size_t free = 0, total = 0;
  RECKON_TRY(RECKON_CUDA(cudaMemGetInfo(&free, &total)));
  device::DeviceMemory now = atOpen_;
  now.free = static_cast<int64_t>(free);
  now.total = static_cast<int64_t>(total);
  return now;
}

Result<void *> CudaDevice::pinned(int64_t bytes) {
  void *memory = nullptr;
  RECKON_TRY(RECKON_CUDA(cudaMallocHost(&memory, static_cast<size_t>(bytes))));
  pinned_.push_back(memory);
  return memory;
}

// --- Kernels ----------------------------------------------------------------

Result<std::unique_ptr<device::PreparedKernel>>
CudaDevice::prepare(device::Kernel kernel, const device::KernelCall &call) {
  PrepareFunction function = prepareFunction(kernel);
  if (!function)
    return makeError(ExitCode::Incompatible,
                     "expected a kernel number between 1 and " +
                         std::to_string(device::kernelCount - 1) + ", got " +
                         std::to_string(static_cast<int>(kernel)) +
                         "; use the version that compiled the plan");
  return function(*context_, call);
}

// --- Streams ----------------------------------------------------------------

Status CudaDevice::openStreams(std::span<const std::string> names) {
  RECKON_CHECK(streams_.empty());
  int least = 0, greatest = 0;
  RECKON_TRY(RECKON_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
  for (const std::string &name : names) {
    // Communication first: its kernels are few and everybody waits for them.
    int priority = name == "compute" || name == "load" ? least : greatest;
    cudaStream_t stream = nullptr;
    RECKON_TRY(RECKON_CUDA(cudaStreamCreateWithPriority(
        &stream, cudaStreamNonBlocking, priority)));
    streams_.push_back(stream);
  }
  return Status::success();
}

Result<uint32_t> CudaDevice::makeEvent(bool timed) {
  cudaEvent_t event = nullptr;
  RECKON_TRY(RECKON_CUDA(cudaEventCreateWithFlags(
      &event, timed ? cudaEventDefault : cudaEventDisableTiming)));
  events_.push_back(event);
  return static_cast<uint32_t>(events_.size() - 1);
}

Result<double> CudaDevice::secondsBetween(uint32_t from, uint32_t to) {
  float milliseconds = 0;
  RECKON_TRY(RECKON_CUDA(
      cudaEventElapsedTime(&milliseconds, events_[from], events_[to])));
  return 1e-3 * static_cast<double>(milliseconds);
}

Result<uint32_t> CudaDevice::endCapture(int stream) {
  cudaGraph_t graph = nullptr;
  RECKON_TRY(RECKON_CUDA(cudaStreamEndCapture(at(stream), &graph)));
  cudaGraphExec_t exec = nullptr;
  Status made = RECKON_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  RECKON_TRY(RECKON_CUDA(cudaGraphDestroy(graph)));
  RECKON_TRY(made);
  graphs_.push_back(exec);
  return static_cast<uint32_t>(graphs_.size() - 1);
}

Result<bool> CudaDevice::finished() {
  for (cudaStream_t stream : streams_) {
    Result<bool> done = ready(cudaStreamQuery(stream));
    if (!done || !*done)
      return done;
  }
  return true;
}

} // namespace

Result<std::unique_ptr<device::StreamDevice>>
makeCudaDevice(const CudaDeviceOptions &options) {
  auto made = std::make_unique<CudaDevice>(options);
  RECKON_TRY(made->open());
  return std::unique_ptr<device::StreamDevice>(std::move(made));
}

} // namespace reckon::cuda
