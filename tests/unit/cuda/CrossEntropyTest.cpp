//===- CrossEntropyTest.cpp - the loss kernels, emulated ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/LossKernels.h"
#include "tests/unit/cuda/OnDevice.h"

#include <numeric>

namespace reckon::cuda::test {
namespace {

using device::CrossEntropyCall;
using device::MetricLossSum;
using device::metricSlots;

/// One shard's kernels in turn. `valid` of the v columns are words, the first
/// of them word `offset`; padding holds what would win.
template <typename T> struct Shard {
  CrossEntropyCall call;
  std::vector<T> logits, dlogits;
  Ints targets;
  Floats max, sums, lse;
  Doubles metrics = Doubles(metricSlots, 0.5);

  Shard(int64_t rows, int64_t v, int64_t valid, int64_t offset, double spread,
        float scale = 0.125f)
      : call{rows, v, valid, offset, scale, dtypeOf<T>}, max(rows, 7.0f),
        sums(2 * rows, 7.0f), lse(rows, 7.0f) {
    Floats values = randomFloats(rows * v, 1, spread);
    for (int64_t r = 0; r < rows; ++r)
      std::fill(values.begin() + r * v + valid, values.begin() + (r + 1) * v,
                3e38f);
    logits = storedAs<T>(values);
    dlogits = storedAs<T>(Floats(rows * v, 7.0f));
    // Words of this shard and of its neighbours.
    targets = randomTokens(rows, static_cast<int32_t>(3 * v), 2);
    for (int32_t &target : targets)
      target += static_cast<int32_t>(offset - v);
  }

  /// Shifts in elements past a 16-byte boundary; `to`: of the gradient.
  void run(std::optional<uint64_t> seed = std::nullopt, int from = 0,
           int to = 0, bool owner = true) {
    OnDevice<T> gpuLogits(logits, from), gpuDlogits(dlogits, to);
    OnDevice<int32_t> gpuTargets(targets, 1);
    OnDevice<float> gpuMax(max, 1), gpuSums(sums, 1), gpuLse(lse, 1);
    OnDevice<double> gpuMetrics(metrics);
    auto enqueue = [&](cudaStream_t stream) {
      cudaError_t errors[] = {
          crossEntropyMax(call, gpuLogits.data(), gpuMax.data(), stream),
          crossEntropySum(call, gpuLogits.data(), gpuTargets.data(),
                          gpuMax.data(), gpuSums.data(), stream),
          crossEntropyLoss({call.rows, owner}, gpuSums.data(), gpuMax.data(),
                           gpuLse.data(), gpuMetrics.data(), stream),
          crossEntropyGrad(call, gpuLogits.data(), gpuTargets.data(),
                           gpuLse.data(), gpuDlogits.data(), stream)};
      for (cudaError_t error : errors)
        EXPECT_EQ(error, cudaSuccess);
      return cudaSuccess;
    };
    runOnStream(enqueue, seed);
    max = gpuMax.read();
    sums = gpuSums.read();
    lse = gpuLse.read();
    metrics = gpuMetrics.read();
    dlogits = gpuDlogits.read();
    (void)gpuLogits.read();
  }
  float at(int64_t row, int64_t column) const {
    return widen(logits[row * call.v + column]);
  }
  auto results() const { return std::tie(max, sums, lse, metrics, dlogits); }
};

/// What the shard's kernels must give, in f64 from its logits alone; a target
/// is `slip` words beside its own to test the test.
template <typename T> struct Expected {
  Doubles max, sums, lse, gradient;
  double loss = 0.0;

  explicit Expected(const Shard<T> &s, int64_t slip = 0)
      : max(s.call.rows), sums(2 * s.call.rows), lse(s.call.rows),
        gradient(s.call.rows * s.call.v) {
    for (int64_t r = 0; r < s.call.rows; ++r) {
      double top = -INFINITY, total = 0.0;
      for (int64_t c = 0; c < s.call.valid; ++c)
        top = std::max(top, double(s.at(r, c)));
      for (int64_t c = 0; c < s.call.valid; ++c)
        total += std::exp(s.at(r, c) - top);
      int64_t target = s.targets[r] - s.call.offset + slip;
      bool owned = target >= 0 && target < s.call.valid;
      max[r] = top;
      sums[r] = total;
      sums[s.call.rows + r] = owned ? s.at(r, target) - top : 0.0;
      lse[r] = top + std::log(total);
      loss += std::log(total) - sums[s.call.rows + r];
      for (int64_t c = 0; c < s.call.valid; ++c)
        gradient[r * s.call.v + c] =
            (std::exp(s.at(r, c) - lse[r]) - (owned && c == target)) *
            double(s.call.scale);
    }
  }
};

/// The largest error of a gradient element in units of its tolerance: f32
/// arithmetic, of lse too, and the storage's rounding.
template <typename T>
double gradientError(const Shard<T> &got, const Expected<T> &want) {
  double most = 0.0;
  for (size_t i = 0; i < want.gradient.size(); ++i) {
    double top = std::abs(want.lse[i / got.call.v]);
    double each = got.call.scale * (4e-7 + 1.2e-7 * top);
    if (sizeof(T) == 2)
      each += std::abs(want.gradient[i]) / 256;
    most = std::max(most,
                    std::abs(widen(got.dlogits[i]) - want.gradient[i]) / each);
  }
  return most;
}

template <typename T> void expectCorrect(const Shard<T> &got) {
  Expected<T> want(got);
  int64_t rows = got.call.rows;
  for (int64_t r = 0; r < rows; ++r) {
    EXPECT_EQ(got.max[r], want.max[r]);
    EXPECT_NEAR(got.sums[r], want.sums[r], 3e-7 * want.sums[r]);
    EXPECT_NEAR(got.sums[rows + r], want.sums[rows + r],
                1e-7 * std::abs(want.sums[rows + r]));
    EXPECT_NEAR(got.lse[r], want.lse[r], 4e-7 + 1e-7 * std::abs(want.lse[r]));
    for (int64_t c = got.call.valid; c < got.call.v; ++c)
      ASSERT_EQ(widen(got.dlogits[r * got.call.v + c]), 0.0f);
  }
  EXPECT_NEAR(got.metrics[MetricLossSum], 0.5 + want.loss,
              3e-7 * std::abs(want.loss) + 1e-12);
  EXPECT_LT(gradientError(got, want), 1.0);
}

/// Less than a unit of 16 bytes, less than a warp, padding of every phase, rows
/// of several rounds of a block.
struct Columns {
  int64_t v, valid;
};
const Columns columns[] = {{1, 1},   {5, 5},     {16, 16},    {50, 37},
                           {33, 32}, {257, 200}, {1000, 999}, {5003, 5003}};

template <typename T> void everyShape() {
  for (auto [v, valid] : columns)
    for (double spread : {1.0, 10.0}) {
      SCOPED_TRACE(testing::Message() << valid << " of " << v);
      Shard<T> shard(7, v, valid, 3 * v, spread);
      shard.run();
      expectCorrect(shard);
    }
}

} // namespace

TEST(CudaCrossEntropy, AgreesWithTheReference) { everyShape<float>(); }
TEST(CudaCrossEntropy, AgreesInBf16) { everyShape<uint16_t>(); }

TEST(CudaCrossEntropy, AnyPhaseOfRowsAndResult) {
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) {
      SCOPED_TRACE(testing::Message() << "shifts " << from << ", " << to);
      Shard<float> f32(3, 77, 71, 77, 2.0);
      f32.run(std::nullopt, from, to);
      expectCorrect(f32);
      Shard<uint16_t> bf16(3, 83, 80, 83, 2.0);
      bf16.run(std::nullopt, 2 * from + 1, 2 * to);
      expectCorrect(bf16);
    }
}

