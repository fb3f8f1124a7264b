//===- Waterfall.cpp - from 100 points down to what is left ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/Charts.h"

#include "passes/report/Markup.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::report;

namespace {

constexpr double kLeft = 250, kScale = 6, kRow = 28, kBar = 18;

std::string line(const std::string &name, double from, double to, double y,
                 const char *colour, const std::string &label) {
  double low = std::min(from, to), high = std::max(from, to);
  return "<text x=\"" + decimal(kLeft - 8, 0) + "\" y=\"" + decimal(y + 14, 1) +
         "\" text-anchor=\"end\">" + escape(name) + "</text><rect x=\"" +
         decimal(kLeft + low * kScale, 2) + "\" y=\"" + decimal(y, 1) +
         "\" width=\"" + decimal(std::max((high - low) * kScale, 0.75), 2) +
         "\" height=\"" + decimal(kBar, 0) + "\" fill=\"var(--" + colour +
         ")\"><title>" + escape(name + ": " + label) +
         "</title></rect><text class=\"value\" " + "x=\"" +
         decimal(kLeft + high * kScale + 6, 2) + "\" y=\"" +
         decimal(y + 14, 1) + "\">" + escape(label) + "</text>\n";
}

} // namespace

std::string report::waterfall(const std::vector<Step> &steps, double rest,
                              const std::string &restName) {
  double height = kRow * static_cast<double>(steps.size() + 2) + 6;
  std::string svg =
      "<svg viewBox=\"0 0 960 " + decimal(height, 0) + "\" role=\"img\">\n";
  double y = 4, at = 100;
  svg += line("peak of the data sheet", 0, 100, y, "c8", "100");
  for (const Step &step : steps) {
    y += kRow;
    // A thin line carries the level down from the bar above.
    std::string x = decimal(kLeft + at * kScale, 2);
    svg += "<path class=\"thread\" d=\"M" + x + " " +
           decimal(y - kRow + kBar, 1) + "V" + decimal(y + kBar, 1) + "\"/>";
    svg += line(step.name, at, at - step.points, y,
                step.points < 0 ? "c3" : "c4", step.label);
    at -= step.points;
  }
  y += kRow;
  svg += line(restName, 0, rest, y, "c1", decimal(rest, 1));
  return svg + "</svg>\n";
}
