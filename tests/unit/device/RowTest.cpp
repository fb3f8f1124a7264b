//===- RowTest.cpp - memory, embedding, norm and activation kernels -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Gradients are compared with central differences of an f64 forward pass, so
// that no derivation by hand is trusted twice.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/device/Support.h"

#include "runtime/device/RopeTable.h"

#include <functional>

using namespace reckon::device;
using namespace reckon::device::test;

namespace {

constexpr double eps = 1e-5;

/// d/dx[i] of f for every i, by central differences in f64.
Doubles gradient(Doubles x, const std::function<double(const Doubles &)> &f) {
  Doubles result(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    double step = 1e-6 * std::max(1.0, std::abs(x[i])), at = x[i];
    x[i] = at + step;
    double above = f(x);
    x[i] = at - step;
    double below = f(x);
    x[i] = at;
    result[i] = (above - below) / (2.0 * step);
  }
  return result;
}

Doubles rmsNorm(const Doubles &x, const Doubles &w) {
  size_t h = w.size();
  Doubles y(x.size());
  for (size_t r = 0; r < x.size() / h; ++r) {
    double squares = 0.0;
    for (size_t i = 0; i < h; ++i)
      squares += x[r * h + i] * x[r * h + i];
    for (size_t i = 0; i < h; ++i)
      y[r * h + i] = x[r * h + i] * w[i] /
                     std::sqrt(squares / static_cast<double>(h) + eps);
  }
  return y;
}

double dot(const Doubles &a, const Floats &b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

double silu(double x) { return x / (1.0 + std::exp(-x)); }

class RowTest : public Variants {};

} // namespace

TEST_P(RowTest, FillCopyAdd) {
  for (int64_t n : {1, 15, 16, 17, 1000, 100003}) {
    Floats a = random(n, 1), b = random(n, 2), c(n, 7.0f), d(n, 7.0f);
    Call{Kernel::Add, {a, b}, {c}, {}, {}}.run(*device);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(c[i], a[i] + b[i]);
    Call{Kernel::Copy, {c}, {d}, {}, {}}.run(*device);
    EXPECT_EQ(c, d);
    Call{Kernel::Add, {a, b}, {a}, {}, {}}.run(*device);
    EXPECT_EQ(a, c);
    Call{Kernel::FillZero, {}, {d}, {}, {}}.run(*device);
    EXPECT_EQ(d, Floats(n, 0.0f));
  }
}

TEST_P(RowTest, EmbeddingOfTwoShardsAddsUpToTheWhole) {
  const int64_t v = 11, h = 37, t = 300;
  Floats table = random(2 * v * h, 1), whole(t * h), sum(t * h, 0.0f);
  Ints tokens = randomTokens(t, 2 * v, 2);
  Call{Kernel::Embedding, {tokens, table}, {whole}, {2 * v, h, 0}, {}}.run(
      *device);
  for (int64_t r = 0; r < t; ++r)
    for (int64_t i = 0; i < h; ++i)
      ASSERT_EQ(whole[r * h + i], table[tokens[r] * h + i]);
  for (int64_t shard : {0, 1}) {
    Floats part(table.begin() + shard * v * h,
                table.begin() + (shard + 1) * v * h);
    Floats y(t * h, 7.0f);
    Call{Kernel::Embedding, {tokens, part}, {y}, {v, h, shard * v}, {}}.run(
        *device);
    for (int64_t i = 0; i < t * h; ++i)
      sum[i] += y[i];
  }
  EXPECT_EQ(sum, whole);
}

TEST_P(RowTest, EmbeddingGradScatters) {
  const int64_t v = 13, h = 210, t = 500, offset = 5;
  Floats dy = random(t * h, 1), start = random(v * h, 3);
  Ints tokens = randomTokens(t, 30, 2); // some below, some above the shard
  for (int64_t accumulate : {0, 1}) {
    Floats gw = start;
    Call{Kernel::EmbeddingGrad,
         {dy, tokens},
         {gw},
         {v, h, offset, accumulate},
         {}}
        .run(*device);
    Doubles want = accumulate ? wide(start) : Doubles(v * h);
    for (int64_t r = 0; r < t; ++r)
      if (int64_t row = tokens[r] - offset; row >= 0 && row < v)
        for (int64_t i = 0; i < h; ++i)
          want[row * h + i] += dy[r * h + i];
    EXPECT_LT(largest(gw, want), 1e-5);
  }
}

TEST_P(RowTest, RmsNorm) {
  for (int64_t h : {1, 5, 16, 33, 64, 250}) {
    SCOPED_TRACE(h);
    const int64_t rows = 7;
    Floats x = random(rows * h, 1, 3.0), w = random(h, 2), y(rows * h, 7.0f);
    Floats dy = random(rows * h, 3), dx(rows * h, 7.0f), gw(h, 7.0f);
    Call{Kernel::RmsNorm, {x, w}, {y}, {h}, {eps}}.run(*device);
    EXPECT_LT(relative(y, rmsNorm(wide(x), wide(w))), 3e-7);

    Call{Kernel::RmsNormGradInput, {dy, x, w}, {dx}, {h}, {eps}}.run(*device);
    Doubles want = gradient(wide(x), [&](const Doubles &at) {
      return dot(rmsNorm(at, wide(w)), dy);
    });
    // With one column the true gradient nearly cancels.
    double scale = *std::max_element(w.begin(), w.end());
    EXPECT_LT(largest(dx, want), 2e-6 * std::max(1.0, scale));

    Call{Kernel::RmsNormGradWeight, {dy, x}, {gw}, {h, 0}, {eps}}.run(*device);
    want = gradient(wide(w), [&](const Doubles &at) {
      return dot(rmsNorm(wide(x), at), dy);
    });
    EXPECT_LT(relative(gw, want), 1e-6);
    Call{Kernel::RmsNormGradWeight, {dy, x}, {gw}, {h, 1}, {eps}}.run(*device);
    for (double &value : want)
      value *= 2.0;
    EXPECT_LT(relative(gw, want), 1e-6);

    Floats inPlace = dy;
    Call{Kernel::RmsNormGradInput, {inPlace, x, w}, {inPlace}, {h}, {eps}}.run(
        *device);
    EXPECT_EQ(inPlace, dx);
  }
}

TEST_P(RowTest, RmsNormOfLongRowsStaysExact) {
  // 0.1 summed 65536 times in one f32 would be off by 1e-3.
  const int64_t h = 1 << 16;
  Floats x(h, 0.1f), w(h, 1.0f), y(h);
  Call{Kernel::RmsNorm, {x, w}, {y}, {h}, {0.0}}.run(*device);
  EXPECT_NEAR(y[0], 1.0f, 3e-7);
}

TEST_P(RowTest, RopeRotatesHalves) {
  for (int64_t d : {2, 10, 32, 64, 128}) {
    const int64_t s = 9, t = 2 * s, heads = 3;
    Floats table(s * d), x = random(t * heads * d, 1), y(x.size(), 7.0f);
    ropeTable(table.data(), s, d, {.theta = 100.0});
    Call{Kernel::Rope, {x, table}, {y}, {heads, d, s, 0}, {}}.run(*device);
    Doubles want(x.size());
    for (int64_t r = 0; r < t; ++r)
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t i = 0; i < d / 2; ++i) {
          double angle = (r % s) * std::pow(100.0, -2.0 * i / d);
          int64_t a = (r * heads + head) * d + i, b = a + d / 2;
          want[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
          want[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
        }
    EXPECT_LT(relative(y, want), 2e-7);
    // The inverse undoes it; the gradient of a rotation is its inverse.
    Call{Kernel::Rope, {y, table}, {y}, {heads, d, s, 1}, {}}.run(*device);
    EXPECT_LT(relative(y, wide(x)), 3e-7);
  }
}

TEST_P(RowTest, Swiglu) {
  const int64_t f = 53, rows = 4, n = rows * f;
  Floats gate = random(n, 1, 4.0), up = random(n, 2), dy = random(n, 3);
  Floats y(n, 7.0f), dgate(n, 7.0f), dup(n, 7.0f);
  auto forward = [](const Doubles &g, const Doubles &u) {
    Doubles out(g.size());
    for (size_t i = 0; i < g.size(); ++i)
      out[i] = silu(g[i]) * u[i];
    return out;
  };
  Call{Kernel::Swiglu, {gate, up}, {y}, {f}, {}}.run(*device);
  EXPECT_LT(relative(y, forward(wide(gate), wide(up))), 2e-7);
  Call{Kernel::SwigluGrad, {dy, gate, up}, {dgate, dup}, {f}, {}}.run(*device);
  EXPECT_LT(relative(dgate, gradient(wide(gate),
                                     [&](const Doubles &at) {
                                       return dot(forward(at, wide(up)), dy);
                                     })),
            1e-6);
  EXPECT_LT(relative(dup, gradient(wide(up),
                                   [&](const Doubles &at) {
                                     return dot(forward(wide(gate), at), dy);
                                   })),
            1e-6);
  // The outputs may take the inputs' place.
  Floats g = gate, u = up;
  Call{Kernel::SwigluGrad, {dy, g, u}, {g, u}, {f}, {}}.run(*device);
  EXPECT_EQ(g, dgate);
  EXPECT_EQ(u, dup);
}

TEST_P(RowTest, ExponentialOverItsWholeRange) {
  // silu(x) = x / (1 + e^-x) for very small and very large e^-x.
  Floats gate, y;
  for (double x = -120.0; x <= 120.0; x += 0.00731)
    gate.push_back(static_cast<float>(x));
  int64_t n = static_cast<int64_t>(gate.size());
  Floats up(n, 1.0f);
  y.resize(n);
  Call{Kernel::Swiglu, {gate, up}, {y}, {n}, {}}.run(*device);
  for (int64_t i = 0; i < n; ++i) {
    double want = silu(gate[i]);
    // Under 1e-35 flushing to zero is allowed.
    ASSERT_NEAR(y[i], want, 5e-7 * std::abs(want) + 1e-35) << gate[i];
  }
}

TEST_P(RowTest, BitsDoNotDependOnThreadsOrRepetition) {
  const int64_t t = 700, h = 400, f = 900;
  auto all = [&](Device &on) {
    Floats x = random(t * h, 1), w = random(h, 2), dy = random(t * h, 3);
    Floats y(t * h), dx(t * h), gw(h), table = random(50 * h, 4);
    Floats gate = random(t * f, 5), up = random(t * f, 6), z(t * f);
    Ints tokens = randomTokens(t, 50, 7);
    Call{Kernel::RmsNorm, {x, w}, {y}, {h}, {eps}}.run(on);
    Call{Kernel::RmsNormGradInput, {dy, x, w}, {dx}, {h}, {eps}}.run(on);
    Call{Kernel::RmsNormGradWeight, {dy, x}, {gw}, {h, 0}, {eps}}.run(on);
    Call{Kernel::EmbeddingGrad, {dy, tokens}, {table}, {50, h, 0, 1}, {}}.run(
        on);
    Call{Kernel::Swiglu, {gate, up}, {z}, {f}, {}}.run(on);
    for (const Floats *more : {&dx, &gw, &table, &z})
      y.insert(y.end(), more->begin(), more->end());
    return y;
  };
  auto [isa, threads] = GetParam();
  Floats first = all(*device);
  EXPECT_EQ(first, all(*device));
  auto single = makeCpuDevice({.threads = 1, .isa = isa});
  EXPECT_EQ(first, all(**single));
}

RECKON_VARIANTS(RowTest);