TEST(CudaCrossEntropy, AShardOfPaddingOnly) {
  Shard<float> shard(3, 24, 0, 72, 1.0);
  shard.targets = {72, 80, 3};
  shard.run();
  for (float max : shard.max)
    EXPECT_EQ(max, -INFINITY);
  for (float sum : shard.sums)
    EXPECT_EQ(sum, 0.0f);
  for (float gradient : shard.dlogits)
    EXPECT_EQ(gradient, 0.0f);
}

/// Two shards and the reductions between them against the whole vocabulary; the
/// gradient is written over the logits, as plans do it.
TEST(CudaCrossEntropy, OverShardsInPlace) {
  const int64_t rows = 9, v = 101, each = 64;
  Shard<float> whole(rows, v, v, 0, 3.0);
  whole.targets = randomTokens(rows, v, 5);
  Expected<float> want(whole);
  Floats max(rows, -INFINITY), sums(2 * rows, 0.0f);
  std::vector<Floats> parts;
  for (int64_t first : {int64_t(0), each}) {
    Floats part(rows * each, 3e38f);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = first; c < std::min(first + each, v); ++c)
        part[r * each + c - first] = whole.at(r, c);
    parts.push_back(part);
  }
  auto call = [&](int64_t shard) {
    int64_t valid = std::min(each, v - shard * each);
    return CrossEntropyCall{rows, each, valid, shard * each, 0.125f};
  };
  OnDevice<int32_t> targets(whole.targets);
  for (int64_t i : {0, 1}) {
    OnDevice<float> logits(parts[i]), local(Floats(rows, 7.0f));
    runOnStream([&](cudaStream_t stream) {
      return crossEntropyMax(call(i), logits.data(), local.data(), stream);
    });
    Floats got = local.read();
    for (int64_t r = 0; r < rows; ++r)
      max[r] = std::max(max[r], got[r]);
  }
  OnDevice<float> allMax(max);
  for (int64_t i : {0, 1}) {
    OnDevice<float> logits(parts[i]), local(Floats(2 * rows, 7.0f));
    runOnStream([&](cudaStream_t stream) {
      return crossEntropySum(call(i), logits.data(), targets.data(),
                             allMax.data(), local.data(), stream);
    });
    Floats got = local.read();
    for (int64_t r = 0; r < 2 * rows; ++r)
      sums[r] += got[r];
  }
  OnDevice<float> allSums(sums), lse(Floats(rows, 7.0f));
  OnDevice<double> metrics(Doubles(metricSlots, 0.0));
  Doubles gradient(rows * v);
  for (int64_t i : {0, 1}) {
    OnDevice<float> logits(parts[i]);
    runOnStream([&](cudaStream_t stream) {
      EXPECT_EQ(crossEntropyLoss({rows, i == 1}, allSums.data(), allMax.data(),
                                 lse.data(), metrics.data(), stream),
                cudaSuccess);
      return crossEntropyGrad(call(i), logits.data(), targets.data(),
                              lse.data(), logits.data(), stream);
    });
    Floats got = logits.read();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < call(i).valid; ++c)
        gradient[r * v + i * each + c] = got[r * each + c];
  }
  EXPECT_LT(relative(gradient, want.gradient), 1e-6);
  EXPECT_LT(largest(lse.read(), want.lse), 2e-6);
  EXPECT_NEAR(metrics.read()[MetricLossSum], want.loss, 1e-6 * want.loss);
  // The owner alone adds, and a slipped target would be seen.
  Expected<float> slipped(whole, 1);
  EXPECT_GT(relative(gradient, slipped.gradient), 0.1);
  EXPECT_GT(std::abs(slipped.loss - want.loss), 1e-3 * want.loss);
}

