//===- Bf16Test.cpp - every kernel on operands stored as bf16 -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The rule of bf16: operands are widened, arithmetic is f32, and a bf16 result
// is rounded once. So each result must be the rounding of an f64 reference of
// the same inputs, but where f32 noise tips a value over the middle between two
// neighbours: never more than half a step and that noise away. Weight gradients
// and statistics must be as exact as those of f32 operands.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/device/Support.h"

#include "runtime/device/RopeTable.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace reckon::device;
using namespace reckon::device::test;

namespace {

constexpr double eps = 1e-5;

float widened(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

/// To nearest even, by looking at both neighbours.
uint16_t rounded(double value) {
  auto narrow = static_cast<float>(value);
  uint32_t bits = std::bit_cast<uint32_t>(narrow);
  auto below = static_cast<uint16_t>(bits >> 16);
  auto above = static_cast<uint16_t>(below + 1);
  double low = std::abs(narrow - double(widened(below)));
  double high = std::abs(double(widened(above)) - narrow);
  if (low != high)
    return low < high ? below : above;
  return below % 2 ? above : below;
}

Halves randomHalves(int64_t n, uint32_t seed, double scale = 1.0) {
  Halves halves;
  for (float value : random(n, seed, scale))
    halves.push_back(rounded(value));
  return halves;
}

Doubles wide(const Halves &halves) {
  Doubles values;
  for (uint16_t half : halves)
    values.push_back(widened(half));
  return values;
}

/// Every element is within half a step of bf16 of the reference, but for
/// `noise` of f32 relative to the largest element.
void expectRounded(const Halves &got, const Doubles &want,
                   double noise = 2e-6) {
  ASSERT_EQ(got.size(), want.size());
  double most = 0.0;
  for (double value : want)
    most = std::max(most, std::abs(value));
  for (size_t i = 0; i < want.size(); ++i) {
    double step = std::abs(want[i]) * std::exp2(-8); // a half step at most
    ASSERT_NEAR(widened(got[i]), want[i], step + noise * most) << i;
  }
  // Mere truncation would pass above; it is one-sided, so this sees it.
  size_t other = 0;
  for (size_t i = 0; i < want.size(); ++i)
    other += got[i] != rounded(want[i]) && std::abs(want[i]) > 1e-2 * most;
  EXPECT_LE(other, 2 + want.size() / 50);
}

using Row = std::vector<double>;

class Bf16Test : public Variants {};

} // namespace

TEST(Bf16Rounding, OfTheTestItselfIsToNearestEven) {
  EXPECT_EQ(rounded(1.0), 0x3f80);
  EXPECT_EQ(rounded(1.0 + 0x1p-8), 0x3f80); // a tie, to the even one
  EXPECT_EQ(rounded(1.0 + 3 * 0x1p-8), 0x3f82);
  EXPECT_EQ(rounded(1.0 + 0x1.1p-8), 0x3f81);
  EXPECT_EQ(rounded(-1.0 - 3 * 0x1p-8), 0xbf82);
}

TEST_P(Bf16Test, AddRoundsToNearestEven) {
  for (int64_t n : {1, 15, 17, 70000}) {
    Halves a = randomHalves(n, 1), b = randomHalves(n, 2, 0.01), c(n, 7);
    Call{Kernel::Add, {a, b}, {c}, {}, {}}.run(*device);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(c[i], rounded(double(widened(a[i])) + widened(b[i])));
    Call{Kernel::Add, {a, b}, {b}, {}, {}}.run(*device);
    EXPECT_EQ(b, c);
  }
  // Ties, overflow to infinity, NaN, and signs of zero, in and after vectors.
  Halves one(40, 0x3f80), tie(40, rounded(0x1p-8)), sum(40);
  Call{Kernel::Add, {one, tie}, {sum}, {}, {}}.run(*device);
  EXPECT_EQ(sum, one);
  Halves large(40, 0x7f7f), nan(40, 0x7f81), zero(40, 0x8000);
  Call{Kernel::Add, {large, large}, {sum}, {}, {}}.run(*device);
  EXPECT_EQ(sum, Halves(40, 0x7f80));
  Call{Kernel::Add, {nan, one}, {sum}, {}, {}}.run(*device);
  for (uint16_t half : sum)
    EXPECT_TRUE(std::isnan(widened(half)));
  Call{Kernel::Add, {zero, zero}, {sum}, {}, {}}.run(*device);
  EXPECT_EQ(sum, zero);
}

TEST_P(Bf16Test, EmbeddingCopiesAndItsGradientSumsInF32) {
  const int64_t v = 13, h = 210, t = 500, offset = 5;
  Halves table = randomHalves(v * h, 1), y(t * h, 7);
  Halves dy = randomHalves(t * h, 2);
  Ints tokens = randomTokens(t, 30, 3);
  Call{Kernel::Embedding, {tokens, table}, {y}, {v, h, offset}, {}}.run(
      *device);
  for (int64_t r = 0; r < t; ++r)
    for (int64_t i = 0; i < h; ++i) {
      int64_t row = tokens[r] - offset;
      ASSERT_EQ(y[r * h + i], row < 0 || row >= v ? 0 : table[row * h + i]);
    }
  for (int64_t accumulate : {0, 1}) {
    Floats gw = random(v * h, 4);
    Doubles want = accumulate ? test::wide(gw) : Doubles(v * h);
    Call{Kernel::EmbeddingGrad,
         {dy, tokens},
         {gw},
         {v, h, offset, accumulate},
         {}}
        .run(*device);
    for (int64_t r = 0; r < t; ++r)
      if (int64_t row = tokens[r] - offset; row >= 0 && row < v)
        for (int64_t i = 0; i < h; ++i)
          want[row * h + i] += widened(dy[r * h + i]);
    EXPECT_LT(largest(gw, want), 1e-5);
  }
}

TEST_P(Bf16Test, RmsNorm) {
  for (int64_t h : {1, 5, 33, 64, 250}) {
    SCOPED_TRACE(h);
    const int64_t rows = 70;
    Halves x = randomHalves(rows * h, 1, 3.0), w = randomHalves(h, 2);
    Halves dy = randomHalves(rows * h, 3), y(rows * h, 7), dx(rows * h, 7);
    Floats gw(h, 7.0f);
    Call{Kernel::RmsNorm, {x, w}, {y}, {h}, {eps}}.run(*device);
    Call{Kernel::RmsNormGradInput, {dy, x, w}, {dx}, {h}, {eps}}.run(*device);
    Call{Kernel::RmsNormGradWeight, {dy, x}, {gw}, {h, 0}, {eps}}.run(*device);
    Doubles X = wide(x), W = wide(w), D = wide(dy);
    Doubles wantY(x.size()), wantX(x.size()), wantW(h);
    for (int64_t r = 0; r < rows; ++r) {
      double squares = 0.0, dot = 0.0;
      for (int64_t i = 0; i < h; ++i)
        squares += X[r * h + i] * X[r * h + i];
      double rstd = 1.0 / std::sqrt(squares / double(h) + eps);
      for (int64_t i = 0; i < h; ++i)
        dot += D[r * h + i] * W[i] * X[r * h + i] * rstd;
      for (int64_t i = 0; i < h; ++i) {
        double n = X[r * h + i] * rstd;
        wantY[r * h + i] = n * W[i];
        wantX[r * h + i] = rstd * (D[r * h + i] * W[i] - n * dot / double(h));
        wantW[i] += D[r * h + i] * n;
      }
    }
    expectRounded(y, wantY);
    // With one column the gradient nearly cancels: noise of its terms is left.
    expectRounded(dx, wantX, h == 1 ? 10.0 : 2e-6);
    EXPECT_LT(relative(gw, wantW), 1e-6);
    Call{Kernel::RmsNormGradWeight, {dy, x}, {gw}, {h, 1}, {eps}}.run(*device);
    for (double &value : wantW)
      value *= 2.0;
    EXPECT_LT(relative(gw, wantW), 1e-6);
  }
}

TEST_P(Bf16Test, RopeWithAnF32Table) {
  for (int64_t d : {2, 10, 64, 128}) {
    const int64_t s = 9, t = 2 * s, heads = 3;
    Floats table(s * d);
    Halves x = randomHalves(t * heads * d, 1), y(x.size(), 7), back = y;
    ropeTable(table.data(), s, d, {.theta = 100.0});
    Call{Kernel::Rope, {x, table}, {y}, {heads, d, s, 0}, {}}.run(*device);
    Call{Kernel::Rope, {x, table}, {back}, {heads, d, s, 1}, {}}.run(*device);
    Doubles want(x.size()), wantBack(x.size());
    for (int64_t r = 0; r < t; ++r)
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t i = 0; i < d / 2; ++i) {
          double angle = double(r % s) * std::pow(100.0, -2.0 * double(i) / d);
          int64_t a = (r * heads + head) * d + i, b = a + d / 2;
          double c = std::cos(angle), n = std::sin(angle);
          want[a] = widened(x[a]) * c - widened(x[b]) * n;
          want[b] = widened(x[b]) * c + widened(x[a]) * n;
          wantBack[a] = widened(x[a]) * c + widened(x[b]) * n;
          wantBack[b] = widened(x[b]) * c - widened(x[a]) * n;
        }
    expectRounded(y, want);
    expectRounded(back, wantBack);
  }
}

