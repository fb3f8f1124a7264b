//===- Charts.h - pictures as inline SVG ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_REPORT_CHARTS_H
#define RECKON_PASSES_REPORT_CHARTS_H

#include <string>
#include <vector>

namespace reckon::report {

/// A named part of a bar. `colour` is a CSS variable's name without `--`.
struct Part {
  std::string name;
  double value = 0;
  std::string label; ///< shown on hovering
  const char *colour = "grey";
};

struct Bar {
  std::string name;
  std::vector<Part> parts;
  std::string total; ///< written at its end
};

/// Horizontal stacked bars on one scale from 0, with a legend of the parts in
/// the order of the first bar. `limit` draws a dashed line, 0 for none.
std::string stackedBars(const std::vector<Bar> &bars, double limit,
                        const std::string &limitName);

/// The categories of memory and their colours, in the order of the JSON.
struct Category {
  const char *key;
  const char *colour;
};
const std::vector<Category> &memoryCategories();

/// Steps down from 100 points to what is left. Values in points, >= 0 mostly;
/// a negative item steps up.
struct Step {
  std::string name;
  double points = 0;
  std::string label;
};
std::string waterfall(const std::vector<Step> &steps, double rest,
                      const std::string &restName);

/// One thing with two figures, both above 0.
struct Point {
  double x = 0, y = 0;
  std::string name;  ///< written beside it
  std::string label; ///< shown on hovering
  bool front = true; ///< no other is better in both: joined by a line
  bool mark = false; ///< drawn larger
};

struct Axis {
  std::string name;
  std::string (*text)(double); ///< of a value
  bool time = false;           ///< seconds, marked at minutes, hours, days
};

/// Points on logarithmic axes; empty without any.
std::string scatter(const std::vector<Point> &points, const Axis &x,
                    const Axis &y);

} // namespace reckon::report

#endif // RECKON_PASSES_REPORT_CHARTS_H
