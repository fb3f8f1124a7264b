//===- Sections.h - the parts of the page ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_REPORT_SECTIONS_H
#define RECKON_PASSES_REPORT_SECTIONS_H

#include "passes/report/Markup.h"

namespace reckon::report {

// Each takes the whole report and gives a <section>, or nothing when the
// report lacks what it shows. `best` is candidates[0].
std::string tiles(const Json &report, const Json &best);
std::string choiceSection(const Json &report, const Json &best);
std::string limitsSection(const Json &report, const Json &best);
std::string memorySection(const Json &report, const Json &best);
std::string timeSection(const Json &report, const Json &best);
std::string mfuSection(const Json &report, const Json &best);
std::string communicationSection(const Json &report, const Json &best);
std::string alternativesSection(const Json &report, const Json &best);
std::string comparedSection(const Json &report, const Json &best);
std::string whyNotSection(const Json &report, const Json &best);
std::string paretoSection(const Json &report);
std::string infeasibleSection(const Json &report);

/// `12.3 days`, `$43,886` of a candidate.
std::string objectiveValue(const Json &candidate);

/// `TP 8 + SP, PP 4 × 4, DP 32, ...` for tables.
std::string choiceLine(const Json &parallelism);

} // namespace reckon::report

#endif // RECKON_PASSES_REPORT_SECTIONS_H
