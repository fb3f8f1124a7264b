//===- OneFOneB.cpp - GPipe, breadth-first and 1F1B -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Orders.h"

using namespace reckon::model;
using namespace reckon::model::schedule;

Order schedule::breadthFirst(int64_t v, int64_t m) {
  Order order;
  order.reserve(2 * v * m);
  for (int64_t chunk = 0; chunk < v; ++chunk)
    for (int64_t i = 0; i < m; ++i)
      order.push_back({'F', i, chunk});
  for (int64_t chunk = v - 1; chunk >= 0; --chunk)
    for (int64_t i = 0; i < m; ++i)
      order.push_back({'B', i, chunk});
  return order;
}

Order schedule::oneForwardOneBackward(int64_t p, int64_t m, int64_t rank) {
  int64_t ahead = std::min(p - 1 - rank, m);
  Order order;
  order.reserve(2 * m);
  for (int64_t i = 0; i < ahead; ++i)
    order.push_back({'F', i});
  for (int64_t i = 0; i < m - ahead; ++i) {
    order.push_back({'F', ahead + i});
    order.push_back({'B', i});
  }
  for (int64_t i = m - ahead; i < m; ++i)
    order.push_back({'B', i});
  return order;
}