TEST_P(Bf16Test, Swiglu) {
  const int64_t f = 53, rows = 40, n = rows * f;
  Halves gate = randomHalves(n, 1, 4.0), up = randomHalves(n, 2);
  Halves dy = randomHalves(n, 3), y(n, 7), dgate(n, 7), dup(n, 7);
  Call{Kernel::Swiglu, {gate, up}, {y}, {f}, {}}.run(*device);
  Call{Kernel::SwigluGrad, {dy, gate, up}, {dgate, dup}, {f}, {}}.run(*device);
  Doubles wantY(n), wantGate(n), wantUp(n);
  for (int64_t i = 0; i < n; ++i) {
    double g = widened(gate[i]), u = widened(up[i]), d = widened(dy[i]);
    double s = 1.0 / (1.0 + std::exp(-g));
    wantY[i] = g * s * u;
    wantGate[i] = d * u * s * (1.0 + g * (1.0 - s));
    wantUp[i] = d * g * s;
  }
  expectRounded(y, wantY);
  expectRounded(dgate, wantGate);
  expectRounded(dup, wantUp);
  Call{Kernel::SwigluGrad, {dy, gate, up}, {gate, dy}, {f}, {}}.run(*device);
  EXPECT_EQ(gate, dgate);
  EXPECT_EQ(dy, dup);
}

