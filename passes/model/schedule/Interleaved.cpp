//===- Interleaved.cpp - 1F1B with several chunks a rank ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Orders.h"

using namespace reckon::model;
using namespace reckon::model::schedule;

ComputeAction VirtualOrder::forward(int64_t k) const {
  int64_t first = k / (group * v) * group;     // of the group that k is in
  int64_t length = std::min(group, m - first); // the last group may be short
  int64_t inside = k - first * v;
  return {'F', first + inside % length, inside / length};
}

ComputeAction VirtualOrder::backward(int64_t k, char pass) const {
  ComputeAction action = forward(k);
  return {pass, action.microBatch, v - 1 - action.chunk};
}

Order schedule::interleaved(int64_t p, const VirtualOrder &table,
                            int64_t rank) {
  int64_t n = table.size();
  int64_t ahead = std::min(2 * (p - 1 - rank) + (table.v - 1) * table.group, n);
  Order order;
  order.reserve(2 * n);
  for (int64_t k = 0; k < ahead; ++k)
    order.push_back(table.forward(k));
  for (int64_t k = 0; k < n - ahead; ++k) {
    order.push_back(table.forward(ahead + k));
    order.push_back(table.backward(k));
  }
  for (int64_t k = n - ahead; k < n; ++k)
    order.push_back(table.backward(k));
  return order;
}
