//===- Accelerators.h - the catalogue of devices --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The figures are data: accelerators.csv in this folder, compiled into the
// library, with the source of each row.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_ACCELERATORS_H
#define RECKON_FRONTENDS_SPEC_ACCELERATORS_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Nominal figures of one device. Peaks are dense, in 1e12 FLOP/s, 0 where the
/// device has no such mode; bandwidths in 1e9 bytes/s per direction.
struct Accelerator {
  std::string name; ///< the catalogue's name, or `custom`
  std::string chip; ///< the vendor's name
  double bf16DenseTflops = 0;
  double fp8DenseTflops = 0;
  double fp32Tflops = 0;
  double memGb = 0; ///< marketing gigabytes, which are GiB on these parts
  double memBwGbs = 0;
  double intraNodeBwGbs = 0;
  int64_t intraNodeSize = 1; ///< devices that share the fast link
  double interNodeBwGbsPerGpu = 0;
  double memoryReserveGib = 0; ///< default of cluster.memory_reserve_gib
  bool peakIsAssumed = false;  ///< no peak is published; see source
  std::string source;

  int64_t memoryBytes() const {
    return static_cast<int64_t>(memGb * 1073741824.0);
  }
  bool isCpu() const { return name == "cpu"; }
};

/// Reads the catalogue's CSV form. Errors name the line and column of the
/// table (ExitCode::Internal, since the text is ours).
Result<std::vector<Accelerator>> parseAccelerators(std::string_view csv);

/// The built-in catalogue, in the file's order.
const std::vector<Accelerator> &acceleratorCatalogue();

/// The catalogue's entry, or null.
const Accelerator *findAccelerator(std::string_view name);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_ACCELERATORS_H
