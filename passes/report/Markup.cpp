//===- Markup.cpp - pieces of HTML ----------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/Markup.h"

#include <cmath>
#include <cstdio>

using namespace reckon;
using namespace reckon::report;

std::string report::escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
    }
  return out;
}

std::string report::decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string report::grouped(int64_t value) {
  std::string digits = std::to_string(value), text;
  size_t start = value < 0 ? 1 : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > start && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

/// As many decimals as make three digits.
static std::string threeDigits(double value) {
  double size = std::fabs(value);
  return decimal(value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

std::string report::bytes(double value) {
  static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (std::fabs(value) >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return (unit ? threeDigits(value) : decimal(value, 0)) + " " + kUnits[unit];
}

std::string report::seconds(double value) {
  double size = std::fabs(value);
  if (size >= 1 || size == 0)
    return threeDigits(value) + " s";
  if (size >= 1e-3)
    return threeDigits(value * 1e3) + " ms";
  return threeDigits(value * 1e6) + " µs";
}

std::string report::duration(double value) {
  if (value < 120)
    return seconds(value);
  if (value < 2 * 3600)
    return decimal(value / 60, 1) + " min";
  if (value < 72 * 3600)
    return decimal(value / 3600, 2) + " h";
  return decimal(value / 86400, 1) + " days";
}

std::string report::dollars(double value) {
  return "$" + (std::fabs(value) < 100
                    ? decimal(value, 2)
                    : grouped(static_cast<int64_t>(std::llround(value))));
}

std::string report::percent(double fraction, int digits) {
  return decimal(100 * fraction, digits) + " %";
}

std::string report::magnitude(double value) {
  static constexpr const char *kUnits[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  while (std::fabs(value) >= 1000 && unit < 5) {
    value /= 1000;
    ++unit;
  }
  return threeDigits(value) + kUnits[unit];
}

std::string report::plain(const Json &value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_array()) {
    // Runs of equal values, as layouts have them: 5 x 16.
    std::string text;
    for (size_t i = 0; i < value.size();) {
      size_t end = i;
      while (end < value.size() && value[end] == value[i])
        ++end;
      text += (text.empty() ? "" : ", ") + plain(value[i]);
      if (end - i > 1)
        text += " × " + std::to_string(end - i);
      i = end;
    }
    return text;
  }
  return value.dump();
}

void Table::row(std::vector<std::string> cells, bool mark) {
  body_ += mark ? "<tr class=\"mark\">" : "<tr>";
  for (size_t i = 0; i < cells.size(); ++i)
    body_ += (i ? "<td>" : "<th scope=\"row\">") + cells[i] +
             (i ? "</td>" : "</th>");
  body_ += "</tr>\n";
}

std::string Table::html() const {
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string &cell : head_)
    html += "<th scope=\"col\">" + escape(cell) + "</th>";
  return html + "</tr></thead>\n<tbody>\n" + body_ + "</tbody></table></div>\n";
}

std::string report::section(std::string_view id, std::string_view title,
                            std::string_view lead, std::string_view body) {
  std::string html = "<section id=\"" + std::string(id) + "\">\n<h2>" +
                     escape(title) + "</h2>\n";
  if (!lead.empty())
    html += "<p class=\"lead\">" + std::string(lead) + "</p>\n";
  return html + std::string(body) + "</section>\n";
}

const Json &report::at(const Json &json, std::string_view key) {
  static const Json nothing;
  if (!json.is_object())
    return nothing;
  auto entry = json.find(key);
  return entry == json.end() ? nothing : *entry;
}

double report::number(const Json &json, std::string_view key) {
  const Json &value = at(json, key);
  return value.is_number() ? value.get<double>() : 0;
}
