//===- Coordinates.h - ranks, their coordinates, and what they select -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Ranks are numbered with tp fastest, then cp, ep, dp, pp. Everything in a
// stage's plan that differs between its ranks is a function of these
// coordinates: an Expr, or a Group.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_PLAN_COORDINATES_H
#define RECKON_RUNTIME_PLAN_COORDINATES_H

#include "runtime/plan/plan_generated.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reckon::plan {

/// Axes of the mesh, and so members of Coord.
inline constexpr int kNumAxes = 5;

/// The axes, fastest varying rank first.
inline constexpr std::array<Axis, kNumAxes> kRankOrder = {
    Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};

/// Position of one rank in the mesh.
struct Coord {
  int64_t tp = 0;
  int64_t cp = 0;
  int64_t ep = 0;
  int64_t dp = 0;
  int64_t pp = 0;

  int64_t &operator[](Axis axis);
  int64_t operator[](Axis axis) const;
  bool operator==(const Coord &) const = default;
};

/// Ranks along one axis.
int64_t axisSize(const MeshT &mesh, Axis axis);

/// Product of all axes.
int64_t worldSize(const MeshT &mesh);

int64_t rankOf(const MeshT &mesh, const Coord &coord);
Coord coordOf(const MeshT &mesh, int64_t rank);

/// The value of the first case that matches the coordinates, else
/// base + sum(scale * coordinate).
int64_t evalExpr(const ExprT &expr, const Coord &coord);

/// The same for an optional field; an absent Expr is 0.
int64_t evalExpr(const std::unique_ptr<ExprT> &expr, const Coord &coord);

/// Whether no coordinate changes the value.
bool isConstant(const ExprT &expr);

/// An Expr with one value on all ranks.
std::unique_ptr<ExprT> constantExpr(int64_t value);

/// The ranks that agree with `coord` on all axes outside `group.axes` and pass
/// its filters, ascending. Does not contain `coord`'s own rank when that rank
/// fails a filter: it then takes no part in the group.
std::vector<int> groupRanks(const GroupT &group, const MeshT &mesh,
                            const Coord &coord);

/// "tp", "cp", "ep", "dp" or "pp".
const char *axisName(Axis axis);

/// "rank 5 (tp 1, dp 0, pp 1)": axes of size 1 are left out.
std::string describeRank(const MeshT &mesh, int64_t rank);

/// Bytes of one element.
int64_t dtypeSize(DType dtype);

/// Product of the dimensions; 1 for a scalar.
int64_t elementCount(const std::vector<int64_t> &shape);

} // namespace reckon::plan

#endif // RECKON_RUNTIME_PLAN_COORDINATES_H
