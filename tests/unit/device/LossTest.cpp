//===- LossTest.cpp - loss, gradient norm and optimizer kernels -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/device/Support.h"

#include <cstring>

using namespace reckon::device;
using namespace reckon::device::test;

namespace {

class LossTest : public Variants {};

/// Cross entropy over several shards in the way of a tensor-parallel plan: the
/// reductions between the kernels are done here.
struct Sharded {
  int64_t t, v, shards, each; // each: columns of a shard, with padding
  std::vector<Floats> logits, dlogits;
  Ints targets;
  Floats lse;
  Doubles metrics = Doubles(metricSlots, 0.0);

  int64_t valid(int64_t shard) const {
    return std::clamp<int64_t>(v - shard * each, 0, each);
  }

  /// whole[t, v] is cut into shards; padding gets values that would win.
  Sharded(const Floats &whole, Ints tokens, int64_t vocabulary, int64_t count,
          int64_t columns)
      : t(static_cast<int64_t>(tokens.size())), v(vocabulary), shards(count),
        each(columns), targets(std::move(tokens)), lse(t, 7.0f) {
    for (int64_t shard = 0; shard < shards; ++shard) {
      Floats part(t * each, 3e38f);
      for (int64_t r = 0; r < t; ++r)
        for (int64_t c = 0; c < valid(shard); ++c)
          part[r * each + c] = whole[r * v + shard * each + c];
      logits.push_back(part);
    }
    dlogits = logits;
  }

  void run(Device &device, double scale) {
    Floats max(t, -INFINITY), sums(2 * t, 0.0f);
    for (int64_t shard = 0; shard < shards; ++shard) {
      Floats local(t, 7.0f);
      Call{Kernel::CrossEntropyMax,
           {logits[shard]},
           {local},
           {each, valid(shard)},
           {}}
          .run(device);
      for (int64_t r = 0; r < t; ++r)
        max[r] = std::max(max[r], local[r]);
    }
    for (int64_t shard = 0; shard < shards; ++shard) {
      Floats local(2 * t, 7.0f);
      Call{Kernel::CrossEntropySum,
           {logits[shard], targets, max},
           {local},
           {each, valid(shard), shard * each},
           {}}
          .run(device);
      for (int64_t r = 0; r < 2 * t; ++r)
        sums[r] += local[r];
    }
    for (int64_t shard = 0; shard < shards; ++shard) {
      Call{Kernel::CrossEntropyLoss,
           {sums, max},
           {lse, metrics},
           {shard == 0},
           {}}
          .run(device);
      // In place, as plans do it.
      Call{Kernel::CrossEntropyGrad,
           {dlogits[shard], targets, lse},
           {dlogits[shard]},
           {each, valid(shard), shard * each},
           {scale}}
          .run(device);
    }
  }
};

struct Reference {
  double loss = 0.0;
  Doubles gradient;
};

Reference reference(const Floats &whole, const Ints &targets, int64_t v,
                    double scale) {
  Reference result{0.0, Doubles(whole.size())};
  for (size_t r = 0; r < targets.size(); ++r) {
    const float *row = whole.data() + r * v;
    double top = *std::max_element(row, row + v), total = 0.0;
    for (int64_t c = 0; c < v; ++c)
      total += std::exp(row[c] - top);
    result.loss += top + std::log(total) - row[targets[r]];
    for (int64_t c = 0; c < v; ++c)
      result.gradient[r * v + c] =
          scale * (std::exp(row[c] - top) / total - (c == targets[r]));
  }
  return result;
}

} // namespace

