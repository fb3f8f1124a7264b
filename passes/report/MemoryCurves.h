//===- MemoryCurves.h - memory over the time of a step as SVG -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_REPORT_MEMORYCURVES_H
#define RECKON_PASSES_REPORT_MEMORYCURVES_H

#include <cstdint>
#include <string>
#include <vector>

namespace reckon::report {

/// Bytes in use from one moment on, one entry a series.
struct Sample {
  double time = 0;
  std::vector<uint64_t> levels;
};

/// One rank.
struct MemoryCurve {
  std::string name;
  uint64_t ceiling = 0;        ///< the arena or the limit: the dashed line
  std::vector<Sample> samples; ///< in order of time
};

struct Series {
  const char *name;
  const char *colour; ///< any CSS colour
};

/// A panel a curve, each stacked from the first series up; steps, not slopes.
/// `end` is the time of the right edge.
std::string memoryCurves(const std::vector<MemoryCurve> &curves,
                         const std::vector<Series> &series, double end,
                         const std::string &title);

} // namespace reckon::report

#endif // RECKON_PASSES_REPORT_MEMORYCURVES_H
