//===- Charts.cpp - stacked bars ------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/Charts.h"

#include "passes/report/Markup.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::report;

const std::vector<Category> &report::memoryCategories() {
  static const std::vector<Category> categories = {
      {"parameters", "c1"},  {"gradients", "c2"}, {"optimizer", "c3"},
      {"activations", "c4"}, {"logits", "c5"},    {"communication", "c6"},
      {"workspace", "c7"},   {"reserve", "c8"}};
  return categories;
}

namespace {

constexpr double kWidth = 960, kLeft = 120, kRight = 120, kBar = 20, kGap = 8;

std::string legend(const std::vector<Part> &parts) {
  std::string html = "<ul class=\"legend\">";
  for (const Part &part : parts)
    html += "<li><span style=\"background:var(--" + std::string(part.colour) +
            ")\"></span>" + escape(part.name) + "</li>";
  return html + "</ul>\n";
}

std::string bar(const Bar &bar, double y, double scale) {
  std::string svg = "<text x=\"" + decimal(kLeft - 8, 1) + "\" y=\"" +
                    decimal(y + 14, 1) + "\" text-anchor=\"end\">" +
                    escape(bar.name) + "</text>";
  double at = 0;
  for (const Part &part : bar.parts) {
    if (part.value <= 0)
      continue;
    svg += "<rect x=\"" + decimal(kLeft + at * scale, 2) + "\" y=\"" +
           decimal(y, 1) + "\" width=\"" + decimal(part.value * scale, 2) +
           "\" height=\"" + decimal(kBar, 0) + "\" fill=\"var(--" +
           part.colour + ")\"><title>" + escape(bar.name) + ": " +
           escape(part.name) + " " + escape(part.label) + "</title></rect>";
    at += part.value;
  }
  return svg + "<text x=\"" + decimal(kLeft + at * scale + 6, 2) + "\" y=\"" +
         decimal(y + 14, 1) + "\" class=\"value\">" + escape(bar.total) +
         "</text>\n";
}

} // namespace

std::string report::stackedBars(const std::vector<Bar> &bars, double limit,
                                const std::string &limitName) {
  if (bars.empty())
    return "";
  double most = 0;
  for (const Bar &each : bars) {
    double total = 0;
    for (const Part &part : each.parts)
      total += std::max(part.value, 0.0);
    most = std::max(most, total);
  }
  // A limit far above every bar would press them into the corner.
  bool showLimit = limit > 0 && most > limit / 8;
  double full = std::max(showLimit ? std::max(most, limit) : most, 1e-300);
  double scale = (kWidth - kLeft - kRight) / full;
  double height = 26 + static_cast<double>(bars.size()) * (kBar + kGap);
  std::string svg = "<svg viewBox=\"0 0 " + decimal(kWidth, 0) + " " +
                    decimal(height, 0) + "\" role=\"img\">\n";
  double y = 22;
  for (const Bar &each : bars) {
    svg += bar(each, y, scale);
    y += kBar + kGap;
  }
  if (showLimit) {
    std::string x = decimal(kLeft + limit * scale, 2);
    svg += "<path class=\"limit\" d=\"M" + x + " 18V" + decimal(height, 0) +
           "\"/><text class=\"value\" x=\"" + x +
           "\" y=\"12\" text-anchor=\"end\">" + escape(limitName) + "</text>\n";
  }
  return svg + "</svg>\n" + legend(bars.front().parts);
}
