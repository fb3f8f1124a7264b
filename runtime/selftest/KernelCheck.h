//===- KernelCheck.h - a device's kernels against the CPU's ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_KERNELCHECK_H
#define RECKON_RUNTIME_SELFTEST_KERNELCHECK_H

#include "runtime/selftest/Compare.h"
#include "runtime/selftest/KernelCase.h"

#include <memory>
#include <string>
#include <vector>

namespace reckon::selftest {

/// What became of one case.
struct KernelOutcome {
  device::Kernel kernel = device::Kernel::None;
  device::DType dtype = device::DType::F32;
  std::string sizes;
  /// Of all outputs, as fractions of the tolerance.
  double error = 0.0;
  /// What is wrong, in a sentence; empty: nothing.
  std::string fault;
  bool passed() const { return fault.empty(); }
};

/// Runs cases on two devices. On the device under test they run twice, from
/// the same operands: the results must have equal bits. What the kernel may not
/// write, its inputs and the guard bytes around every operand, must stay as it
/// was; what it must write is NaN before.
class KernelChecker {
public:
  /// Allocates the arena of `device` for the largest of the cases. `reference`
  /// works on host memory. `seed` chooses the operands' values.
  static Result<std::unique_ptr<KernelChecker>>
  create(device::Device &reference, device::Device &device, uint64_t seed,
         const std::vector<KernelCase> &cases);
  ~KernelChecker();
  KernelChecker(const KernelChecker &) = delete;
  KernelChecker &operator=(const KernelChecker &) = delete;

  KernelOutcome check(const KernelCase &kernelCase);

private:
  /// Host memory, aligned as the arena.
  class Block;
  /// Where the operands of a case lie in a block.
  struct Layout;

  KernelChecker(device::Device &reference, device::Device &device,
                uint64_t seed);
  std::string faultOf(const KernelCase &kernelCase, double &error);
  Status fill(const KernelCase &kernelCase, const Layout &layout);
  Status runOnDevice(const KernelCase &kernelCase, const Layout &layout,
                     Block &result);

  device::Device &reference_;
  device::Device &device_;
  uint64_t seed_;
  uint64_t filled_ = 0; ///< operands so far: each has its own random numbers
  std::byte *arena_ = nullptr;
  std::unique_ptr<Block> before_, want_, got_, again_;
};

/// Writes random values of this content; Computed stays as it is.
void fillOperand(const device::Operand &operand, const Content &content,
                 uint64_t seed, void *values);

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_KERNELCHECK_H
