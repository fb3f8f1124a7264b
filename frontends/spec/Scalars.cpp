//===- Scalars.cpp --------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Scalars.h"

#include <charconv>
#include <cmath>

namespace reckon {

std::optional<int64_t> parseInteger(std::string_view text, IntegerError *why) {
  std::string_view digits = text;
  // from_chars takes a minus, but not the plus that YAML allows.
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-')
    digits.remove_prefix(1);
  int64_t value = 0;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
  bool whole = end == digits.data() + digits.size() && !digits.empty();
  if (whole && error == std::errc())
    return value;
  if (why)
    *why = whole && error == std::errc::result_out_of_range
               ? IntegerError::TooLarge
           : parseReal(text) ? IntegerError::Fraction
                             : IntegerError::NotANumber;
  return std::nullopt;
}

std::optional<double> parseReal(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-')
    text.remove_prefix(1);
  // from_chars would also take "inf" and "nan".
  for (char c : text)
    if (!((c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' ||
          c == '-' || c == '+'))
      return std::nullopt;
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size() ||
      error != std::errc() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<bool> parseBool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE")
    return true;
  if (text == "false" || text == "False" || text == "FALSE")
    return false;
  return std::nullopt;
}

} // namespace reckon
