//===- DualPipeV.cpp - DualPipeV ------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Orders.h"

using namespace reckon::model;
using namespace reckon::model::schedule;

namespace {

/// Weight gradients that are put off run first in, first out over both chunks.
struct Writer {
  Order order{};
  Order waiting{};
  size_t run = 0;
  int64_t forwards[2] = {}, backwards[2] = {};

  void forward(int64_t chunk) {
    order.push_back({'F', forwards[chunk]++, chunk});
  }
  void backward(int64_t chunk) {
    order.push_back({'B', backwards[chunk]++, chunk});
  }
  void input(int64_t chunk) {
    int64_t microBatch = backwards[chunk]++;
    order.push_back({'I', microBatch, chunk});
    waiting.push_back({'W', microBatch, chunk});
  }
  void weight() { order.push_back(waiting[run++]); }
};

} // namespace

Order schedule::dualPipeV(int64_t p, int64_t m, int64_t rank) {
  int64_t after = p - 1 - rank;
  Writer writer;
  writer.order.reserve(6 * m);
  for (int64_t i = 0; i < 2 * after; ++i)
    writer.forward(0);
  for (int64_t i = 0; i < rank + 1; ++i) {
    writer.forward(0);
    writer.forward(1);
  }
  for (int64_t i = 0; i < after; ++i) {
    writer.input(1);
    writer.weight();
    writer.forward(1);
  }
  for (int64_t i = 0; i < m - 2 * p + rank + 1; ++i) {
    writer.forward(0);
    writer.backward(1);
    writer.forward(1);
    writer.backward(0);
  }
  for (int64_t i = 0; i < after; ++i) {
    writer.backward(1);
    writer.forward(1);
    writer.backward(0);
  }
  // Halfway through rank + 1 pairs the backwards are split: rank + 1 of these
  // 2 (rank + 1), so that as many weight gradients are left for the end.
  for (int64_t i = 0; i < 2 * (rank + 1); ++i) {
    if (i < rank + 1)
      writer.backward(i % 2 == 0);
    else
      writer.input(i % 2 == 0);
  }
  for (int64_t i = 0; i < after; ++i) {
    writer.weight();
    writer.input(0);
  }
  for (int64_t i = 0; i < rank + 1; ++i)
    writer.weight();
  return writer.order;
}
