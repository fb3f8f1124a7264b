//===- Csv.h - tables of figures that the program carries -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_BASE_CSV_H
#define RECKON_RUNTIME_BASE_CSV_H

#include "runtime/base/Status.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

struct CsvRow {
  size_t line = 0; ///< of the file, from 1
  std::vector<std::string> cells;
};

/// The rows below the header. RFC 4180 without line breaks inside cells; blank
/// lines and, below the header, lines that begin with # are skipped. A header
/// other than `columns` and rows of another length are errors (see csvError).
Result<std::vector<CsvRow>> readCsv(std::string_view text,
                                    const std::string &file,
                                    std::span<const std::string_view> columns);

/// `file:line: what`, ExitCode::Internal, since the tables are the program's.
Error csvError(const std::string &file, size_t line, const std::string &what);

} // namespace reckon

#endif // RECKON_RUNTIME_BASE_CSV_H