/// The comparison must see a slipped target and one padding column counted.
TEST(CudaCrossEntropy, MistakesAreSeen) {
  Shard<float> shard(7, 50, 37, 0, 1.0);
  std::iota(shard.targets.begin(), shard.targets.end(), 0);
  shard.run();
  EXPECT_LT(gradientError(shard, Expected<float>(shard)), 1.0);
  EXPECT_GT(gradientError(shard, Expected<float>(shard, 1)), 100.0);
  Shard<float> wider = shard;
  wider.call.valid = 38;
  for (int64_t r = 0; r < 7; ++r)
    wider.logits[r * 50 + 37] = 0.0f;
  Expected<float> want(wider);
  for (int64_t r = 0; r < 7; ++r)
    EXPECT_GT(std::abs(shard.lse[r] - want.lse[r]), 1e-4);
}

TEST(CudaCrossEntropy, ExtremeLogits) {
  Shard<float> shard(4, 40, 40, 0, 1.0, 1.0f);
  shard.targets = {3, 17, 5, 39};
  shard.logits[0 * 40 + 3] = 1e4f;  // sure and right: no loss
  shard.logits[1 * 40 + 2] = 1e4f;  // sure and wrong: a loss of 1e4
  shard.logits[2 * 40 + 5] = -1e4f; // the target is impossible
  for (int64_t c = 0; c < 40; ++c)
    shard.logits[3 * 40 + c] = -1e4f; // nothing likely: uniform
  shard.run();
  Expected<float> want(shard);
  EXPECT_NEAR(shard.metrics[MetricLossSum], 0.5 + want.loss, 1e-2);
  EXPECT_GT(want.loss, 2e4);
  EXPECT_NEAR(shard.dlogits[0 * 40 + 3], 0.0, 1e-6);
  EXPECT_NEAR(shard.dlogits[1 * 40 + 17], -1.0, 1e-6);
  EXPECT_NEAR(shard.dlogits[2 * 40 + 5], -1.0, 1e-6);
  for (float gradient : shard.dlogits)
    ASSERT_TRUE(std::isfinite(gradient));
  // lse of magnitude 1e4 is rounded to 5e-4.
  EXPECT_NEAR(shard.dlogits[3 * 40], 1.0 / 40, 5e-4 / 40);
}

