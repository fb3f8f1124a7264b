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

/// Decoder layers per stage of a string such as "Ettt|(tt|)*2tL": E embedding,
/// t decoder layer, L loss, | next stage, x*N and (group)*N repetition, commas
/// for looks. Only strings that mean layers per stage are taken: E first in
/// the first stage, L last in the last one, a layer in every stage. Otherwise
/// nothing comes back and `problem` says what and how to write it instead.
std::optional<std::vector<int64_t>> parseMegatronLayout(std::string_view text,
                                                        std::string &problem);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_LAYOUT_H
