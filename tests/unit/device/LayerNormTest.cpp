//===- LayerNormTest.cpp - LayerNorm and GELU, in f32 and bf16 ------------===//
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

#include <bit>
#include <functional>

using namespace reckon::device;
using namespace reckon::device::test;

namespace {

constexpr double eps = 1e-5;

uint16_t half(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float single(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Operands in f32 and in bf16, the same numbers in both.
struct Both {
  Halves halves;
  Floats floats;
  Both(const Floats &values) {
    for (float value : values) {
      halves.push_back(half(value));
      floats.push_back(single(halves.back()));
    }
  }
};

Floats singles(const Halves &halves) {
  Floats values;
  for (uint16_t bits : halves)
    values.push_back(single(bits));
  return values;
}

/// Results of both storage types are those of f64, one of them rounded to bf16;
/// and a result that is not would be seen.
void expectBoth(const Floats &f32, const Halves &bf16, const Doubles &want,
                double absolute) {
  EXPECT_LE(largest(f32, want), absolute);
  auto worst = [&](const Floats &got) {
    double most = 0.0;
    for (size_t i = 0; i < want.size(); ++i)
      most = std::max(most, std::abs(got[i] - want[i]) /
                                (absolute + 0x1p-8 * std::abs(want[i])));
    return most;
  };
  Floats got = singles(bf16);
  EXPECT_LE(worst(got), 1.0);
  size_t middle = want.size() / 2;
  got[middle] +=
      static_cast<float>(4.0 * (absolute + 0x1p-8 * std::abs(want[middle])));
  EXPECT_GT(worst(got), 1.0);
}

double dot(const Doubles &a, const Floats &b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

/// d/dx[i] of f for every i.
Doubles gradient(Doubles x, const std::function<double(const Doubles &)> &f) {
  Doubles result(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    double step = 1e-5, at = x[i];
    x[i] = at + step;
    double above = f(x);
    x[i] = at - step;
    double below = f(x);
    x[i] = at;
    result[i] = (above - below) / (2.0 * step);
  }
  return result;
}

Doubles layerNorm(const Doubles &x, const Doubles &w, const Doubles &b) {
  size_t h = w.size();
  auto count = static_cast<double>(h);
  Doubles y(x.size());
  for (size_t at = 0; at < x.size(); at += h) {
    double mean = 0.0, squares = 0.0;
    for (size_t i = 0; i < h; ++i)
      mean += x[at + i] / count;
    for (size_t i = 0; i < h; ++i)
      squares += (x[at + i] - mean) * (x[at + i] - mean) / count;
    for (size_t i = 0; i < h; ++i)
      y[at + i] = (x[at + i] - mean) / std::sqrt(squares + eps) * w[i] + b[i];
  }
  return y;
}

double gelu(double x) {
  return 0.5 * x *
         (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

class LayerNormTest : public Variants {};

} // namespace

TEST_P(LayerNormTest, ForwardAndGradients) {
  for (int64_t h : {2, 5, 16, 33, 64, 130}) {
    SCOPED_TRACE(h);
    const int64_t rows = 7, n = rows * h;
    Floats raw = random(n, 1, 2.0);
    for (float &value : raw)
      value += 3.0f; // a mean that matters
    Both x(raw), w(random(h, 2)), b(random(h, 3)), dy(random(n, 4));
    Floats y(n, 7.0f), dx(n, 7.0f), gw(h, 7.0f), gb(h, 7.0f);
    Halves y2(n, 7), dx2(n, 7);
    Floats gw2(h, 7.0f), gb2(h, 7.0f);
    Call{Kernel::LayerNorm, {x.floats, w.floats, b.floats}, {y}, {h}, {eps}}
        .run(*device);
    Call{Kernel::LayerNorm, {x.halves, w.halves, b.halves}, {y2}, {h}, {eps}}
        .run(*device);
    Doubles X = wide(x.floats), W = wide(w.floats), B = wide(b.floats);
    expectBoth(y, y2, layerNorm(X, W, B), 4e-6);

    Call{Kernel::LayerNormGradInput,
         {dy.floats, x.floats, w.floats},
         {dx},
         {h},
         {eps}}
        .run(*device);
    Call{Kernel::LayerNormGradInput,
         {dy.halves, x.halves, w.halves},
         {dx2},
         {h},
         {eps}}
        .run(*device);
    Doubles wantX = gradient(X, [&](const Doubles &at) {
      return dot(layerNorm(at, W, B), dy.floats);
    });
    // Two columns that nearly agree have a large 1 / deviation, of which the
    // gradient nearly cancels.
    expectBoth(dx, dx2, wantX, h == 2 ? 2e-3 : 1e-5);
    Floats inPlace = dy.floats;
    Call{Kernel::LayerNormGradInput,
         {inPlace, x.floats, w.floats},
         {inPlace},
         {h},
         {eps}}
        .run(*device);
    EXPECT_EQ(inPlace, dx);

    Doubles wantW = gradient(W, [&](const Doubles &at) {
      return dot(layerNorm(X, at, B), dy.floats);
    });
    Doubles wantB = gradient(B, [&](const Doubles &at) {
      return dot(layerNorm(X, W, at), dy.floats);
    });
    for (int64_t accumulate : {0, 1}) {
      Call{Kernel::LayerNormGradWeight,
           {dy.floats, x.floats},
           {gw, gb},
           {h, accumulate},
           {eps}}
          .run(*device);
      Call{Kernel::LayerNormGradWeight,
           {dy.halves, x.halves},
           {gw2, gb2},
           {h, accumulate},
           {eps}}
          .run(*device);
      for (size_t i = 0; accumulate && i < wantW.size(); ++i) {
        wantW[i] *= 2.0;
        wantB[i] *= 2.0;
      }
      EXPECT_LT(relative(gw, wantW), 2e-6);
      EXPECT_LT(relative(gb, wantB), 2e-6);
      EXPECT_EQ(gw2, gw); // f32 sums of the same numbers
      EXPECT_EQ(gb2, gb);
    }
  }
}

TEST_P(LayerNormTest, ALargeMeanIsNotLostInTheVariance) {
  // E(x^2) - E(x)^2 in f32 would be wrong in the first digit: the squares are
  // 10^8, their last place 8, the variance 1.
  const int64_t h = 4096;
  Floats x(h), w(h, 1.0f), b(h, 0.0f), y(h);
  for (int64_t i = 0; i < h; ++i)
    x[i] = i % 2 == 0 ? 10001.0f : 9999.0f;
  Call{Kernel::LayerNorm, {x, w, b}, {y}, {h}, {0.0}}.run(*device);
  for (int64_t i = 0; i < h; ++i)
    ASSERT_NEAR(y[i], i % 2 == 0 ? 1.0f : -1.0f, 1e-6);
}

TEST_P(LayerNormTest, Gelu) {
  const int64_t f = 53, n = 4 * f;
  Both x(random(n, 1, 3.0)), dy(random(n, 2));
  for (int64_t i : {0, 100})
    for (float far : {1e15f, -1e15f}) { // the cube is no f32
      size_t at = static_cast<size_t>(i) + (far < 0.0f);
      x.halves[at] = half(far);
      x.floats[at] = single(x.halves[at]);
    }
  Floats y(n, 7.0f), dx(n, 7.0f);
  Halves y2(n, 7), dx2(n, 7);
  Call{Kernel::Gelu, {x.floats}, {y}, {f}, {}}.run(*device);
  Call{Kernel::Gelu, {x.halves}, {y2}, {f}, {}}.run(*device);
  Call{Kernel::GeluGrad, {dy.floats, x.floats}, {dx}, {f}, {}}.run(*device);
  Call{Kernel::GeluGrad, {dy.halves, x.halves}, {dx2}, {f}, {}}.run(*device);
  Doubles wantY(n), wantX(n);
  for (int64_t i = 0; i < n; ++i) {
    double at = x.floats[i];
    wantY[i] = gelu(at);
    // A difference of large numbers has no such small step.
    at = std::clamp(at, -50.0, 50.0);
    wantX[i] = dy.floats[i] * (gelu(at + 1e-5) - gelu(at - 1e-5)) / 2e-5;
  }
  // Where it is far, y is x or 0; the others are of order 10.
  for (int64_t i : {0, 1, 100, 101}) {
    EXPECT_EQ(y[i], wantY[i]);
    EXPECT_EQ(single(y2[i]), wantY[i]);
    wantY[i] = y[i] = 0.0f;
    y2[i] = 0;
  }
  expectBoth(y, y2, wantY, 2e-6);
  expectBoth(dx, dx2, wantX, 3e-6);
  Floats inPlace = x.floats;
  Call{Kernel::GeluGrad, {dy.floats, inPlace}, {inPlace}, {f}, {}}.run(*device);
  EXPECT_EQ(inPlace, dx);
}

TEST_P(LayerNormTest, BitsDoNotDependOnThreads) {
  const int64_t t = 700, h = 400;
  auto all = [&](Device &on) {
    Floats x = random(t * h, 1), w = random(h, 2), dy = random(t * h, 3);
    Floats y(t * h), dx(t * h), gw(h), gb(h), z(t * h);
    Call{Kernel::LayerNorm, {x, w, w}, {y}, {h}, {eps}}.run(on);
    Call{Kernel::LayerNormGradInput, {dy, x, w}, {dx}, {h}, {eps}}.run(on);
    Call{Kernel::LayerNormGradWeight, {dy, x}, {gw, gb}, {h, 0}, {eps}}.run(on);
    Call{Kernel::Gelu, {x}, {z}, {h}, {}}.run(on);
    for (const Floats *more : {&dx, &gw, &gb, &z})
      y.insert(y.end(), more->begin(), more->end());
    return y;
  };
  auto [isa, threads] = GetParam();
  auto one = makeCpuDevice({.threads = 1, .isa = isa});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(all(*device), all(**one));
}

RECKON_VARIANTS(LayerNormTest);
