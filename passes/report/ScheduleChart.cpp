//===- ScheduleChart.cpp - a pipeline schedule as SVG ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/ScheduleChart.h"

#include "passes/report/Markup.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::report;

namespace {

constexpr double kWidth = 960, kLeft = 70, kTop = 34, kRow = 24, kBar = 20;

const char *colourOf(char pass) {
  return pass == 'F'   ? "#4e79a7"
         : pass == 'B' ? "#f28e2b"
         : pass == 'I' ? "#e6a15a"
                       : "#59a14f";
}

const char *nameOf(char pass) {
  return pass == 'F'   ? "forward"
         : pass == 'B' ? "backward"
         : pass == 'I' ? "input gradient"
                       : "weight gradient";
}

std::string cell(const Cell &each, double y, double scale, double end,
                 int64_t chunks) {
  double from = each.start * scale, to = std::min(each.end, end) * scale;
  // Chunks are told apart by lightness: the last is the palest.
  double opacity =
      1 - 0.5 * static_cast<double>(each.chunk) /
              static_cast<double>(std::max<int64_t>(chunks - 1, 1));
  std::string number = std::to_string(each.microBatch);
  std::string svg =
      "<rect x=\"" + decimal(kLeft + from, 2) + "\" y=\"" + decimal(y, 0) +
      "\" width=\"" + decimal(std::max(to - from - 0.4, 0.3), 2) +
      "\" height=\"20\" fill=\"" + colourOf(each.pass) + "\" fill-opacity=\"" +
      decimal(opacity, 2) + "\"><title>" + nameOf(each.pass) +
      ", micro-batch " + number +
      (chunks > 1 ? ", chunk " + std::to_string(each.chunk) : "") + ", " +
      seconds(each.start) + " to " + seconds(each.end) + "</title></rect>";
  if (to - from > 7.0 * static_cast<double>(number.size()) + 3)
    svg += "<text x=\"" + decimal(kLeft + (from + to) / 2, 2) + "\" y=\"" +
           decimal(y + 14, 0) + "\" class=\"cell\">" + number + "</text>";
  return svg + "\n";
}

} // namespace

std::string report::scheduleChart(const std::vector<std::vector<Cell>> &ranks,
                                  double end, const std::string &title) {
  double height = kTop + kRow * static_cast<double>(ranks.size()) + 34;
  double scale = (kWidth - kLeft - 10) / std::max(end, 1e-300);
  int64_t chunks = 1;
  std::string passes;
  for (const auto &rank : ranks)
    for (const Cell &each : rank) {
      chunks = std::max(chunks, each.chunk + 1);
      if (passes.find(each.pass) == std::string::npos)
        passes += each.pass;
    }
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
      decimal(kWidth, 0) + " " + decimal(height, 0) +
      "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<style>.cell{fill:#fff;text-anchor:middle;font-size:11px}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"8\" y=\"18\">" +
      escape(title) + "</text>\n";
  double y = kTop;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    svg += "<text x=\"8\" y=\"" + decimal(y + 14, 0) + "\">rank " +
           std::to_string(rank) + "</text><rect x=\"" + decimal(kLeft, 0) +
           "\" y=\"" + decimal(y, 0) + "\" width=\"" +
           decimal(kWidth - kLeft - 10, 0) + "\" height=\"" + decimal(kBar, 0) +
           "\" fill=\"#f0f2f4\"/>\n";
    for (const Cell &each : ranks[rank])
      if (each.start < end)
        svg += cell(each, y, scale, end, chunks);
    y += kRow;
  }
  double x = kLeft;
  for (char pass : {'F', 'B', 'I', 'W'}) {
    if (passes.find(pass) == std::string::npos)
      continue;
    svg += "<rect x=\"" + decimal(x, 0) + "\" y=\"" + decimal(y + 8, 0) +
           "\" width=\"11\" height=\"11\" fill=\"" + colourOf(pass) +
           "\"/><text x=\"" + decimal(x + 16, 0) + "\" y=\"" +
           decimal(y + 18, 0) + "\">" + nameOf(pass) + "</text>\n";
    x += 130;
  }
  svg += "<text x=\"" + decimal(kWidth - 10, 0) + "\" y=\"" +
         decimal(y + 18, 0) + "\" text-anchor=\"end\">" + seconds(end) +
         "</text>\n";
  return svg + "</svg>\n";
}
