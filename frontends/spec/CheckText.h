//===- CheckText.h - numbers in messages of the checks --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_CHECKTEXT_H
#define RECKON_FRONTENDS_SPEC_CHECKTEXT_H

#include "frontends/spec/Suggest.h"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

inline std::string num(int64_t value) { return std::to_string(value); }

/// "a, b and c".
inline std::string joinAnd(const std::vector<std::string> &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

/// The divisors of `n` up to `most`, in words; the largest ones of many.
inline std::string divisorsOf(int64_t n, int64_t most) {
  std::vector<std::string> words;
  for (int64_t d = 1; d <= n && d <= most && d <= 65536; ++d)
    if (n % d == 0)
      words.push_back(num(d));
  constexpr size_t shown = 12;
  if (words.size() > shown)
    words.erase(words.begin(),
                words.end() - static_cast<std::ptrdiff_t>(shown));
  return listWords(words);
}

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_CHECKTEXT_H
