//===- Markup.h - pieces of HTML ------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_REPORT_MARKUP_H
#define RECKON_PASSES_REPORT_MARKUP_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::report {

using Json = nlohmann::ordered_json;

/// `text` with &, <, >, quotes replaced: names come from the user's YAML.
std::string escape(std::string_view text);

/// printf with "%.*f"; no exponent, no trailing point.
std::string decimal(double value, int digits);
/// 70,553,706,496.
std::string grouped(int64_t value);
/// Three significant digits with B, KiB, MiB, GiB, TiB.
std::string bytes(double value);
/// s, ms or µs.
std::string seconds(double value);
/// The same for long times: minutes, hours or days.
std::string duration(double value);
/// $43,886, with cents below $100.
std::string dollars(double value);
/// A fraction of 1 as `41.3 %`.
std::string percent(double fraction, int digits = 1);
/// 1.23 k, M, G, T.
std::string magnitude(double value);
/// A JSON value as a person would write it: no quotes, lists with commas.
std::string plain(const Json &value);

/// A table whose first column is text and the others numbers. Cells are HTML
/// already.
class Table {
public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  /// `mark` shades the row.
  void row(std::vector<std::string> cells, bool mark = false);
  std::string html() const;

private:
  std::vector<std::string> head_;
  std::string body_;
};

/// A <section> with a heading and an optional line under it.
std::string section(std::string_view id, std::string_view title,
                    std::string_view lead, std::string_view body);

/// `json[key]` or null.
const Json &at(const Json &json, std::string_view key);
double number(const Json &json, std::string_view key);

} // namespace reckon::report

#endif // RECKON_PASSES_REPORT_MARKUP_H
