//===- CoordFunctions.h - values that depend on a rank's coordinates ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_COORDFUNCTIONS_H
#define RECKON_PASSES_PROVE_COORDFUNCTIONS_H

#include "runtime/plan/Coordinates.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace reckon::prove {

/// Two functions have the same number exactly when they have the same value on
/// every rank of a stage.
using FnId = uint32_t;

/// Functions of (tp, cp, ep, dp), as tables over the axes that matter. The pp
/// coordinate is that of the stage a function belongs to.
class CoordFunctions {
public:
  explicit CoordFunctions(const plan::MeshT &mesh) : mesh_(mesh) {}

  FnId constant(int64_t value);
  FnId of(const plan::ExprT &expr, unsigned stage);
  /// The same for an optional field; an absent Expr is 0.
  FnId of(const std::unique_ptr<plan::ExprT> &expr, unsigned stage);
  /// Calls `value` for every coordinate; at most `axes` (bit i: axis i) matter.
  FnId make(unsigned axes,
            const std::function<int64_t(const plan::Coord &)> &value);
  /// size * i on the i-th of the ranks that differ along `axes`.
  FnId block(unsigned axes, int64_t size);
  /// How many ranks differ along `axes`.
  int64_t ranks(unsigned axes) const;
  /// f + delta.
  FnId shifted(FnId f, int64_t delta);

  bool isConstant(FnId f) const { return functions_[f].axes == 0; }
  int64_t low(FnId f) const { return functions_[f].low; }
  int64_t high(FnId f) const { return functions_[f].high; }
  int64_t at(FnId f, const plan::Coord &coord) const;
  /// Axes (bit i: axis i) that the value depends on.
  unsigned axes(FnId f) const { return functions_[f].axes; }
  /// Whether [f, f + bytesOfF) and [g, g + bytesOfG) meet on some rank.
  bool overlap(FnId f, int64_t bytesOfF, FnId g, int64_t bytesOfG) const;
  /// Whether [g, g + bytesOfG) lies inside [f, f + bytesOfF) on every rank.
  bool covers(FnId f, int64_t bytesOfF, FnId g, int64_t bytesOfG) const;
  /// "128", or "0, 128, 256, ... by dp".
  std::string describe(FnId f) const;

  const plan::MeshT &mesh() const { return mesh_; }
  unsigned realAxes(unsigned axes) const;

private:
  struct Function {
    unsigned axes = 0;
    std::vector<int64_t> table; ///< one value without axes
    int64_t low = 0, high = 0;
  };
  bool forCoords(unsigned axes,
                 const std::function<bool(const plan::Coord &)> &visit) const;
  FnId intern(unsigned axes, std::vector<int64_t> table);

  plan::MeshT mesh_;
  std::vector<Function> functions_;
  std::map<std::pair<unsigned, std::vector<int64_t>>, FnId> ids_;
  std::map<int64_t, FnId> constants_;
};

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_COORDFUNCTIONS_H
