//===- MemoryCurves.cpp - memory over the time of a step as SVG -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/MemoryCurves.h"

#include "passes/report/Markup.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::report;

namespace {

constexpr double kWidth = 900, kPanel = 170, kLeft = 90, kTop = 40, kGap = 46;

uint64_t total(const Sample &sample) {
  uint64_t sum = 0;
  for (uint64_t level : sample.levels)
    sum += level;
  return sum;
}

std::string panel(const MemoryCurve &curve, const std::vector<Series> &series,
                  double top, double end) {
  double width = kWidth - kLeft - 20;
  uint64_t most = std::max<uint64_t>(curve.ceiling, 1);
  for (const Sample &sample : curve.samples)
    most = std::max(most, total(sample));
  auto x = [&](double time) {
    return decimal(kLeft + width * time / std::max(end, 1e-300), 1);
  };
  auto y = [&](uint64_t bytes) {
    return decimal(top + kPanel -
                       kPanel * static_cast<double>(bytes) /
                           static_cast<double>(most),
                   1);
  };
  std::string out = "<text x=\"8\" y=\"" + decimal(top + 14, 1) + "\">" +
                    escape(curve.name) + "</text><text x=\"8\" y=\"" +
                    decimal(top + 30, 1) + "\" class=\"small\">" +
                    bytes(static_cast<double>(curve.ceiling)) + "</text>\n";
  for (size_t which = series.size(); which-- > 0;) {
    std::string path = "M" + x(0) + " " + y(0);
    for (size_t i = 0; i < curve.samples.size(); ++i) {
      const Sample &sample = curve.samples[i];
      uint64_t level = 0;
      for (size_t below = 0; below <= which; ++below)
        level += sample.levels[below];
      path += "L" + x(sample.time) + " " + y(level);
      double until =
          i + 1 < curve.samples.size() ? curve.samples[i + 1].time : end;
      path += "L" + x(until) + " " + y(level);
    }
    path += "L" + x(end) + " " + y(0) + "Z";
    out += "<path d=\"" + path + "\" fill=\"" + series[which].colour +
           "\"><title>" + escape(series[which].name) + "</title></path>\n";
  }
  return out + "<path d=\"M" + x(0) + " " + y(curve.ceiling) + "H" + x(end) +
         "\" class=\"ceiling\"/><path d=\"M" + x(0) + " " + y(0) + "H" +
         x(end) + "\" class=\"axis\"/>\n";
}

} // namespace

std::string report::memoryCurves(const std::vector<MemoryCurve> &curves,
                                 const std::vector<Series> &series, double end,
                                 const std::string &title) {
  double height =
      kTop + static_cast<double>(curves.size()) * (kPanel + kGap) + 30;
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
      decimal(kWidth, 0) + " " + decimal(height, 0) +
      "\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<style>.small{font-size:11px;fill:#555}.axis{stroke:#333}"
      ".ceiling{stroke:#000;stroke-dasharray:5 4;fill:none}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"8\" y=\"20\">" +
      escape(title) + "</text>\n";
  double top = kTop;
  for (const MemoryCurve &curve : curves) {
    out += panel(curve, series, top, end);
    top += kPanel + kGap;
  }
  double x = kLeft;
  for (const Series &each : series) {
    out += "<rect x=\"" + decimal(x, 0) + "\" y=\"" + decimal(top - 24, 0) +
           "\" width=\"11\" height=\"11\" fill=\"" + each.colour +
           "\"/><text x=\"" + decimal(x + 16, 0) + "\" y=\"" +
           decimal(top - 14, 0) + "\" class=\"small\">" + escape(each.name) +
           "</text>\n";
    x += 135;
  }
  return out + "</svg>\n";
}