TEST_P(LossTest, CrossEntropyOverShards) {
  const int64_t t = 29;
  // One shard without padding; uneven shards; a shard of padding only; rows
  // longer than one block of lane sums.
  struct {
    int64_t v, shards, each;
  } cases[] = {{50, 1, 50}, {101, 2, 64}, {64, 3, 32}, {5000, 2, 2504}};
  for (auto [v, shards, each] : cases)
    for (double spread : {1.0, 10.0}) {
      SCOPED_TRACE(testing::Message()
                   << v << " over " << shards << " spread " << spread);
      Floats whole = random(t * v, 1, spread);
      Ints targets = randomTokens(t, static_cast<int32_t>(v), 2);
      Sharded sharded(whole, targets, v, shards, each);
      sharded.run(*device, 1.0 / t);
      Reference want = reference(whole, targets, v, 1.0 / t);
      EXPECT_NEAR(sharded.metrics[MetricLossSum], want.loss, 1e-6 * want.loss);
      Doubles got;
      for (int64_t r = 0; r < t; ++r)
        for (int64_t c = 0; c < v; ++c)
          got.push_back(sharded.dlogits[c / each][r * each + c % each]);
      // lse is one f32: at a magnitude of 45 its rounding alone is 2e-6.
      EXPECT_LT(relative(got, want.gradient), spread < 2.0 ? 1e-6 : 4e-6);
      for (int64_t shard = 0; shard < shards; ++shard)
        for (int64_t r = 0; r < t; ++r)
          for (int64_t c = sharded.valid(shard); c < each; ++c)
            ASSERT_EQ(sharded.dlogits[shard][r * each + c], 0.0f);
    }
}

TEST_P(LossTest, ExtremeLogits) {
  const int64_t t = 4, v = 40;
  Floats whole = random(t * v, 1);
  Ints targets = {3, 17, 5, 39};
  whole[0 * v + 3] = 1e4f;  // sure and right: no loss
  whole[1 * v + 2] = 1e4f;  // sure and wrong: a loss of 1e4
  whole[2 * v + 5] = -1e4f; // the target is impossible
  for (int64_t c = 0; c < v; ++c)
    whole[3 * v + c] = -1e4f; // nothing likely: uniform
  Sharded sharded(whole, targets, v, 2, 24);
  sharded.run(*device, 1.0);
  Reference want = reference(whole, targets, v, 1.0);
  EXPECT_NEAR(sharded.metrics[MetricLossSum] / want.loss, 1.0, 1e-6);
  for (int64_t r = 0; r < t; ++r)
    for (int64_t c = 0; c < v; ++c)
      // lse is one f32; at 1e4 it is rounded by up to 4.9e-4.
      ASSERT_NEAR(sharded.dlogits[c / 24][r * 24 + c % 24],
                  want.gradient[r * v + c], 6e-4);
}

TEST_P(LossTest, OnlyTheOwnerAdds) {
  Floats sums = {2.0f, 4.0f, 0.5f, -1.0f}, max = {1.0f, -3.0f}, lse(2);
  Doubles metrics(metricSlots, 10.0);
  Call{Kernel::CrossEntropyLoss, {sums, max}, {lse, metrics}, {0}, {}}.run(
      *device);
  EXPECT_EQ(metrics[MetricLossSum], 10.0);
  EXPECT_FLOAT_EQ(lse[0], 1.0 + std::log(2.0));
  EXPECT_FLOAT_EQ(lse[1], -3.0 + std::log(4.0));
  Call{Kernel::CrossEntropyLoss, {sums, max}, {lse, metrics}, {1}, {}}.run(
      *device);
  // log 2 - 0.5 + log 4 + 1
  EXPECT_NEAR(metrics[MetricLossSum], 10.5 + 3.0 * std::log(2.0), 1e-12);
  Call{Kernel::SumSquares, {sums}, {metrics}, {0}, {}}.run(*device);
  EXPECT_EQ(metrics[MetricSquaredNorm], 10.0);
  Call{Kernel::SumSquares, {sums}, {metrics}, {1}, {}}.run(*device);
  EXPECT_EQ(metrics[MetricSquaredNorm], 10.0 + 4.0 + 16.0 + 0.25 + 1.0);
  EXPECT_EQ(metrics[MetricClipFactor], 10.0);
}

TEST_P(LossTest, SumSquaresIsExactAndTheSameEverywhere) {
  auto single = makeCpuDevice({.threads = 1, .isa = "baseline"});
  for (int64_t n : {0, 1, 31, 32768, 200001}) {
    Floats x = random(n, 5);
    double want = 0.0;
    for (float value : x)
      want += static_cast<double>(value) * value;
    Doubles here(metricSlots, 0.0), there(metricSlots, 0.0);
    Call{Kernel::SumSquares, {x}, {here}, {1}, {}}.run(*device);
    Call{Kernel::SumSquares, {x}, {there}, {1}, {}}.run(**single);
    EXPECT_NEAR(here[MetricSquaredNorm], want, 1e-13 * want);
    EXPECT_EQ(here, there) << "must not depend on variant or threads";
  }
}

