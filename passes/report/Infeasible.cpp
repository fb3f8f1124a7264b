//===- Infeasible.cpp - the page when nothing fits ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/Sections.h"

using namespace reckon;
using namespace reckon::report;

std::string report::infeasibleSection(const Json &report) {
  const Json &why = at(report, "infeasible");
  std::string conflict;
  for (const Json &limit : at(why, "conflict"))
    conflict += (conflict.empty() ? "<code>" : " and <code>") +
                escape(plain(limit)) + "</code>";
  std::string html =
      "<p>" + conflict +
      (at(why, "conflict").size() > 1 ? " together reject" : " rejects") +
      " all " +
      grouped(static_cast<int64_t>(number(at(report, "search"), "space"))) +
      " combinations.</p>\n";
  for (const Json &reason : at(why, "reasons"))
    html += "<p>" + escape(plain(reason)) + "</p>\n";
  if (double missing = number(why, "shortfall_bytes"); missing > 0)
    html += "<p>The closest configuration lacks <b>" + bytes(missing) +
            "</b>.</p>\n";
  Table table({"change", "then", "step", "peak"});
  for (const Json &change : at(why, "nearest")) {
    std::string what;
    for (const auto &[key, value] : at(change, "change").items())
      what += (what.empty() ? "<code>" : "<br><code>") + escape(key) + ": " +
              escape(plain(value)) + "</code>";
    const Json &candidate = at(change, "candidate");
    table.row({what, choiceLine(at(candidate, "parallelism")),
               seconds(number(at(candidate, "time"), "step_s")),
               bytes(number(at(candidate, "memory"), "peak_bytes"))});
  }
  if (!at(why, "nearest").empty())
    html += "<h3>What would fit</h3>\n" + table.html();
  return section("infeasible", "Nothing fits", "", html);
}
