//===- AttentionReference.h - naive attention in f64 ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_DEVICE_ATTENTIONREFERENCE_H
#define RECKON_TESTS_UNIT_DEVICE_ATTENTIONREFERENCE_H

#include "tests/unit/device/Support.h"

namespace reckon::device::test {

struct AttentionCase {
  int64_t batch, hq, hkv, d, s;
};

struct AttentionReference {
  Doubles o, lse, dq, dk, dv, delta;
};

/// Everything with whole S x S matrices in f64. Query i sees the keys up to
/// i + ahead; only 0 is causal attention, other values are mistakes for tests
/// of the tests.
inline AttentionReference attentionReference(const AttentionCase &shape,
                                             const Floats &q, const Floats &k,
                                             const Floats &v, const Floats &dO,
                                             int64_t ahead = 0) {
  auto [batch, hq, hkv, d, s] = shape;
  AttentionReference r{Doubles(q.size()), Doubles(batch * hq * s),
                       Doubles(q.size()), Doubles(k.size()),
                       Doubles(v.size()), Doubles(batch * hq * s)};
  double scale = 1.0 / std::sqrt(static_cast<double>(d));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < hq; ++h)
      for (int64_t i = 0; i < s; ++i) {
        int64_t qi = ((b * s + i) * hq + h) * d, row = (b * hq + h) * s + i;
        auto key = [&](int64_t j) {
          return ((b * s + j) * hkv + h / (hq / hkv)) * d;
        };
        int64_t seen = std::clamp<int64_t>(i + 1 + ahead, 1, s);
        Doubles p(seen), dp(seen);
        double top = -INFINITY, total = 0.0;
        for (int64_t j = 0; j < seen; ++j) {
          for (int64_t x = 0; x < d; ++x)
            p[j] += scale * q[qi + x] * k[key(j) + x];
          top = std::max(top, p[j]);
        }
        for (double &value : p)
          total += value = std::exp(value - top);
        r.lse[row] = top + std::log(total);
        for (int64_t j = 0; j < seen; ++j) {
          p[j] /= total;
          for (int64_t x = 0; x < d; ++x) {
            r.o[qi + x] += p[j] * v[key(j) + x];
            dp[j] += dO[qi + x] * double(v[key(j) + x]);
            r.dv[key(j) + x] += p[j] * dO[qi + x];
          }
          r.delta[row] += p[j] * dp[j];
        }
        for (int64_t j = 0; j < seen; ++j)
          for (int64_t x = 0; x < d; ++x) {
            double ds = p[j] * (dp[j] - r.delta[row]) * scale;
            r.dq[qi + x] += ds * k[key(j) + x];
            r.dk[key(j) + x] += ds * q[qi + x];
          }
      }
  return r;
}

} // namespace reckon::device::test

#endif // RECKON_TESTS_UNIT_DEVICE_ATTENTIONREFERENCE_H
