//===- ReportFormat.h - numbers for people --------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_REPORTFORMAT_H
#define RECKON_PASSES_SEARCH_REPORTFORMAT_H

#include <cstdint>
#include <string>
#include <vector>

namespace reckon::search::text {

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...);

/// 70,553,706,496.
std::string grouped(int64_t value);
/// Three digits and a unit that suits small models too.
std::string bytes(double value);
std::string gib(uint64_t value);
/// s, ms or us.
std::string seconds(double value);
/// The same for long times: minutes, hours or days.
std::string duration(double value);
/// `6 x 2 stages, 7, 6` for long runs of equal stages.
std::string layout(const std::vector<int64_t> &stages);

} // namespace reckon::search::text

#endif // RECKON_PASSES_SEARCH_REPORTFORMAT_H
