//===- ZeroBubbleV.cpp - ZBV ----------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Orders.h"

using namespace reckon::model;
using namespace reckon::model::schedule;

namespace {

/// Appends the next action of a pass and chunk, counting micro-batches up; what
/// lies past the last micro-batch is left out.
struct Writer {
  int64_t m;
  Order order{};
  int64_t next[3][2] = {};

  int64_t &counter(char pass, int64_t chunk) {
    return next[pass == 'F' ? 0 : pass == 'I' ? 1 : 2][chunk];
  }
  void add(char pass, int64_t chunk) {
    int64_t microBatch = counter(pass, chunk)++;
    if (microBatch < m)
      order.push_back({pass, microBatch, chunk});
  }
};

} // namespace

Order schedule::zeroBubbleV(int64_t p, int64_t m, int64_t rank) {
  // The phases need this many micro-batches; with fewer the missing ones leave
  // holes.
  int64_t n = std::max(m, 2 * p - 1);
  Writer writer{m};
  writer.order.reserve(6 * m);
  for (int64_t i = 0; i < 2 * (p - rank) - 1; ++i)
    writer.add('F', 0);
  for (int64_t i = 0; i < rank; ++i) {
    writer.add('F', 1);
    writer.add('F', 0);
  }
  for (int64_t i = 0; i < p - rank; ++i) {
    writer.add('F', 1);
    writer.add('I', 1);
    writer.add('W', 1);
  }
  while (writer.counter('F', 1) < n) {
    if (writer.counter('F', 0) < n)
      writer.add('F', 0);
    writer.add('I', 0);
    writer.add('W', 0);
    writer.add('F', 1);
    writer.add('I', 1);
    writer.add('W', 1);
  }
  for (int64_t i = 0; i < rank; ++i) {
    writer.add('I', 0);
    writer.add('I', 1);
  }
  for (int64_t i = 0; i < p - rank; ++i) {
    writer.add('I', 0);
    writer.add('W', 0);
  }
  while (writer.counter('W', 1) < n)
    writer.add('W', 1);
  while (writer.counter('W', 0) < n)
    writer.add('W', 0);
  return writer.order;
}
