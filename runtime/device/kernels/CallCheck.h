//===- CallCheck.h - a kernel call against its conventions ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_CALLCHECK_H
#define RECKON_RUNTIME_DEVICE_KERNELS_CALLCHECK_H

#include "runtime/device/Kernels.h"

#include <optional>
#include <string>

namespace reckon::device {

/// Checks a call against the conventions; keeps the first fault.
class CallCheck {
public:
  /// Counts of operands and constants are checked here. Nothing else may be
  /// looked at unless ok().
  CallCheck(Kernel kernel, const KernelCall &call);

  bool ok() const { return !error_; }
  Error error() const { return *error_; }
  /// What was read, or the first fault.
  template <typename Call> Result<Call> result(const Call &call) const {
    if (error_)
      return *error_;
    return call;
  }

  /// args[index], at least `least`.
  int64_t arg(int index, const char *name, int64_t least = 1);
  /// args[index], which must be 0 or 1.
  bool flag(int index, const char *name);
  /// How often `each` elements fit into the operand; they must fit evenly.
  int64_t rowsOfInput(int index, const char *name, int64_t each);
  /// The type in which activations and parameters are stored: that of an
  /// input, f32 or bf16.
  DType storage(int index, const char *name);
  void input(int index, const char *name, int64_t elements,
             DType dtype = DType::F32);
  void output(int index, const char *name, int64_t elements,
              DType dtype = DType::F32);
  /// An f64 block (metrics, scalars) of at least this many elements.
  void block(const Operand &operand, const char *name, int64_t least);
  void require(bool condition, const std::string &expected,
               const std::string &got);

private:
  void operand(const Operand &operand, const char *name, int64_t elements,
               DType dtype);

  const KernelCall &call_;
  std::string_view name_;
  std::optional<Error> error_;
};

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_CALLCHECK_H
