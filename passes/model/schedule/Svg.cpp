//===- Svg.cpp - timetables as pictures -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <algorithm>
#include <cstdio>

using namespace reckon;
using namespace reckon::model;

namespace {

constexpr double kLabel = 62, kRow = 24, kTop = 26, kBottom = 24;

struct Pass {
  char letter;
  const char *fill, *paler, *name;
};
constexpr Pass kPasses[] = {
    {'F', "#6ea8fe", "#b6d4fe", "forward"},
    {'B', "#75b798", "#b8dccb", "backward"},
    {'I', "#ffc078", "#ffe0bd", "input gradient"},
    {'W', "#d0a9f5", "#e9d7fb", "weight gradient"},
};

const Pass &passOf(char letter) {
  for (const Pass &pass : kPasses)
    if (pass.letter == letter)
      return pass;
  return kPasses[0];
}

/// printf for one piece of markup.
template <typename... Parts>
std::string piece(const char *format, Parts... parts) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, format, parts...);
  return buffer;
}

std::string draw(const PipelineOrders &orders, const Timetable &table,
                 double width, const std::string &note) {
  double room = width - kLabel - 8;
  double scale = table.makespan > 0 ? room / table.makespan : 0;
  double height = kTop + kRow * static_cast<double>(orders.p) + kBottom;
  std::string svg = piece(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "width=\"%.0f\" height=\"%.0f\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<title>pipeline schedule of %lld ranks</title>\n",
      width, height, width, height, static_cast<long long>(orders.p));

  // The legend names the passes that occur.
  double x = kLabel;
  for (const Pass &pass : kPasses) {
    bool used = false;
    for (const auto &row : table.ranks)
      used |= std::any_of(row.begin(), row.end(), [&](const TimedAction &t) {
        return t.action.pass == pass.letter;
      });
    if (!used)
      continue;
    svg += piece("<rect x=\"%.1f\" y=\"6\" width=\"12\" height=\"12\" "
                 "fill=\"%s\"/><text x=\"%.1f\" y=\"16\" "
                 "fill=\"currentColor\">%s</text>\n",
                 x, pass.fill, x + 16, pass.name);
    x += 40 + 6.2 * static_cast<double>(std::string(pass.name).size());
  }

  for (int64_t rank = 0; rank < orders.p; ++rank) {
    double y = kTop + kRow * static_cast<double>(rank);
    svg += piece("<text x=\"4\" y=\"%.1f\" fill=\"currentColor\">rank "
                 "%lld</text>\n<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                 "height=\"%.1f\" fill=\"#8884\"/>\n",
                 y + 15, static_cast<long long>(rank), kLabel, y + 1, room,
                 kRow - 2);
    for (const TimedAction &timed : table.ranks[rank]) {
      const Pass &pass = passOf(timed.action.pass);
      double left = kLabel + timed.start * scale;
      double wide = (timed.end - timed.start) * scale;
      auto stage =
          static_cast<long long>(orders.stage(rank, timed.action.chunk));
      auto mb = static_cast<long long>(timed.action.microBatch);
      svg += piece("<g><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" "
                   "height=\"%.1f\" fill=\"%s\" stroke=\"#fff\" "
                   "stroke-width=\"%.1f\"/><title>%lld%c%lld: %s of stage "
                   "%lld, micro-batch %lld, %.6g to %.6g</title>",
                   left, y + 1, wide, kRow - 2,
                   timed.action.chunk ? pass.paler : pass.fill,
                   wide > 4 ? 0.6 : 0.0, stage, pass.letter, mb, pass.name,
                   stage, mb, timed.start, timed.end);
      std::string number = std::to_string(mb);
      if (wide > 6.5 * static_cast<double>(number.size()) + 2)
        svg += piece("<text x=\"%.2f\" y=\"%.1f\" text-anchor=\"middle\" "
                     "style=\"fill:#111;pointer-events:none\">%s</text>",
                     left + wide / 2, y + 16, number.c_str());
      svg += "</g>\n";
    }
  }
  svg += piece("<text x=\"%.1f\" y=\"%.1f\" fill=\"currentColor\">", kLabel,
               height - 8);
  svg += piece("idle / busiest work %.2f %%", 100 * table.bubbleFraction);
  return svg + note + "</text>\n</svg>\n";
}

} // namespace

std::string model::scheduleSvg(const PipelineOrders &orders,
                               const Timetable &table, double width) {
  return draw(orders, table, width, "");
}

std::string model::scheduleSvg(const ScheduleShape &shape,
                               std::span<const StageDurations> durations,
                               double transfer, double width) {
  ScheduleShape drawn = shape;
  drawn.group = shape.v > 1
                    ? shape.group ? shape.group : defaultGroup(shape.p, shape.m)
                    : 0;
  int64_t block = std::max<int64_t>(1, drawn.group);
  int64_t enough = (2 * shape.p / block + 3) * block + shape.m % block;
  drawn.m = std::min(shape.m, enough);
  PipelineOrders orders = makeOrders(drawn);
  Result<Timetable> table = simulateOrders(orders, durations, transfer);
  RECKON_CHECK(table.ok());
  std::string note;
  if (drawn.m < shape.m) {
    double work = busiestWork(shape, durations);
    double makespan = scheduleMakespan(shape, durations, transfer);
    note =
        piece(" in this picture of %lld of %lld micro-batches; in the whole "
              "step %.2f %%",
              static_cast<long long>(drawn.m), static_cast<long long>(shape.m),
              100 * (makespan - work) / work);
  }
  return draw(orders, *table, width, note);
}
