//===- Csv.cpp - tables of figures that the program carries ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/base/Csv.h"

namespace reckon {

static std::vector<std::string> splitLine(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

Error csvError(const std::string &file, size_t line, const std::string &what) {
  return makeError(ExitCode::Internal,
                   file + ":" + std::to_string(line) + ": " + what);
}

Result<std::vector<CsvRow>> readCsv(std::string_view text,
                                    const std::string &file,
                                    std::span<const std::string_view> columns) {
  std::vector<CsvRow> rows;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (number > 1 && (line.empty() || line.front() == '#'))
      continue;
    std::vector<std::string> cells = splitLine(line);
    if (cells.size() != columns.size())
      return csvError(file, number,
                      "expected " + std::to_string(columns.size()) +
                          " cells, got " + std::to_string(cells.size()));
    if (number > 1) {
      rows.push_back({number, std::move(cells)});
      continue;
    }
    for (size_t i = 0; i < columns.size(); ++i)
      if (cells[i] != columns[i])
        return csvError(file, number,
                        "expected the column " + std::string(columns[i]) +
                            ", got " + cells[i]);
  }
  return rows;
}

} // namespace reckon