TEST(CudaCrossEntropy, NanIsNotHidden) {
  Shard<float> shard(3, 40, 40, 0, 1.0);
  shard.logits[1 * 40 + 7] = NAN;
  shard.run();
  EXPECT_TRUE(std::isnan(shard.metrics[MetricLossSum]));
  for (int64_t c = 0; c < 40; ++c) {
    EXPECT_FALSE(std::isnan(shard.dlogits[0 * 40 + c]));
    EXPECT_TRUE(std::isnan(shard.dlogits[1 * 40 + c]));
  }
}

TEST(CudaCrossEntropy, OnlyTheOwnerAdds) {
  Shard<float> shard(70, 16, 16, 0, 1.0);
  shard.run(std::nullopt, 0, 0, false);
  EXPECT_EQ(shard.metrics, Doubles(metricSlots, 0.5));
  Expected<float> want(shard);
  EXPECT_LT(largest(shard.lse, want.lse), 2e-6);
}

TEST(CudaCrossEntropy, ManyRowsAddInOneOrder) {
  Shard<float> shard(2500, 9, 9, 0, 1.0);
  shard.run();
  expectCorrect(shard);
}

TEST(CudaCrossEntropy, SameBitsInAnyOrderOfThreads) {
  auto compare = [](auto make) {
    auto natural = make();
    natural.run();
    for (uint64_t seed : threadSeeds) {
      auto shuffled = make();
      shuffled.run(seed);
      EXPECT_TRUE(natural.results() == shuffled.results()) << "seed " << seed;
    }
  };
  compare([] { return Shard<float>(40, 5003, 4999, 0, 3.0); });
  compare([] { return Shard<uint16_t>(40, 1001, 900, 0, 3.0); });
}

TEST(CudaCrossEntropy, NoRowsNoLaunch) {
  uint64_t kernels = kernelsRun();
  Shard<float> none(0, 16, 16, 0, 1.0);
  none.run();
  EXPECT_EQ(kernelsRun(), kernels);
  EXPECT_EQ(none.metrics, Doubles(metricSlots, 0.5));
  CrossEntropyCall tooMany{maxLossRows + 1, 1, 1};
  EXPECT_EQ(crossEntropyMax(tooMany, nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
}

} // namespace reckon::cuda::test