TEST_P(LossTest, ClipFactor) {
  struct {
    double squares, clip, factor;
  } cases[] = {{16.0, 1.0, 1.0 / (4.0 + 1e-6)},
               {0.25, 1.0, 1.0},
               {16.0, 0.0, 1.0},
               {0.0, 1.0, 1.0}};
  for (auto [squares, clip, factor] : cases) {
    Doubles metrics = {3.0, squares, 7.0, 7.0};
    Call{Kernel::ClipFactor, {}, {metrics}, {}, {clip}}.run(*device);
    EXPECT_DOUBLE_EQ(metrics[MetricClipFactor], factor);
    EXPECT_EQ(metrics[MetricNorm], std::sqrt(squares));
    EXPECT_EQ(metrics[MetricLossSum], 3.0);
  }
  Doubles metrics = {0.0, NAN, 0.0, 0.0};
  Call{Kernel::ClipFactor, {}, {metrics}, {}, {1.0}}.run(*device);
  EXPECT_TRUE(std::isnan(metrics[MetricClipFactor])) << "must not be hidden";
}

TEST_P(LossTest, AdamwFollowsTorch) {
  const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0.1;
  const double lr = 3e-3, factor = 0.37;
  for (int64_t n : {3, 64, 100003}) {
    Floats main = random(n, 1), m(n, 0.0f), v(n, 0.0f);
    std::vector<uint16_t> param(n);
    Doubles wantMain = wide(main), wantM(n), wantV(n);
    for (int step = 1; step <= 5; ++step) {
      Floats grad = random(n, 10 + step);
      Doubles metrics = {0.0, 0.0, factor, 0.0};
      Doubles scalars = {lr, 1.0 - std::pow(beta1, step),
                         1.0 - std::pow(beta2, step)};
      Call{Kernel::Adamw,
           {grad, metrics, scalars},
           {main, m, v, param},
           {},
           {beta1, beta2, epsilon, decay}}
          .run(*device);
      // torch.optim.AdamW, single tensor.
      for (int64_t i = 0; i < n; ++i) {
        double g = grad[i] * factor;
        wantMain[i] *= 1.0 - lr * decay;
        wantM[i] += (g - wantM[i]) * (1.0 - beta1);
        wantV[i] = wantV[i] * beta2 + (1.0 - beta2) * g * g;
        double root = std::sqrt(wantV[i]) / std::sqrt(scalars[2]) + epsilon;
        wantMain[i] -= lr / scalars[1] * wantM[i] / root;
      }
    }
    EXPECT_LT(largest(main, wantMain), 1e-6);
    EXPECT_LT(relative(m, wantM), 3e-7);
    EXPECT_LT(relative(v, wantV), 3e-7);
    for (int64_t i = 0; i < n; ++i) {
      uint32_t bits = static_cast<uint32_t>(param[i]) << 16;
      float rounded;
      std::memcpy(&rounded, &bits, sizeof bits);
      // 8 bits of mantissa, rounded to nearest.
      ASSERT_LE(std::abs(rounded - main[i]), std::abs(main[i]) / 256.0f);
    }
  }
}

TEST_P(LossTest, Bf16RoundsToNearestEven) {
  // With lr 0 the weights stay and only the cast is seen.
  Floats main = {1.0f, 1.00390625f, 1.01171875f, -2.5f, 3.3895314e38f, 0.0f};
  int64_t n = static_cast<int64_t>(main.size());
  Floats grad(n, 0.0f), m(n, 0.0f), v(n, 0.0f);
  std::vector<uint16_t> param(n);
  Doubles metrics(metricSlots, 1.0), scalars = {0.0, 1.0, 1.0};
  Call{Kernel::Adamw,
       {grad, metrics, scalars},
       {main, m, v, param},
       {},
       {0.9, 0.9, 1e-8, 0.0}}
      .run(*device);
  // 1 + 2^-8 is a tie and goes down to 1; 1 + 3 * 2^-8 goes up to 1 + 2^-6.
  EXPECT_EQ(param, (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0xc020,
                                          0x7f7f, 0x0000}));
}

RECKON_VARIANTS(LossTest);
