//===- ReportFormat.cpp - numbers for people ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/ReportFormat.h"

#include <cstdarg>
#include <cstdio>

using namespace reckon;
using namespace reckon::search;

std::string text::format(const char *pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  std::string text(std::vsnprintf(nullptr, 0, pattern, arguments), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(arguments);
  va_end(again);
  return text;
}

std::string text::grouped(int64_t value) {
  std::string digits = std::to_string(value), text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

std::string text::bytes(double value) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return format(unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
}

std::string text::gib(uint64_t value) {
  return format("%.2f GiB", static_cast<double>(value) / 1073741824.0);
}

std::string text::seconds(double value) {
  if (value >= 1)
    return format("%.2f s", value);
  if (value >= 1e-3)
    return format("%.2f ms", value * 1e3);
  return format("%.1f us", value * 1e6);
}

std::string text::duration(double value) {
  if (value < 120)
    return seconds(value);
  if (value < 2 * 3600)
    return format("%.1f min", value / 60);
  if (value < 72 * 3600)
    return format("%.2f h", value / 3600);
  return format("%.1f days", value / 86400);
}

std::string text::layout(const std::vector<int64_t> &stages) {
  std::string text;
  for (size_t i = 0; i < stages.size();) {
    size_t end = i;
    while (end < stages.size() && stages[end] == stages[i])
      ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(stages[i]);
    if (end - i > 1)
      text += " x " + std::to_string(end - i) + " stages";
    i = end;
  }
  return text;
}
