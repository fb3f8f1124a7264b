//===- CountingAllocator.h - counts operator new --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_EXEC_COUNTINGALLOCATOR_H
#define RECKON_TESTS_UNIT_EXEC_COUNTINGALLOCATOR_H

#include <cstdint>

namespace reckon::test {

/// Calls of operator new by this thread so far, by who made them.
struct Allocations {
  int64_t own = 0;    ///< Reckon, tests and the standard library
  int64_t oneDnn = 0; ///< from inside libdnnl
};

/// Counts from now on (true) or stops; returns what was counted before.
Allocations countAllocations(bool enable);

} // namespace reckon::test

#endif // RECKON_TESTS_UNIT_EXEC_COUNTINGALLOCATOR_H
