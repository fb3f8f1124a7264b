//===- Layout.h - Megatron's pipeline layout strings ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_LAYOUT_H
#define RECKON_FRONTENDS_SPEC_LAYOUT_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// What a layout string says.
struct MegatronLayout {
  /// Decoder layers of each virtual stage, in the order of the forward.
  std::vector<int64_t> stages;
  int64_t mtpLayers = 0; ///< m, all on the last stage before the loss
};

/// Reads a string such as "Ettt|(tt|)*2tL": E embedding, t decoder layer, m
/// multi-token prediction layer, L loss, | next virtual stage, x*N and
/// (group)*N repetition, commas for looks. Only strings that mean layers per
/// stage are taken: E first in the first stage, L last in the last one with
/// all m right before it, and a t in every stage that holds neither E nor L.
/// Otherwise nothing comes back and `problem` says what and how to write it
/// instead.
std::optional<MegatronLayout> parseMegatronLayout(std::string_view text,
                                                  std::string &problem);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_LAYOUT_H
