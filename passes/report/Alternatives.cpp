//===- Alternatives.cpp - the next best, and one change away --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/Sections.h"

using namespace reckon;
using namespace reckon::report;

std::string report::alternativesSection(const Json &report, const Json &best) {
  double least = number(at(best, "time"), "step_s");
  auto row = [&](Table &table, const std::string &name, const Json &candidate,
                 bool mark) {
    double step = number(at(candidate, "time"), "step_s");
    table.row({name, choiceLine(at(candidate, "parallelism")), seconds(step),
               decimal(least > 0 ? 100 * (step / least - 1) : 0, 1) + " %",
               bytes(number(at(candidate, "memory"), "peak_bytes")),
               percent(number(candidate, "bubble_fraction"))},
              mark);
  };
  Table table({"", "configuration", "step", "slower by", "peak", "bubble"});
  size_t rank = 0;
  for (const Json &candidate : at(report, "candidates")) {
    row(table, std::to_string(rank + 1), candidate, rank == 0);
    ++rank;
  }
  std::string html = table.html();
  const Json &neighbours = at(report, "neighbours");
  if (!neighbours.empty()) {
    Table next({"change", "from", "to", "step", "peak memory", "verdict"});
    for (const Json &entry : neighbours) {
      std::string key = plain(at(entry, "key"));
      key = key.substr(key.rfind('.') + 1);
      std::string verdict;
      for (const Json &limit : at(entry, "breaks"))
        verdict += (verdict.empty() ? "breaks " : ", ") + plain(limit);
      if (at(entry, "excluded_by_spec") == true)
        verdict += std::string(verdict.empty() ? "" : "; ") +
                   "only when the spec asks for it";
      if (const Json &why = at(entry, "impossible"); !why.is_null())
        verdict = plain(why);
      bool priced = at(entry, "more_s").is_number();
      double more = number(entry, "more_s"), room = number(entry, "more_bytes");
      next.row(
          {"<code>" + escape(key) + "</code>", escape(plain(at(entry, "from"))),
           escape(plain(at(entry, "to"))),
           priced ? (more >= 0 ? "+" : "−") + seconds(more >= 0 ? more : -more)
                  : "",
           priced ? (room >= 0 ? "+" : "−") + bytes(room >= 0 ? room : -room)
                  : "",
           escape(verdict)});
    }
    html += "<h3>One change away</h3>\n" + next.html();
  }
  return section("alternatives", "Alternatives", "", html);
}
