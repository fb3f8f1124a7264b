//===- Scatter.cpp - points on two logarithmic axes -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/Charts.h"

#include "passes/report/Markup.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::report;

namespace {

constexpr double kWidth = 960, kHeight = 380;
constexpr double kLeft = 110, kRight = 60, kTop = 30, kBottom = 46;

/// A logarithmic axis with some room around the values.
class Scale {
public:
  Scale(double least, double most, double from, double to)
      : low_(std::log(least / 1.2)), high_(std::log(most * 1.2)), from_(from),
        to_(to) {}

  double at(double value) const {
    return from_ + (to_ - from_) * (std::log(value) - low_) / (high_ - low_);
  }

  /// Round values within the axis, as many as do not crowd: of time in the
  /// units that people read, else digits times powers of ten.
  std::vector<double> ticks(bool time) const {
    static const std::vector<std::vector<double>> kDigits = {
        {1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 5}, {1, 3}, {1}};
    std::vector<double> found;
    auto add = [&](double value) {
      if (std::log(value) >= low_ && std::log(value) <= high_)
        found.push_back(value);
    };
    if (time)
      for (auto [unit, end] :
           {std::pair(1., 60.), {60., 3600.}, {3600., 86400.}, {86400., 1e15}})
        for (double digit : {1., 2., 5., 10., 20., 50., 100., 200., 500.})
          if (1.5 * digit * unit < end) // 50 is too near 60.
            add(digit * unit);
    if (found.size() > 1)
      return found;
    for (const std::vector<double> &digits : kDigits) {
      found.clear();
      for (double power = std::pow(10, std::floor(low_ / std::log(10.0)));
           std::log(power) <= high_; power *= 10)
        for (double digit : digits)
          add(digit * power);
      if (found.size() <= 8)
        break;
    }
    return found;
  }

private:
  double low_, high_, from_, to_;
};

std::string line(double x1, double y1, double x2, double y2) {
  return "<path class=\"thread\" d=\"M" + decimal(x1, 1) + " " +
         decimal(y1, 1) + "L" + decimal(x2, 1) + " " + decimal(y2, 1) + "\"/>";
}

std::string label(double x, double y, const char *anchor,
                  const std::string &text) {
  return "<text class=\"value\" x=\"" + decimal(x, 1) + "\" y=\"" +
         decimal(y, 1) + "\" text-anchor=\"" + anchor + "\">" + escape(text) +
         "</text>";
}

} // namespace

std::string report::scatter(const std::vector<Point> &points, const Axis &x,
                            const Axis &y) {
  auto positive = [](const Point &p) {
    return p.x > 0 && p.y > 0 && std::isfinite(p.x) && std::isfinite(p.y);
  };
  if (points.empty() || !std::all_of(points.begin(), points.end(), positive))
    return "";
  auto [left, right] = std::minmax_element(
      points.begin(), points.end(),
      [](const Point &a, const Point &b) { return a.x < b.x; });
  auto [bottom, top] = std::minmax_element(
      points.begin(), points.end(),
      [](const Point &a, const Point &b) { return a.y < b.y; });
  Scale across(left->x, right->x, kLeft, kWidth - kRight),
      up(bottom->y, top->y, kHeight - kBottom, kTop);
  std::string svg = "<svg viewBox=\"0 0 " + decimal(kWidth, 0) + " " +
                    decimal(kHeight, 0) + "\" role=\"img\">\n";
  svg += line(kLeft, kTop, kLeft, kHeight - kBottom) +
         line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom);
  for (double tick : across.ticks(x.time))
    svg +=
        line(across.at(tick), kHeight - kBottom, across.at(tick),
             kHeight - kBottom + 5) +
        label(across.at(tick), kHeight - kBottom + 18, "middle", x.text(tick));
  for (double tick : up.ticks(y.time))
    svg += line(kLeft - 5, up.at(tick), kLeft, up.at(tick)) +
           label(kLeft - 9, up.at(tick) + 4, "end", y.text(tick));
  svg += label(kWidth - kRight, kHeight - 8, "end", x.name) +
         label(kLeft, kTop - 14, "middle", y.name) + "\n";
  // The front from left to right: the dearest and fastest first.
  std::vector<Point> front;
  std::copy_if(points.begin(), points.end(), std::back_inserter(front),
               [](const Point &p) { return p.front; });
  std::sort(front.begin(), front.end(),
            [](const Point &a, const Point &b) { return a.x < b.x; });
  std::string path;
  for (const Point &p : front)
    path += (path.empty() ? "M" : "L") + decimal(across.at(p.x), 1) + " " +
            decimal(up.at(p.y), 1);
  if (front.size() > 1)
    svg += "<path class=\"front\" d=\"" + path + "\"/>\n";
  for (const Point &p : points) {
    svg += "<circle cx=\"" + decimal(across.at(p.x), 1) + "\" cy=\"" +
           decimal(up.at(p.y), 1) + "\" r=\"" + (p.mark ? "7" : "5") +
           "\" fill=\"var(--" + (p.front ? "c1" : "c7") + ")\"><title>" +
           escape(p.label) + "</title></circle>" +
           label(across.at(p.x) + 10, up.at(p.y) - 8, "start", p.name) + "\n";
  }
  return svg + "</svg>\n";
}
