//===- Import.h - a Hugging Face config.json as a spec --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_IMPORT_HF_IMPORT_H
#define RECKON_FRONTENDS_IMPORT_HF_IMPORT_H

#include "frontends/spec/Diagnostic.h"

#include <string>
#include <string_view>
#include <vector>

namespace reckon::hf {

/// The section `model` in YAML that `model.hf_config` would read from the same
/// file, behind a comment that lists the keys without effect. Empty, with
/// errors, when the file describes a model that the spec has no family for.
std::string importConfig(const std::string &file, std::string_view text,
                         std::vector<Diagnostic> &errors);

} // namespace reckon::hf

#endif // RECKON_FRONTENDS_IMPORT_HF_IMPORT_H