TEST_P(Bf16Test, Products) {
  // The long ones have more rows, columns or terms than a block of 1024.
  struct {
    int64_t t, n, k;
  } cases[] = {{1, 1, 1},    {3, 5, 7},       {17, 33, 65},
               {64, 64, 64}, {3, 1030, 1050}, {1100, 3, 5}};
  for (auto [t, n, k] : cases) {
    SCOPED_TRACE(testing::Message() << t << " x " << n << " x " << k);
    Halves x = randomHalves(t * k, 1), w = randomHalves(n * k, 2);
    Halves dy = randomHalves(t * n, 3), y(t * n, 7), dx(t * k, 7);
    Floats start = random(n * k, 4);
    Doubles X = wide(x), M = wide(w), D = wide(dy);
    Doubles wantY(t * n), wantX(t * k), wantW(n * k);
    for (int64_t r = 0; r < t; ++r)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < k; ++j) {
          wantY[r * n + i] += X[r * k + j] * M[i * k + j];
          wantX[r * k + j] += D[r * n + i] * M[i * k + j];
          wantW[i * k + j] += D[r * n + i] * X[r * k + j];
        }
    Call{Kernel::Linear, {x, w}, {y}, {n, k}, {}}.run(*device);
    expectRounded(y, wantY);
    Call{Kernel::LinearGradInput, {dy, w}, {dx}, {n, k}, {}}.run(*device);
    expectRounded(dx, wantX);
    Floats gw = start;
    Call{Kernel::LinearGradWeight, {dy, x}, {gw}, {n, k, 0}, {}}.run(*device);
    EXPECT_LT(relative(gw, wantW), 1e-6);
    gw = start;
    Call{Kernel::LinearGradWeight, {dy, x}, {gw}, {n, k, 1}, {}}.run(*device);
    for (int64_t i = 0; i < n * k; ++i)
      wantW[i] += start[i];
    EXPECT_LT(relative(gw, wantW), 1e-6);
  }
}

