//===- Suggest.cpp --------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Suggest.h"

#include <algorithm>

namespace reckon {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

} // namespace

size_t editDistance(std::string_view a, std::string_view b) {
  // Three rows of the usual table; the oldest serves the swaps.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1,
                         last[j - 1] + (same ? size_t{0} : size_t{1})});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearestWord(std::string_view word,
                        const std::vector<std::string> &words) {
  // Nobody means a known word with hundreds of letters; do not compute it.
  if (word.size() > 100)
    return "";
  size_t best = std::max<size_t>(2, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string &candidate : words) {
    size_t distance = editDistance(word, candidate);
    // Short words are near to everything: some letters must remain.
    if (distance < best && distance < candidate.size()) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string listWords(const std::vector<std::string> &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i)
      text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

} // namespace reckon
