//===- Risk.cpp - how sure "it fits" is -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Risk.h"

#include "frontends/spec/Scalars.h"
#include "runtime/base/Csv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

using namespace reckon;
using namespace reckon::model;

namespace {

constexpr const char kTable[] =
#include "passes/model/account/MemoryRiskData.inc"
    ;
const std::string kFile = "memory_risk.csv";
constexpr std::array<std::string_view, 6> kColumns = {"from", "to",   "failed",
                                                      "runs", "date", "source"};

} // namespace

double MemoryRisk::wilson(double sign) const {
  constexpr double z = 1.959964; // of 95 %
  auto n = static_cast<double>(runs);
  double p = share(), zz = z * z / n;
  double around = z * std::sqrt(p * (1 - p) / n + zz / (4 * n));
  return std::clamp((p + zz / 2 + sign * around) / (1 + zz), 0.0, 1.0);
}

std::string_view model::memoryRiskTable() { return kTable; }

Result<std::vector<MemoryRisk>> model::memoryRisks(std::string_view csv) {
  Result<std::vector<CsvRow>> rows = readCsv(csv, kFile, kColumns);
  if (!rows)
    return rows.error();
  std::vector<MemoryRisk> bands;
  double end = 0;
  size_t line = 1;
  for (const auto &[number, cells] : *rows) {
    line = number;
    auto from = parseReal(cells[0]), failed = parseReal(cells[2]),
         runs = parseReal(cells[3]);
    auto to = cells[1].empty()
                  ? std::optional(std::numeric_limits<double>::infinity())
                  : parseReal(cells[1]);
    if (!from || !to || !failed || !runs || *runs < 1 || *failed < 0 ||
        *failed > *runs)
      return csvError(kFile, number,
                      "expected a band and how many of its runs failed, got " +
                          cells[0] + ", " + cells[1] + ", " + cells[2] + ", " +
                          cells[3]);
    if (*from != end || *to <= *from)
      return csvError(kFile, number,
                      "expected a band that begins where the one before it "
                      "ends, got " +
                          cells[0] + " to " + cells[1]);
    end = *to;
    bool same = cells[5] == "same" && !bands.empty();
    bands.push_back({.from = *from,
                     .to = *to,
                     .failed = static_cast<int64_t>(*failed),
                     .runs = static_cast<int64_t>(*runs),
                     .source = same ? bands.back().source : cells[5]});
  }
  if (!std::isinf(end))
    return csvError(kFile, line, "expected the last band to be open");
  return bands;
}

MemoryRisk model::memoryRisk(double predictedOverLimit) {
  static const std::vector<MemoryRisk> bands = [] {
    Result<std::vector<MemoryRisk>> read = memoryRisks(kTable);
    RECKON_CHECK(read.ok());
    return *read;
  }();
  for (const MemoryRisk &band : bands)
    if (predictedOverLimit < band.to)
      return band;
  return bands.back();
}
