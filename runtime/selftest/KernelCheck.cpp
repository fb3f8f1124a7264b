//===- KernelCheck.cpp - a device's kernels against the CPU's -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/KernelCheck.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

namespace reckon::selftest {

using device::Operand;

namespace {

/// As plans align their buffers.
constexpr int64_t kAlignment = 256;
constexpr int kGuard = 0xa5;

int64_t bytesOf(const Operand &operand) {
  return operand.elements * device::dtypeBytes(operand.dtype);
}

} // namespace

class KernelChecker::Block {
public:
  explicit Block(int64_t bytes)
      : bytes_(static_cast<std::byte *>(::operator new(
            static_cast<size_t>(bytes), std::align_val_t(kAlignment)))) {}
  ~Block() { ::operator delete(bytes_, std::align_val_t(kAlignment)); }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;
  std::byte *data() { return bytes_; }

private:
  std::byte *bytes_;
};

struct KernelChecker::Layout {
  std::vector<Operand> inputs, outputs;
  std::vector<int64_t> offsets; ///< inputs, then outputs
  int64_t bytes = 0;

  explicit Layout(const KernelCase &kernelCase) {
    auto place = [&](const Operand &operand) {
      offsets.push_back(bytes);
      // At least one guard byte behind each operand.
      bytes += (bytesOf(operand) / kAlignment + 1) * kAlignment;
    };
    bytes = kAlignment;
    for (const CaseInput &input : kernelCase.inputs) {
      inputs.push_back(input.operand);
      place(input.operand);
    }
    for (const CaseOutput &output : kernelCase.outputs) {
      outputs.push_back(output.operand);
      if (output.inPlaceOf >= 0)
        offsets.push_back(offsets[static_cast<size_t>(output.inPlaceOf)]);
      else
        place(output.operand);
    }
  }

  std::vector<void *> pointers(std::byte *base) const {
    std::vector<void *> all;
    for (int64_t offset : offsets)
      all.push_back(base + offset);
    return all;
  }
  device::KernelCall call(const KernelCase &kernelCase) const {
    return {inputs, outputs, kernelCase.args, kernelCase.floats};
  }
  int64_t outputOffset(size_t index) const {
    return offsets[inputs.size() + index];
  }
};

KernelChecker::KernelChecker(device::Device &reference, device::Device &device,
                             uint64_t seed)
    : reference_(reference), device_(device), seed_(seed) {}

KernelChecker::~KernelChecker() {
  if (arena_)
    device_.freeArena();
}

Result<std::unique_ptr<KernelChecker>>
KernelChecker::create(device::Device &reference, device::Device &device,
                      uint64_t seed, const std::vector<KernelCase> &cases) {
  std::unique_ptr<KernelChecker> made(
      new KernelChecker(reference, device, seed));
  int64_t bytes = kAlignment;
  for (const KernelCase &kernelCase : cases)
    bytes = std::max(bytes, Layout(kernelCase).bytes);
  Result<void *> arena = device.allocateArena(bytes);
  if (!arena)
    return arena.error();
  made->arena_ = static_cast<std::byte *>(*arena);
  for (auto *block : {&made->before_, &made->want_, &made->got_, &made->again_})
    *block = std::make_unique<Block>(bytes);
  return made;
}

/// Writes the operands' first values into before_.
Status KernelChecker::fill(const KernelCase &kernelCase, const Layout &layout) {
  std::memset(before_->data(), kGuard, static_cast<size_t>(layout.bytes));
  std::vector<void *> operands = layout.pointers(before_->data());
  auto one = [&](const Operand &operand, const Content &content, void *at) {
    fillOperand(operand, content, seed_ + (++filled_ << 32), at);
  };
  for (size_t i = 0; i < kernelCase.inputs.size(); ++i)
    one(layout.inputs[i], kernelCase.inputs[i].content, operands[i]);
  for (size_t i = 0; i < kernelCase.outputs.size(); ++i)
    if (kernelCase.outputs[i].inPlaceOf < 0)
      one(layout.outputs[i], kernelCase.outputs[i].before,
          operands[layout.inputs.size() + i]);
  if (kernelCase.compute)
    return kernelCase.compute(reference_, operands);
  return Status::success();
}

Status KernelChecker::runOnDevice(const KernelCase &kernelCase,
                                  const Layout &layout, Block &result) {
  RECKON_TRY(device_.copyToDevice(arena_, before_->data(), layout.bytes));
  RECKON_TRY(runKernel(device_, kernelCase.kernel, layout.call(kernelCase),
                       layout.pointers(arena_)));
  return device_.copyToHost(result.data(), arena_, layout.bytes);
}

std::string KernelChecker::faultOf(const KernelCase &kernelCase,
                                   double &error) {
  Layout layout(kernelCase);
  auto bytes = static_cast<size_t>(layout.bytes);
  Status filled = fill(kernelCase, layout);
  if (filled) {
    std::memcpy(want_->data(), before_->data(), bytes);
    filled = runKernel(reference_, kernelCase.kernel, layout.call(kernelCase),
                       layout.pointers(want_->data()));
  }
  if (!filled)
    return "the CPU device refuses it: " + filled.error().message;
  if (Status ran = runOnDevice(kernelCase, layout, *got_); !ran)
    return "failed: " + ran.error().message;
  if (Status ran = runOnDevice(kernelCase, layout, *again_); !ran)
    return "failed when run again: " + ran.error().message;

  std::string fault;
  for (size_t i = 0; i < layout.outputs.size(); ++i) {
    std::byte *got = got_->data() + layout.outputOffset(i);
    Difference found =
        compare(layout.outputs[i], kernelCase.outputs[i].tolerance, got,
                want_->data() + layout.outputOffset(i));
    error = std::max(error, found.error());
    if (!found.within() && fault.empty()) {
      char text[200];
      std::snprintf(text, sizeof text,
                    "output %zu differs: element %lld is %.9g, expected %.9g "
                    "(%.3g times the tolerance; all of it %.3g times)",
                    i, static_cast<long long>(found.element), found.got,
                    found.want, found.worst, found.norm);
      fault = text;
    }
  }
  if (!fault.empty())
    return fault;
  if (std::memcmp(got_->data(), again_->data(), bytes) != 0)
    return "not deterministic: two runs on the same operands differ";
  // Whatever is no output must be as before.
  for (size_t i = 0; i < layout.outputs.size(); ++i)
    std::memcpy(got_->data() + layout.outputOffset(i),
                before_->data() + layout.outputOffset(i),
                static_cast<size_t>(bytesOf(layout.outputs[i])));
  auto [changed, original] =
      std::mismatch(got_->data(), got_->data() + bytes, before_->data());
  if (changed != got_->data() + bytes)
    return "wrote outside its outputs, " +
           std::to_string(changed - got_->data()) +
           " bytes from the start of its operands";
  return "";
}

KernelOutcome KernelChecker::check(const KernelCase &kernelCase) {
  KernelOutcome outcome{kernelCase.kernel, kernelCase.dtype, kernelCase.sizes};
  outcome.fault = faultOf(kernelCase, outcome.error);
  return outcome;
}

} // namespace reckon::selftest
