//===- Compare.h - how far two results are apart --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_COMPARE_H
#define RECKON_RUNTIME_SELFTEST_COMPARE_H

#include "runtime/selftest/KernelCase.h"

namespace reckon::selftest {

/// What separates two results of one output. Errors are fractions of what the
/// tolerance allows. Equal bits give 0, a NaN on either side infinity.
struct Difference {
  double worst = 0.0;           ///< largest element's
  double norm = 0.0;            ///< of the whole
  int64_t element = 0;          ///< where the largest is
  double got = 0.0, want = 0.0; ///< there

  double error() const { return worst > norm ? worst : norm; }
  bool within() const { return error() <= 1.0; }
};

/// Compares results of type and size `operand`.
Difference compare(const device::Operand &operand, const Tolerance &tolerance,
                   const void *got, const void *want);

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_COMPARE_H
