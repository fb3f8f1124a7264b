//===- FaultyDevice.h - the CPU device with one kernel that is wrong ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_SELFTEST_FAULTYDEVICE_H
#define RECKON_TESTS_UNIT_SELFTEST_FAULTYDEVICE_H

#include "runtime/device/CpuDevice.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

namespace reckon::test {

/// One operand of a call that a fault may look at and change.
struct Touched {
  device::Operand operand;
  void *data = nullptr;
  std::vector<std::byte> before; ///< its bytes before the call

  int64_t bytes() const {
    return operand.elements * device::dtypeBytes(operand.dtype);
  }
  double get(int64_t i) const {
    if (operand.dtype == device::DType::F64)
      return static_cast<double *>(data)[i];
    if (operand.dtype == device::DType::BF16)
      return std::bit_cast<float>(uint32_t(static_cast<uint16_t *>(data)[i])
                                  << 16);
    return static_cast<float *>(data)[i];
  }
  /// Moves an element by a fraction of its value.
  void scale(int64_t i, double factor) {
    double value = get(i) * factor;
    if (operand.dtype == device::DType::F64)
      static_cast<double *>(data)[i] = value;
    else if (operand.dtype == device::DType::BF16)
      static_cast<uint16_t *>(data)[i] = static_cast<uint16_t>(
          std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
    else
      static_cast<float *>(data)[i] = static_cast<float>(value);
  }
  /// The element of the largest finite magnitude that is not 0, or -1.
  int64_t largest() const {
    int64_t found = -1;
    for (int64_t i = 0; i < operand.elements; ++i)
      if (std::isfinite(get(i)) && get(i) != 0.0 &&
          (found < 0 || std::abs(get(i)) > std::abs(get(found))))
        found = i;
    return found;
  }
};

/// What a wrong kernel does to its outputs after the right one has run;
/// `run` counts its runs from 0.
using Fault = std::function<void(std::vector<Touched> &outputs, int64_t run)>;

class FaultyDevice final : public device::Device {
public:
  FaultyDevice(std::unique_ptr<device::Device> inner, device::Kernel kernel,
               Fault fault)
      : inner_(std::move(inner)), kernel_(kernel), fault_(std::move(fault)) {}

  std::string name() const override { return "faulty " + inner_->name(); }
  int threads() const override { return inner_->threads(); }
  Result<void *> allocateArena(int64_t bytes) override {
    return inner_->allocateArena(bytes);
  }
  void freeArena() override { inner_->freeArena(); }
  int64_t arenaBytes() const override { return inner_->arenaBytes(); }
  Status copyToDevice(void *to, const void *from, int64_t bytes) override {
    return inner_->copyToDevice(to, from, bytes);
  }
  Status copyToHost(void *to, const void *from, int64_t bytes) override {
    return inner_->copyToHost(to, from, bytes);
  }
  Status copyWithin(void *to, const void *from, int64_t bytes) override {
    return inner_->copyWithin(to, from, bytes);
  }
  Status zero(void *to, int64_t bytes) override {
    return inner_->zero(to, bytes);
  }
  Status synchronize() override { return inner_->synchronize(); }
  int64_t workspaceBytes() const override { return inner_->workspaceBytes(); }

  Result<std::unique_ptr<device::PreparedKernel>>
  prepare(device::Kernel kernel, const device::KernelCall &call) override {
    auto prepared = inner_->prepare(kernel, call);
    if (!prepared || kernel != kernel_)
      return prepared;
    return std::unique_ptr<device::PreparedKernel>(
        std::make_unique<Wrong>(std::move(*prepared), call, *this));
  }

private:
  class Wrong final : public device::PreparedKernel {
  public:
    Wrong(std::unique_ptr<device::PreparedKernel> inner,
          const device::KernelCall &call, FaultyDevice &device)
        : inner_(std::move(inner)), inputs_(call.inputs.size()),
          outputs_(call.outputs.begin(), call.outputs.end()), device_(device) {}

    Status run(std::span<void *const> pointers) override {
      std::vector<Touched> touched;
      for (size_t i = 0; i < outputs_.size(); ++i) {
        Touched output{outputs_[i], pointers[inputs_ + i]};
        auto *data = static_cast<std::byte *>(output.data);
        output.before.assign(data, data + output.bytes());
        touched.push_back(std::move(output));
      }
      RECKON_TRY(inner_->run(pointers));
      device_.fault_(touched, device_.runs_++);
      return Status::success();
    }

  private:
    std::unique_ptr<device::PreparedKernel> inner_;
    size_t inputs_;
    std::vector<device::Operand> outputs_;
    FaultyDevice &device_;
  };

  std::unique_ptr<device::Device> inner_;
  device::Kernel kernel_;
  Fault fault_;
  int64_t runs_ = 0;
};

} // namespace reckon::test

#endif // RECKON_TESTS_UNIT_SELFTEST_FAULTYDEVICE_H
