//===- Workspace.h - memory that prepared kernels share -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_WORKSPACE_H
#define RECKON_RUNTIME_DEVICE_KERNELS_WORKSPACE_H

#include <cstdint>
#include <memory>
#include <new>

namespace reckon::device {

/// One block, as large as the most demanding kernel: kernels of a device run
/// one after the other. It grows while kernels are prepared, so they ask for
/// its address when they run.
class Workspace {
public:
  static constexpr std::align_val_t alignment{64};

  void reserve(int64_t bytes) {
    if (bytes <= bytes_)
      return;
    block_.reset();
    block_.reset(::operator new(static_cast<size_t>(bytes), alignment));
    bytes_ = bytes;
  }
  void *data() const { return block_.get(); }
  float *floats() const { return static_cast<float *>(block_.get()); }
  int64_t bytes() const { return bytes_; }

private:
  struct Free {
    void operator()(void *block) const { ::operator delete(block, alignment); }
  };
  std::unique_ptr<void, Free> block_;
  int64_t bytes_ = 0;
};

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_WORKSPACE_H
