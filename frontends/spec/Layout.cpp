//===- Layout.cpp ---------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Layout.h"

#include "frontends/spec/Scalars.h"

namespace reckon {
namespace {

// More stages and layers than any key allows.
constexpr size_t longest = 200000;

/// Expands repetitions; `problem` is set on failure.
std::optional<std::string> expand(std::string_view text, std::string &problem) {
  std::string out;
  size_t last = 0;         // where the item or group that * repeats begins
  bool repeatable = false; // whether there is one
  std::optional<size_t> group;
  auto fail = [&](std::string what) {
    problem = std::move(what);
    return std::nullopt;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ',' || c == ' ')
      continue;
    if (c == '(') {
      if (group)
        return fail("groups do not stand in each other; write the inner one "
                    "out");
      group = out.size();
      repeatable = false;
    } else if (c == ')') {
      if (!group)
        return fail("a ) without its (; remove it");
      last = *group;
      group.reset();
      repeatable = true;
    } else if (c == '*') {
      size_t end = i + 1;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9')
        ++end;
      std::optional<int64_t> times =
          parseInteger(text.substr(i + 1, end - i - 1));
      if (!repeatable || !times || *times < 1)
        return fail("* must stand between an item or group and a positive "
                    "number, as in t*3");
      std::string unit = out.substr(last);
      if (static_cast<uint64_t>(*times) > longest ||
          out.size() + unit.size() * static_cast<size_t>(*times) > longest)
        return fail("it stands for too many layers; write a smaller number "
                    "after *");
      for (int64_t k = 1; k < *times; ++k)
        out += unit;
      repeatable = false;
      i = end - 1;
    } else if (c == 't' || c == 'm' || c == 'E' || c == 'L' || c == '|') {
      last = out.size();
      repeatable = true;
      out += c;
    } else {
      return fail(
          std::string("the character ") + c +
          " is not E, t, m, L, | or a repetition; write layers per stage "
          "as a list, such as [3, 5]");
    }
  }
  if (group)
    return fail("a ( without its ); close it");
  return out;
}

} // namespace

std::optional<MegatronLayout> parseMegatronLayout(std::string_view text,
                                                  std::string &problem) {
  std::optional<std::string> flat = expand(text, problem);
  if (!flat)
    return std::nullopt;
  // The string's own first and last stage hold the embedding and the loss, as
  // ours do; anything else would need stages of another kind.
  if (flat->empty() || flat->front() != 'E' || flat->back() != 'L' ||
      flat->find('E', 1) != std::string::npos ||
      flat->find('L') != flat->size() - 1) {
    problem = "it must begin with E and end with L, each once; write for "
              "example Ettt|tttL";
    return std::nullopt;
  }
  MegatronLayout layout;
  size_t mtp = flat->find('m');
  if (mtp != std::string::npos) {
    layout.mtpLayers = static_cast<int64_t>(flat->size() - 1 - mtp);
    if (flat->find_first_not_of('m', mtp) != flat->size() - 1) {
      problem = "multi-token prediction layers (m) are accounted with the "
                "loss; write them right before L, as in tmL";
      return std::nullopt;
    }
  }
  layout.stages.assign(1, 0);
  for (char c : *flat) {
    if (c == '|')
      layout.stages.push_back(0);
    else if (c == 't')
      ++layout.stages.back();
  }
  for (size_t i = 1; i + 1 < layout.stages.size(); ++i)
    if (layout.stages[i] == 0) {
      problem = "a stage holds neither E, L nor a layer (t); give each inner "
                "stage one layer at least";
      return std::nullopt;
    }
  return layout;
}

} // namespace reckon
