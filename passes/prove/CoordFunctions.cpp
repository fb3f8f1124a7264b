//===- CoordFunctions.cpp - values that depend on a rank's coordinates ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/CoordFunctions.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::prove;
using plan::Axis;
using plan::Coord;

/// The axes that ranks of one stage differ in, fastest first.
static constexpr Axis kAxes[] = {Axis::tp, Axis::cp, Axis::ep, Axis::dp};

static unsigned bit(Axis axis) { return 1u << static_cast<unsigned>(axis); }

/// Axes with more than one coordinate.
unsigned CoordFunctions::realAxes(unsigned axes) const {
  unsigned real = 0;
  for (Axis axis : plan::kRankOrder)
    if ((axes & bit(axis)) && plan::axisSize(mesh_, axis) > 1)
      real |= bit(axis);
  return real;
}

/// Visits the coordinates on `axes` until one is refused; the others stay 0.
bool CoordFunctions::forCoords(
    unsigned axes, const std::function<bool(const Coord &)> &visit) const {
  Coord coord;
  while (true) {
    if (!visit(coord))
      return false;
    size_t i = 0;
    for (; i < std::size(kAxes); ++i) {
      if (!(axes & bit(kAxes[i])))
        continue;
      if (++coord[kAxes[i]] < plan::axisSize(mesh_, kAxes[i]))
        break;
      coord[kAxes[i]] = 0;
    }
    if (i == std::size(kAxes))
      return true;
  }
}

FnId CoordFunctions::intern(unsigned axes, std::vector<int64_t> table) {
  auto [it, fresh] =
      ids_.try_emplace({axes, table}, static_cast<FnId>(functions_.size()));
  if (fresh) {
    auto [low, high] = std::minmax_element(table.begin(), table.end());
    Function function{axes, {}, *low, *high};
    function.table = std::move(table);
    functions_.push_back(std::move(function));
  }
  return it->second;
}

FnId CoordFunctions::constant(int64_t value) {
  auto [it, fresh] = constants_.try_emplace(value, 0);
  if (fresh)
    it->second = intern(0, {value});
  return it->second;
}

FnId CoordFunctions::make(unsigned axes,
                          const std::function<int64_t(const Coord &)> &value) {
  axes = realAxes(axes) & ~bit(Axis::pp);
  // Drop the axes that make no difference, so that equal means same number.
  for (Axis axis : kAxes) {
    if (!(axes & bit(axis)))
      continue;
    bool matters = !forCoords(axes, [&](const Coord &coord) {
      Coord first = coord;
      first[axis] = 0;
      return value(coord) == value(first);
    });
    if (!matters)
      axes &= ~bit(axis);
  }
  std::vector<int64_t> table;
  forCoords(axes, [&](const Coord &coord) {
    table.push_back(value(coord));
    return true;
  });
  return axes ? intern(axes, std::move(table)) : constant(table[0]);
}

FnId CoordFunctions::of(const plan::ExprT &expr, unsigned stage) {
  unsigned axes = 0;
  for (const plan::Term &term : expr.terms)
    axes |= bit(term.axis());
  for (const plan::Case &c : expr.cases)
    axes |= bit(c.axis());
  if (axes == 0)
    return constant(expr.base);
  return make(axes, [&](Coord coord) {
    coord.pp = stage;
    return plan::evalExpr(expr, coord);
  });
}

FnId CoordFunctions::of(const std::unique_ptr<plan::ExprT> &expr,
                        unsigned stage) {
  return expr ? of(*expr, stage) : constant(0);
}

FnId CoordFunctions::block(unsigned axes, int64_t size) {
  return make(axes, [&](const Coord &coord) {
    int64_t stride = size, offset = 0;
    for (Axis axis : plan::kRankOrder)
      if (axes & bit(axis)) {
        offset += stride * coord[axis];
        stride *= plan::axisSize(mesh_, axis);
      }
    return offset;
  });
}

int64_t CoordFunctions::ranks(unsigned axes) const {
  int64_t count = 1;
  for (Axis axis : plan::kRankOrder)
    if (axes & bit(axis))
      count *= plan::axisSize(mesh_, axis);
  return count;
}

FnId CoordFunctions::shifted(FnId f, int64_t delta) {
  if (delta == 0)
    return f;
  std::vector<int64_t> table = functions_[f].table;
  for (int64_t &value : table)
    value += delta;
  return functions_[f].axes ? intern(functions_[f].axes, std::move(table))
                            : constant(table[0]);
}

int64_t CoordFunctions::at(FnId f, const Coord &coord) const {
  const Function &function = functions_[f];
  size_t index = 0, stride = 1;
  for (Axis axis : kAxes)
    if (function.axes & bit(axis)) {
      index += stride * static_cast<size_t>(coord[axis]);
      stride *= static_cast<size_t>(plan::axisSize(mesh_, axis));
    }
  return function.table[index];
}

bool CoordFunctions::overlap(FnId f, int64_t bytesOfF, FnId g,
                             int64_t bytesOfG) const {
  return !forCoords(axes(f) | axes(g), [&](const Coord &coord) {
    int64_t a = at(f, coord), b = at(g, coord);
    return a + bytesOfF <= b || b + bytesOfG <= a;
  });
}

bool CoordFunctions::covers(FnId f, int64_t bytesOfF, FnId g,
                            int64_t bytesOfG) const {
  return forCoords(axes(f) | axes(g), [&](const Coord &coord) {
    int64_t a = at(f, coord), b = at(g, coord);
    return a <= b && b + bytesOfG <= a + bytesOfF;
  });
}

std::string CoordFunctions::describe(FnId f) const {
  const Function &function = functions_[f];
  std::string text;
  for (size_t i = 0; i < function.table.size() && i < 3; ++i)
    text += (i ? ", " : "") + std::to_string(function.table[i]);
  if (function.table.size() > 3)
    text += ", ...";
  if (function.axes) {
    text += " by";
    for (Axis axis : kAxes)
      if (function.axes & bit(axis))
        text += std::string(" ") + plan::axisName(axis);
  }
  return text;
}
