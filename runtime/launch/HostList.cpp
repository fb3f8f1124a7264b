//===- HostList.cpp - Slurm's compressed lists ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/HostList.h"

#include <charconv>

namespace reckon {
namespace {

constexpr size_t kMostHosts = size_t(1) << 20;

Error malformed(const char *what, std::string_view list) {
  return makeError(ExitCode::BadSpec, std::string("expected ") + what +
                                          ", got '" + std::string(list) + "'");
}

bool parseNumber(std::string_view text, long &value) {
  auto [stop, code] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && stop == text.data() + text.size() &&
         value >= 0 && text.front() != '-';
}

/// The parts between commas that lie outside brackets.
std::vector<std::string_view> splitOutside(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    } else if (list[i] == '[') {
      ++depth;
    } else if (list[i] == ']') {
      --depth;
    }
  }
  return parts;
}

/// Appends prefix + every expansion of `rest`; false when malformed.
bool expandName(const std::string &prefix, std::string_view rest,
                std::vector<std::string> &out) {
  size_t open = rest.find('[');
  if (open == std::string_view::npos) {
    if (rest.find(']') != std::string_view::npos || out.size() >= kMostHosts)
      return false;
    out.push_back(prefix + std::string(rest));
    return !out.back().empty();
  }
  size_t close = rest.find(']', open);
  if (close == std::string_view::npos)
    return false;
  std::string head = prefix + std::string(rest.substr(0, open));
  std::string_view tail = rest.substr(close + 1);
  for (std::string_view range :
       splitOutside(rest.substr(open + 1, close - open - 1))) {
    size_t dash = range.find('-');
    std::string_view from = range.substr(0, dash);
    std::string_view to =
        dash == std::string_view::npos ? from : range.substr(dash + 1);
    long first = 0, last = 0;
    if (from.empty() || to.empty() || !parseNumber(from, first) ||
        !parseNumber(to, last) || last < first)
      return false;
    for (long n = first; n <= last; ++n) {
      std::string digits = std::to_string(n);
      if (digits.size() < from.size()) // leading zeros belong to the name
        digits.insert(0, from.size() - digits.size(), '0');
      if (!expandName(head + digits, tail, out))
        return false;
    }
  }
  return true;
}

} // namespace

Result<std::vector<std::string>> expandHostList(std::string_view list) {
  std::vector<std::string> hosts;
  for (std::string_view part : splitOutside(list))
    if (!expandName("", part, hosts))
      return malformed("a host list such as gpu[001-003,007],h1", list);
  return hosts;
}

Result<std::vector<int>> expandTaskCounts(std::string_view list) {
  std::vector<int> counts;
  for (std::string_view part : splitOutside(list)) {
    size_t open = part.find("(x");
    long tasks = 0, times = 1;
    bool good =
        !part.empty() && open != 0 && parseNumber(part.substr(0, open), tasks);
    if (good && open != std::string_view::npos)
      good = part.size() > open + 3 && part.back() == ')' &&
             parseNumber(part.substr(open + 2, part.size() - open - 3), times);
    if (!good || counts.size() + static_cast<size_t>(times) > kMostHosts)
      return malformed("task counts such as 2(x4),1", list);
    counts.insert(counts.end(), static_cast<size_t>(times),
                  static_cast<int>(tasks));
  }
  return counts;
}

} // namespace reckon
