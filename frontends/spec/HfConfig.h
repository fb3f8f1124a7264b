//===- HfConfig.h - a Hugging Face config.json as keys of the model -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_HFCONFIG_H
#define RECKON_FRONTENDS_SPEC_HFCONFIG_H

#include "frontends/spec/Node.h"

#include <optional>

namespace reckon {

struct HfModel {
  /// The keys of the section `model`, in the order of docs/spec.md, each with
  /// its place in config.json. Types and ranges are not checked: reading the
  /// section does.
  Node model;
  /// Keys that change neither memory nor time, in the file's order.
  std::vector<std::string> ignored;
  /// Keys that are in no list here; assumed to change nothing.
  std::vector<std::string> unknown;

  /// One sentence about both, or empty.
  std::string remark() const;
};

/// Reads the text of a config.json of the families llama, mistral (without a
/// sliding window), gpt2, mixtral, qwen2, qwen3, qwen3_moe and deepseek_v3.
/// What would change the computation into one that no family here has is an
/// error at its place.
std::optional<HfModel> readHfConfig(const std::string &file,
                                    std::string_view text,
                                    std::vector<Diagnostic> &errors);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_HFCONFIG_H
