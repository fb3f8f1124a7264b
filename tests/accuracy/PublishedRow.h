//===- PublishedRow.h - a row of the table of published runs --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_ACCURACY_PUBLISHEDROW_H
#define RECKON_TESTS_ACCURACY_PUBLISHEDROW_H

#include "passes/model/Job.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reckon::accuracy {

/// Cells by column name.
using Row = std::map<std::string, std::string>;

/// Reads a CSV file with quoted cells.
std::vector<Row> readCsv(const std::string &path);

/// The number in a cell, if there is one.
std::optional<double> number(const Row &row, const std::string &column);

/// A row as what the planner would be asked: the job and its fixed choice.
struct Case {
  model::Job job;
  model::Choice choice;
  bool recomputeOpen = false; ///< the row does not print it
  std::string why;            ///< not empty: the row cannot be expressed
};

/// By the rules of the acceptance test that runs `reckon plan` on each row.
Case makeCase(const Row &row);

} // namespace reckon::accuracy

#endif // RECKON_TESTS_ACCURACY_PUBLISHEDROW_H
