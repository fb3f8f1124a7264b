//===- Scalars.h - text to numbers and switches ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The scalars of YAML's core schema, without the parts that surprise: no
// octal, no hexadecimal, no infinity, no yes/no. Independent of the locale.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_SCALARS_H
#define RECKON_FRONTENDS_SPEC_SCALARS_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace reckon {

enum class IntegerError { NotANumber, Fraction, TooLarge };

/// A decimal integer; on failure `why` says what the text is instead.
std::optional<int64_t> parseInteger(std::string_view text,
                                    IntegerError *why = nullptr);

/// A finite decimal number: 3, -0.5, 3.0e-4, 1e9.
std::optional<double> parseReal(std::string_view text);

/// true or false (also True, TRUE, False, FALSE).
std::optional<bool> parseBool(std::string_view text);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_SCALARS_H
