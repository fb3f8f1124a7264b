//===- Coordinates.cpp - ranks, their coordinates, and what they select ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Coordinates.h"

#include "runtime/base/Status.h"

#include <algorithm>

namespace reckon::plan {

int64_t &Coord::operator[](Axis axis) {
  switch (axis) {
  case Axis::tp:
    return tp;
  case Axis::cp:
    return cp;
  case Axis::ep:
    return ep;
  case Axis::dp:
    return dp;
  case Axis::pp:
    return pp;
  }
  RECKON_CHECK(false && "an axis outside the mesh");
}

int64_t Coord::operator[](Axis axis) const {
  return const_cast<Coord &>(*this)[axis];
}

int64_t axisSize(const MeshT &mesh, Axis axis) {
  switch (axis) {
  case Axis::tp:
    return mesh.tp;
  case Axis::cp:
    return mesh.cp;
  case Axis::ep:
    return mesh.ep;
  case Axis::dp:
    return mesh.dp;
  case Axis::pp:
    return mesh.pp;
  }
  RECKON_CHECK(false && "an axis outside the mesh");
}

int64_t worldSize(const MeshT &mesh) {
  int64_t product = 1;
  for (Axis axis : kRankOrder)
    product *= axisSize(mesh, axis);
  return product;
}

int64_t rankOf(const MeshT &mesh, const Coord &coord) {
  int64_t rank = 0;
  int64_t stride = 1;
  for (Axis axis : kRankOrder) {
    rank += coord[axis] * stride;
    stride *= axisSize(mesh, axis);
  }
  return rank;
}

Coord coordOf(const MeshT &mesh, int64_t rank) {
  Coord coord;
  for (Axis axis : kRankOrder) {
    coord[axis] = rank % axisSize(mesh, axis);
    rank /= axisSize(mesh, axis);
  }
  return coord;
}

int64_t evalExpr(const ExprT &expr, const Coord &coord) {
  for (const Case &c : expr.cases)
    if ((coord[c.axis()] == c.equals()) != c.differs())
      return c.value();
  int64_t value = expr.base;
  for (const Term &term : expr.terms)
    value += term.scale() * coord[term.axis()];
  return value;
}

int64_t evalExpr(const std::unique_ptr<ExprT> &expr, const Coord &coord) {
  return expr ? evalExpr(*expr, coord) : 0;
}

bool isConstant(const ExprT &expr) {
  return expr.cases.empty() &&
         std::all_of(expr.terms.begin(), expr.terms.end(),
                     [](const Term &term) { return term.scale() == 0; });
}

std::unique_ptr<ExprT> constantExpr(int64_t value) {
  auto expr = std::make_unique<ExprT>();
  expr->base = value;
  return expr;
}

std::vector<int> groupRanks(const GroupT &group, const MeshT &mesh,
                            const Coord &coord) {
  std::vector<int> ranks;
  int64_t world = worldSize(mesh);
  for (int64_t rank = 0; rank < world; ++rank) {
    Coord other = coordOf(mesh, rank);
    bool member = true;
    for (Axis axis : kRankOrder) {
      bool free = std::find(group.axes.begin(), group.axes.end(), axis) !=
                  group.axes.end();
      member &= free || other[axis] == coord[axis];
    }
    for (const auto &filter : group.filters)
      member &= std::find(filter->values.begin(), filter->values.end(),
                          other[filter->axis]) != filter->values.end();
    if (member)
      ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

const char *axisName(Axis axis) { return EnumNameAxis(axis); }

std::string describeRank(const MeshT &mesh, int64_t rank) {
  Coord coord = coordOf(mesh, rank);
  std::string text;
  for (Axis axis : kRankOrder)
    if (axisSize(mesh, axis) > 1)
      text += (text.empty() ? " (" : ", ") + std::string(axisName(axis)) + " " +
              std::to_string(coord[axis]);
  return "rank " + std::to_string(rank) + text + (text.empty() ? "" : ")");
}

int64_t dtypeSize(DType dtype) {
  switch (dtype) {
  case DType::u8:
  case DType::f8e4m3:
  case DType::f8e5m2:
    return 1;
  case DType::bf16:
  case DType::f16:
    return 2;
  case DType::f32:
  case DType::i32:
    return 4;
  case DType::f64:
  case DType::i64:
    return 8;
  }
  RECKON_CHECK(false && "a data type outside the format");
}

int64_t elementCount(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

} // namespace reckon::plan