TEST_P(Bf16Test, ManySmallGradientsKeepTheirMass) {
  // 1 + 2^-10 is 1 in bf16: an accumulator of that type would stay where it is.
  const int64_t t = 4, n = 24, k = 40, count = 64;
  Halves dy(t * n, rounded(0x1p-6)), x(t * k, rounded(0x1p-6));
  Halves rows(t * n, rounded(0x1p-12));
  Floats gw(n * k, 1.0f), table(3 * n, 1.0f), norm(n, 1.0f);
  Ints tokens = {0, 1, 2, 0};
  for (int64_t i = 0; i < count; ++i) {
    Call{Kernel::LinearGradWeight, {dy, x}, {gw}, {n, k, 1}, {}}.run(*device);
    Call{Kernel::EmbeddingGrad, {rows, tokens}, {table}, {3, n, 0, 1}, {}}.run(
        *device);
    // x = 1 / sqrt(1 + eps) times rstd: each row adds dy.
    Halves ones(t * n, rounded(1.0));
    Call{Kernel::RmsNormGradWeight, {rows, ones}, {norm}, {n, 1}, {0.0}}.run(
        *device);
  }
  EXPECT_EQ(gw, Floats(n * k, 1.0f + 64 * 4 * 0x1p-12f));
  EXPECT_EQ(norm, Floats(n, 1.0f + 64 * 4 * 0x1p-12f));
  for (int64_t i = 0; i < 3 * n; ++i)
    EXPECT_EQ(table[i], 1.0f + 64 * (i < n ? 2 : 1) * 0x1p-12f);
}

