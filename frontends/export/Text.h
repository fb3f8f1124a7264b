//===- Text.h - what all targets write alike ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_EXPORT_TEXT_H
#define RECKON_FRONTENDS_EXPORT_TEXT_H

#include "frontends/export/Export.h"

#include <string>
#include <vector>

namespace reckon::exports {

/// The shortest decimal that reads back as the same double: 0.0003, 1e-08.
std::string number(double value);

/// "5, 5, 6".
std::string commaList(const std::vector<int64_t> &values);

/// Lines of a header, each behind `# `: what the file is, for what version,
/// and what it leaves out.
std::string header(Target target, const ExportInput &input,
                   const std::vector<std::string> &notExpressed);

/// Whether all virtual stages have the same number of layers.
bool evenLayout(const std::vector<int64_t> &layout);

/// Layers of each virtual stage that are recomputed in full, when one number
/// (or all layers of a stage that has fewer) describes all stages.
std::optional<int64_t> recomputedLayers(const model::Choice &choice);

/// Refuses what representationForbids() refuses, at the key that is to blame.
void refuseForbidden(Target target, const ExportInput &input, Exported &out);

/// Lists the keys of the spec that no target takes: data as text, prices, ...
void omitCommon(const ExportInput &input, Exported &out);

} // namespace reckon::exports

#endif // RECKON_FRONTENDS_EXPORT_TEXT_H
