//===- KernelCase.h - one call of a kernel with made-up operands ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The self-test calls every kernel of runtime/device/Kernels.h on random
// operands, on the device under test and on the CPU device. A case says which
// sizes, what the operands hold, and how far results may be apart.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_KERNELCASE_H
#define RECKON_RUNTIME_SELFTEST_KERNELCASE_H

#include "runtime/device/Device.h"

#include <functional>
#include <string>
#include <vector>

namespace reckon::selftest {

/// How large the operands and plans are: small ones for a device that a
/// processor emulates, full ones for a GPU.
enum class Sizes { Small, Full };

/// What an operand holds before the call.
struct Content {
  enum class Kind {
    Poison,   ///< NaN: whatever the kernel does not write stays visible
    Zero,     ///< zeros
    Normal,   ///< bell-shaped around 0 with standard deviation `scale`
    Positive, ///< even in (0, scale)
    Tokens,   ///< integers in [first, first + count)
    Computed, ///< written by the case's `compute`
  };
  Kind kind = Kind::Normal;
  double scale = 1.0;
  int64_t first = 0, count = 0;
};

/// How far two results of one output may be apart. An element's error counts
/// as |got - want| / (relative * |want| + absolute * RMS of want); the error of
/// the whole as the norm of the difference over `norm` * the norm of want. Both
/// must stay within 1. All zero: equal bits.
struct Tolerance {
  double relative = 0.0, absolute = 0.0, norm = 0.0;
  /// The RMS counts as at least this: a few elements may all be near 0 by
  /// chance, where terms of ordinary size cancel.
  double ordinary = 0.0;
  /// Scratch: whatever a device leaves there, it is not compared.
  bool scratch = false;
  bool exact() const { return norm == 0.0; }
};

struct CaseInput {
  device::Operand operand;
  Content content;
};

struct CaseOutput {
  device::Operand operand;
  Tolerance tolerance;
  /// Other than Poison: the kernel adds to it or updates it.
  Content before = {Content::Kind::Poison};
  /// The output is this input's memory; -1: memory of its own.
  int inPlaceOf = -1;
};

struct KernelCase {
  device::Kernel kernel = device::Kernel::None;
  std::string sizes;   ///< "T33 H100"
  device::DType dtype; ///< storage of activations and parameters
  std::vector<CaseInput> inputs;
  std::vector<CaseOutput> outputs;
  std::vector<int64_t> args;
  std::vector<double> floats;
  /// Fills the Computed operands. Gets the addresses of all operands in host
  /// memory, inputs first, and the CPU device.
  std::function<Status(device::Device &cpu, std::span<void *const> operands)>
      compute;

  /// "rms_norm bf16 T33 H100".
  std::string name() const;
};

/// Prepares and runs one call on operands where `device` can reach them.
Status runKernel(device::Device &device, device::Kernel kernel,
                 const device::KernelCall &call,
                 std::span<void *const> operands);

/// Cases of every kernel, in the order of the kernels' numbers, f32 before
/// bf16.
std::vector<KernelCase> kernelCases(Sizes sizes);

// The parts of it.
void addRowCases(Sizes sizes, device::DType dtype,
                 std::vector<KernelCase> &cases);
void addModelCases(Sizes sizes, device::DType dtype,
                   std::vector<KernelCase> &cases);
void addLossCases(Sizes sizes, device::DType dtype,
                  std::vector<KernelCase> &cases);
void addFp8Cases(Sizes sizes, std::vector<KernelCase> &cases);

// --- For writing cases ------------------------------------------------------

inline Content normal(double scale = 1.0) {
  return {Content::Kind::Normal, scale};
}
inline Content positive(double below) {
  return {Content::Kind::Positive, below};
}
inline Content tokens(int64_t first, int64_t count) {
  return {Content::Kind::Tokens, 1.0, first, count};
}
inline Content computed() { return {Content::Kind::Computed}; }
inline Content zero() { return {Content::Kind::Zero}; }

/// Results that are rounded once from the same number: copies, one addition.
inline constexpr Tolerance sameBits = {};
/// A few operations on each element, with another exponential or root.
Tolerance pointwise(device::DType stored);
/// A sum of `length` products in f32, in another order.
Tolerance summed(device::DType stored, int64_t length);

/// "T33 H100" from names and numbers.
std::string
sizesText(std::initializer_list<std::pair<const char *, int64_t>> sizes);

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_KERNELCASE_H