TEST_P(Bf16Test, CrossEntropyOverTwoShards) {
  const int64_t t = 37, each = 70, v = 123; // the second shard is padded
  Ints targets = randomTokens(t, v, 2);
  Halves logits[2] = {randomHalves(t * each, 3, 5.0),
                      randomHalves(t * each, 4, 5.0)};
  Floats max(t, -INFINITY), sums(2 * t, 0.0f), lse(t);
  Doubles metrics(metricSlots, 0.0);
  int64_t valid[2] = {each, v - each};
  for (int64_t r = 0; r < t; ++r)
    for (int64_t c = valid[1]; c < each; ++c)
      logits[1][r * each + c] = rounded(1e30); // would win
  for (int shard : {0, 1}) {
    Floats local(t);
    Call{Kernel::CrossEntropyMax,
         {logits[shard]},
         {local},
         {each, valid[shard]},
         {}}
        .run(*device);
    for (int64_t r = 0; r < t; ++r)
      max[r] = std::max(max[r], local[r]);
  }
  for (int shard : {0, 1}) {
    Floats local(2 * t);
    Call{Kernel::CrossEntropySum,
         {logits[shard], targets, max},
         {local},
         {each, valid[shard], shard * each},
         {}}
        .run(*device);
    for (int64_t r = 0; r < 2 * t; ++r)
      sums[r] += local[r];
  }
  Call{Kernel::CrossEntropyLoss, {sums, max}, {lse, metrics}, {1}, {}}.run(
      *device);
  const double scale = 1.0 / 512;
  double loss = 0.0;
  Doubles want[2] = {Doubles(t * each), Doubles(t * each)};
  for (int64_t r = 0; r < t; ++r) {
    Row row;
    for (int64_t c = 0; c < v; ++c)
      row.push_back(widened(logits[c / each][r * each + c % each]));
    double top = *std::max_element(row.begin(), row.end()), total = 0.0;
    for (double value : row)
      total += std::exp(value - top);
    double logTotal = top + std::log(total);
    EXPECT_NEAR(lse[r], logTotal, 1e-6 * std::abs(logTotal) + 1e-6);
    loss += logTotal - row[targets[r]];
    for (int64_t c = 0; c < v; ++c)
      want[c / each][r * each + c % each] =
          (std::exp(row[c] - logTotal) - (c == targets[r])) * scale;
  }
  EXPECT_NEAR(metrics[MetricLossSum], loss, 1e-5 * loss);
  for (int shard : {0, 1}) {
    Call{Kernel::CrossEntropyGrad,
         {logits[shard], targets, lse},
         {logits[shard]}, // in place
         {each, valid[shard], shard * each},
         {scale}}
        .run(*device);
    expectRounded(logits[shard], want[shard], 1e-5);
  }
  for (int64_t r = 0; r < t; ++r)
    for (int64_t c = valid[1]; c < each; ++c)
      EXPECT_EQ(logits[1][r * each + c], 0);
}

TEST_P(Bf16Test, Attention) {
  struct {
    int64_t batch, hq, hkv, d, s;
  } shapes[] = {{1, 1, 1, 8, 1},   {2, 2, 1, 16, 5},   {1, 4, 4, 64, 64},
                {2, 4, 1, 64, 65}, {1, 6, 2, 128, 77}, {2, 4, 2, 20, 130},
                {1, 3, 1, 7, 200}};
  for (auto [batch, hq, hkv, d, s] : shapes) {
    SCOPED_TRACE(testing::Message()
                 << "heads " << hq << "/" << hkv << " d " << d << " s " << s);
    int64_t queries = batch * s * hq * d, keys = batch * s * hkv * d;
    Halves q = randomHalves(queries, 1), k = randomHalves(keys, 2);
    Halves v = randomHalves(keys, 3), dO = randomHalves(queries, 4);
    Halves o(queries, 7), dq = o, dk(keys, 7), dv = dk;
    Floats lse(batch * hq * s, 7.0f), delta = lse;
    Call{Kernel::Attention, {q, k, v}, {o, lse}, {hq, hkv, d, s}, {}}.run(
        *device);
    Call{Kernel::AttentionGrad,
         {dO, q, k, v, o, lse},
         {dq, dk, dv, delta},
         {hq, hkv, d, s},
         {}}
        .run(*device);
    Doubles Q = wide(q), K = wide(k), V = wide(v), D = wide(dO), O = wide(o);
    Doubles wantO(queries), wantL(lse.size()), wantQ(queries), wantK(keys),
        wantV(keys);
    double scale = 1.0 / std::sqrt(double(d));
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < hq; ++h)
        for (int64_t i = 0; i < s; ++i) {
          int64_t qi = ((b * s + i) * hq + h) * d;
          auto at = [&](int64_t j) {
            return ((b * s + j) * hkv + h / (hq / hkv)) * d;
          };
          Row p(i + 1), dp(i + 1);
          double total = 0.0, rows = 0.0;
          for (int64_t j = 0; j <= i; ++j)
            for (int64_t x = 0; x < d; ++x)
              p[j] += scale * Q[qi + x] * K[at(j) + x];
          double top = *std::max_element(p.begin(), p.end());
          for (double &value : p)
            total += value = std::exp(value - top);
          wantL[(b * hq + h) * s + i] = top + std::log(total);
          // As in a plan, the gradient sees the output as it was rounded.
          for (int64_t x = 0; x < d; ++x)
            rows += D[qi + x] * O[qi + x];
          for (int64_t j = 0; j <= i; ++j) {
            p[j] /= total;
            for (int64_t x = 0; x < d; ++x) {
              wantO[qi + x] += p[j] * V[at(j) + x];
              dp[j] += D[qi + x] * V[at(j) + x];
              wantV[at(j) + x] += p[j] * D[qi + x];
            }
          }
          for (int64_t j = 0; j <= i; ++j)
            for (int64_t x = 0; x < d; ++x) {
              double ds = p[j] * (dp[j] - rows) * scale;
              wantQ[qi + x] += ds * K[at(j) + x];
              wantK[at(j) + x] += ds * Q[qi + x];
            }
        }
    EXPECT_LT(relative(lse, wantL), 1e-6);
    expectRounded(o, wantO);
    expectRounded(dv, wantV);
    // One token's scores have no gradient but noise.
    expectRounded(dq, wantQ, s == 1 ? 10.0 : 1e-5);
    expectRounded(dk, wantK, s == 1 ? 10.0 : 1e-5);
  }
}

