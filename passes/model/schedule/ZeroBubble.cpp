//===- ZeroBubble.cpp - ZB-H1 and ZB-H2 -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Orders.h"

using namespace reckon::model;
using namespace reckon::model::schedule;

namespace {

/// `ahead` forwards; then, while there are any, F and I in turn, with a W
/// whenever more than `keepBack` wait; then I and W in turn; then what is left.
Order delayWeights(const VirtualOrder &table, int64_t ahead, int64_t keepBack,
                   bool forwardFirst) {
  int64_t n = table.size();
  ahead = std::min(ahead, n);
  Order order;
  order.reserve(3 * n);
  int64_t weights = 0;
  auto weight = [&] { order.push_back(table.backward(weights++, 'W')); };
  for (int64_t k = 0; k < ahead; ++k)
    order.push_back(table.forward(k));
  for (int64_t k = 0; k < n; ++k) {
    bool forwards = ahead + k < n;
    if (forwards && forwardFirst)
      order.push_back(table.forward(ahead + k));
    order.push_back(table.backward(k, 'I'));
    if (!forwards || k + 1 - weights > keepBack)
      weight();
    if (forwards && !forwardFirst)
      order.push_back(table.forward(ahead + k));
  }
  while (weights < n)
    weight();
  return order;
}

} // namespace

Order schedule::zeroBubbleH1(int64_t p, const VirtualOrder &table,
                             int64_t rank) {
  return delayWeights(table, (table.v - 1) * table.group + p - 1 - rank, rank,
                      /*forwardFirst=*/true);
}

Order schedule::zeroBubbleH2(int64_t p, int64_t m, int64_t rank) {
  return delayWeights({1, m, m}, 2 * (p - rank) - 1, 2 * rank,
                      /*forwardFirst=*/false);
}
