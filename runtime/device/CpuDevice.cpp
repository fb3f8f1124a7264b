//===- CpuDevice.cpp - the processor as a device --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CpuDevice.h"
#include "runtime/device/kernels/Prepare.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <omp.h>
#include <sys/mman.h>

namespace reckon::device {

namespace {

constexpr int64_t hugePage = int64_t{2} << 20;

struct IsaName {
  Isa isa;
  const char *name;
};
// Best first.
constexpr IsaName isaNames[] = {
    {Isa::Avx512, "avx512"}, {Isa::Avx2, "avx2"}, {Isa::Baseline, "baseline"}};

Result<Isa> chooseIsa(const CpuDeviceOptions &options) {
  std::string wanted = options.isa.value_or("");
  const char *environment = std::getenv("RECKON_ISA");
  if (wanted.empty() && environment)
    wanted = environment;
  for (const IsaName &candidate : isaNames) {
    bool supported = isaSupported(candidate.isa);
    if (wanted.empty() && supported)
      return candidate.isa;
    if (wanted != candidate.name)
      continue;
    if (!supported)
      return makeError(ExitCode::Environment,
                       "expected a machine with " + wanted +
                           ", got one without; unset RECKON_ISA");
    return candidate.isa;
  }
  return makeError(ExitCode::BadSpec,
                   "expected RECKON_ISA to be baseline, avx2 or avx512, got " +
                       wanted + "; unset it to use the best");
}

/// Bytes that can be had without swapping, or -1 if the system does not say.
int64_t availableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    if (key == "MemAvailable:")
      return kib * 1024;
    std::getline(file, unit);
  }
  return -1;
}

Error arenaError(int64_t bytes, const std::string &got) {
  return makeError(ExitCode::Environment,
                   "expected " + std::to_string(bytes) +
                       " bytes of memory for the arena, got " + got +
                       "; use more ranks or hosts, or a smaller micro-batch");
}

class CpuDevice final : public Device {
public:
  CpuDevice(Isa isa, int threads)
      : threads_(threads), rows_(*rowKernels(isa)),
        matmuls_(MatmulCache::create(workspace_, isa, Parallel(threads))),
        context_{rows_, Parallel(threads), workspace_, *matmuls_} {}
  ~CpuDevice() override { freeArena(); }

  std::string name() const override {
    return std::string("cpu (") + rows_.name + ", " + std::to_string(threads_) +
           (threads_ == 1 ? " thread)" : " threads)");
  }
  int threads() const override { return threads_; }

  Result<void *> allocateArena(int64_t bytes) override;
  void freeArena() override;
  int64_t arenaBytes() const override { return arenaBytes_; }

  Status copyToDevice(void *to, const void *from, int64_t bytes) override {
    return copyWithin(to, from, bytes);
  }
  Status copyToHost(void *to, const void *from, int64_t bytes) override {
    return copyWithin(to, from, bytes);
  }
  Status copyWithin(void *to, const void *from, int64_t bytes) override {
    if (bytes > 0 && to != from)
      std::memmove(to, from, static_cast<size_t>(bytes));
    return Status::success();
  }
  Status zero(void *to, int64_t bytes) override {
    context_.parallel.ranges(
        bytes, 1,
        [=](int64_t begin, int64_t end) {
          std::memset(static_cast<char *>(to) + begin, 0,
                      static_cast<size_t>(end - begin));
        },
        hugePage);
    return Status::success();
  }
  Status fillNormal(void *to, DType dtype, const NormalStream &normal,
                    int64_t first, int64_t count) override {
    RECKON_CHECK(dtype == DType::F32 || dtype == DType::BF16);
    int64_t size = dtypeBytes(dtype);
    // A number costs as much as moving hundreds of bytes.
    context_.parallel.ranges(count, 256, [=](int64_t begin, int64_t end) {
      writeNormal(static_cast<char *>(to) + begin * size, dtype == DType::BF16,
                  normal, first + begin, end - begin);
    });
    return Status::success();
  }
  Status synchronize() override { return Status::success(); }

  Result<std::unique_ptr<PreparedKernel>>
  prepare(Kernel kernel, const KernelCall &call) override {
    PrepareFunction function = prepareFunction(kernel);
    if (!function)
      return makeError(ExitCode::Incompatible,
                       "expected a kernel number between 1 and " +
                           std::to_string(kernelCount - 1) + ", got " +
                           std::to_string(static_cast<int>(kernel)) +
                           "; use the version that compiled the plan");
    return function(context_, call);
  }

  int64_t workspaceBytes() const override {
    return workspace_.bytes() + matmuls_->blockBytes();
  }

private:
  int threads_;
  const RowKernels &rows_;
  Workspace workspace_;
  std::unique_ptr<MatmulCache> matmuls_;
  CpuContext context_;
  void *mapping_ = nullptr;
  int64_t mappingBytes_ = 0;
  int64_t arenaBytes_ = 0;
};

Result<void *> CpuDevice::allocateArena(int64_t bytes) {
  RECKON_CHECK(!mapping_ && bytes >= 0);
  int64_t available = availableBytes();
  if (available >= 0 && bytes > available)
    return arenaError(bytes, std::to_string(available) + " available");
  // One huge page more, to start at a multiple of one.
  int64_t length = (bytes + hugePage - 1) / hugePage * hugePage + hugePage;
  void *mapping =
      mmap(nullptr, static_cast<size_t>(length), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return arenaError(bytes, std::string("\"") + std::strerror(errno) + "\"");
  mapping_ = mapping;
  mappingBytes_ = length;
  arenaBytes_ = bytes;
  auto address = reinterpret_cast<uintptr_t>(mapping);
  uintptr_t mask = static_cast<uintptr_t>(hugePage) - 1;
  char *arena = reinterpret_cast<char *>((address + mask) & ~mask);
  // Advice only: without huge pages everything works, somewhat slower.
  (void)madvise(arena, static_cast<size_t>(length - hugePage), MADV_HUGEPAGE);
  // Touched by the threads that will use it, so that no step meets a page
  // fault and that pages lie near their cores.
  context_.parallel.ranges(
      bytes, 1,
      [=](int64_t begin, int64_t end) {
        std::memset(arena + begin, 0, static_cast<size_t>(end - begin));
      },
      hugePage);
  return arena;
}

void CpuDevice::freeArena() {
  if (mapping_)
    munmap(mapping_, static_cast<size_t>(mappingBytes_));
  mapping_ = nullptr;
  mappingBytes_ = arenaBytes_ = 0;
}

} // namespace

Result<std::unique_ptr<Device>> makeCpuDevice(CpuDeviceOptions options) {
  Result<Isa> isa = chooseIsa(options);
  if (!isa)
    return isa.error();
  if (options.threads > 0)
    omp_set_num_threads(options.threads);
  return std::unique_ptr<Device>(
      std::make_unique<CpuDevice>(*isa, omp_get_max_threads()));
}

} // namespace reckon::device