TEST_P(Bf16Test, AdamwRoundsItsParameters) {
  const int64_t n = 5003;
  Floats grad = random(n, 1), main = random(n, 2), m = random(n, 3);
  Floats v(n, 0.5f);
  Doubles metrics = {0, 0, 0.5, 0}, scalars = {1e-2, 0.1, 0.05};
  Halves param(n, 7);
  Call{Kernel::Adamw,
       {grad, metrics, scalars},
       {main, m, v, param},
       {},
       {0.9, 0.95, 1e-8, 0.1}}
      .run(*device);
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(param[i], rounded(main[i]));
}

TEST_P(Bf16Test, BitsDoNotDependOnThreads) {
  // All that is written by hand; products by oneDNN may differ.
  const int64_t t = 300, h = 400, s = 150, d = 50;
  auto all = [&](Device &on) {
    Halves x = randomHalves(t * h, 1), w = randomHalves(h, 2), y(t * h);
    Halves dy = randomHalves(t * h, 3), dx(t * h), o(t * h), z(t * h);
    Halves dk(t * h / 2), dv(t * h / 2), kv = randomHalves(t * h / 2, 4);
    Floats gw(h), lse(2 * s * 8), delta = lse;
    Call{Kernel::RmsNorm, {x, w}, {y}, {h}, {eps}}.run(on);
    Call{Kernel::RmsNormGradInput, {dy, x, w}, {dx}, {h}, {eps}}.run(on);
    Call{Kernel::RmsNormGradWeight, {dy, x}, {gw}, {h, 0}, {eps}}.run(on);
    Call{Kernel::Attention, {x, kv, kv}, {o, lse}, {8, 4, d, s}, {}}.run(on);
    Call{Kernel::AttentionGrad,
         {dy, x, kv, kv, o, lse},
         {z, dk, dv, delta},
         {8, 4, d, s},
         {}}
        .run(on);
    Halves bits;
    for (const Halves *part : {&y, &dx, &o, &z, &dk, &dv})
      bits.insert(bits.end(), part->begin(), part->end());
    for (float value : gw)
      bits.push_back(std::bit_cast<uint32_t>(value) & 0xffff);
    return bits;
  };
  auto other = makeCpuDevice({.threads = 2, .isa = std::get<0>(GetParam())});
  ASSERT_TRUE(other.ok());
  Halves mine = all(*device);
  EXPECT_EQ(mine, all(*device));
  EXPECT_EQ(mine, all(**other));
}

RECKON_VARIANTS(Bf16Test);
