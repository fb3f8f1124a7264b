//===- Accelerators.cpp ---------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Accelerators.h"

#include "frontends/spec/Scalars.h"
#include "runtime/base/Csv.h"

#include <array>
#include <cstdio>

namespace reckon {
namespace {

// The bytes of accelerators.csv, put here by CMake.
constexpr const char catalogueText[] =
#include "frontends/spec/AcceleratorData.inc"
    ;

const std::string kFile = "accelerators.csv";

constexpr std::array<std::string_view, 13> header = {
    "catalogue_name",
    "chip",
    "bf16_dense_tflops",
    "fp8_dense_tflops",
    "fp32_tflops",
    "mem_gb",
    "mem_bw_gbs",
    "intra_node_bw_gbs",
    "intra_node_size",
    "inter_node_bw_gbs_per_gpu",
    "memory_reserve_gib",
    "peak_is_assumed",
    "source"};

Error tableError(size_t line, const std::string &what) {
  return csvError(kFile, line, what);
}

} // namespace

Result<std::vector<Accelerator>> parseAccelerators(std::string_view csv) {
  Result<std::vector<CsvRow>> rows = readCsv(csv, kFile, header);
  if (!rows)
    return rows.error();
  std::vector<Accelerator> table;
  for (const auto &[number, cells] : *rows) {
    // An empty cell is a mode that the device does not have.
    std::array<double, header.size()> figure{};
    for (size_t i = 2; i + 1 < header.size(); ++i) {
      if (cells[i].empty())
        continue;
      std::optional<double> parsed = parseReal(cells[i]);
      if (!parsed || *parsed < 0)
        return tableError(number, "expected a number in " +
                                      std::string(header[i]) + ", got " +
                                      cells[i]);
      figure[i] = *parsed;
    }
    Accelerator row;
    row.name = cells[0];
    row.chip = cells[1];
    row.bf16DenseTflops = figure[2];
    row.fp8DenseTflops = figure[3];
    row.fp32Tflops = figure[4];
    row.memGb = figure[5];
    row.memBwGbs = figure[6];
    row.intraNodeBwGbs = figure[7];
    row.intraNodeSize = static_cast<int64_t>(figure[8]);
    row.interNodeBwGbsPerGpu = figure[9];
    row.memoryReserveGib = figure[10];
    row.peakIsAssumed = figure[11] != 0;
    row.source = cells[12];
    table.push_back(std::move(row));
  }
  return table;
}

const std::vector<Accelerator> &acceleratorCatalogue() {
  static const std::vector<Accelerator> catalogue = [] {
    auto parsed = parseAccelerators(catalogueText);
    if (!parsed.ok())
      std::fprintf(stderr, "reckon: %s\n", parsed.error().message.c_str());
    RECKON_CHECK(parsed.ok());
    return *parsed;
  }();
  return catalogue;
}

const Accelerator *findAccelerator(std::string_view name) {
  for (const Accelerator &accelerator : acceleratorCatalogue())
    if (accelerator.name == name)
      return &accelerator;
  return nullptr;
}

} // namespace reckon
