//===- ReportParts.h - sections of the text report ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_REPORTPARTS_H
#define RECKON_PASSES_SEARCH_REPORTPARTS_H

#include "passes/search/Goodput.h"
#include "passes/search/Search.h"

#include <nlohmann/json.hpp>

namespace reckon::search {

// Each begins with an empty line and a title.
std::string memorySection(const Candidate &best, const Spec &spec);
std::string timeSection(const Candidate &best, const Spec &spec);
/// The objective, and the whole training with failures and checkpoints.
std::string objectiveSection(const Candidate &best, const Spec &spec);

/// `12.3 days`, `$43,886`.
std::string objectiveText(const ObjectiveValue &value);
nlohmann::ordered_json objectiveJson(const Candidate &candidate,
                                     const Spec &spec);
nlohmann::ordered_json trainingJson(const Candidate &candidate,
                                    const Spec &spec);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_REPORTPARTS_H
