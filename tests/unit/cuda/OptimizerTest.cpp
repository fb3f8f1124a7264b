//===- OptimizerTest.cpp - squared norm, clipping and AdamW, emulated -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/LossKernels.h"
#include "tests/unit/cuda/OnDevice.h"

namespace reckon::cuda::test {
namespace {

using device::MetricClipFactor;
using device::MetricNorm;
using device::metricSlots;
using device::MetricSquaredNorm;

Doubles squaredNorm(const Floats &x, int shift, bool owner = true,
                    std::optional<uint64_t> seed = std::nullopt) {
  int64_t n = static_cast<int64_t>(x.size());
  OnDevice<float> gpuX(x, shift);
  OnDevice<double> parts(Doubles(sumSquaresParts(n), 7.0));
  OnDevice<double> metrics(Doubles(metricSlots, 0.25));
  runOnStream(
      [&](cudaStream_t stream) {
        return sumSquares({n, owner}, gpuX.data(), parts.data(), metrics.data(),
                          stream);
      },
      seed);
  (void)parts.read();
  return metrics.read();
}

/// AdamW's state and constants, and its step in f64.
struct Adamw {
  device::AdamwCall call;
  double lr = 1e-2, factor = 0.5;
  int64_t t = 3;
  Floats grad, main, m, v;
  Halves param;

  explicit Adamw(int64_t n, bool cast = true)
      : call{n, 0.9, 0.95, 1e-8, 0.1, cast}, grad(randomFloats(n, 1)),
        main(randomFloats(n, 2)), m(randomFloats(n, 3, 0.1)),
        v(randomFloats(n, 4)), param(n, 7) {
    for (float &value : v)
      value *= value;
  }

  /// shift: elements past a 16-byte boundary; apart: of the others than main.
  void run(int shift = 0, int apart = 0,
           std::optional<uint64_t> seed = std::nullopt) {
    Doubles metrics(metricSlots, 0.0);
    metrics[MetricClipFactor] = factor;
    Doubles scalars = {lr, 1.0 - std::pow(call.beta1, t),
                       1.0 - std::pow(call.beta2, t)};
    OnDevice<float> gpuGrad(grad, shift + apart), gpuMain(main, shift);
    OnDevice<float> gpuM(m, shift + apart), gpuV(v, shift + apart);
    OnDevice<uint16_t> gpuParam(param, shift + apart);
    OnDevice<double> gpuMetrics(metrics), gpuScalars(scalars);
    AdamwOperands operands{gpuGrad.data(),
                           gpuMetrics.data(),
                           gpuScalars.data(),
                           gpuMain.data(),
                           gpuM.data(),
                           gpuV.data(),
                           call.cast ? gpuParam.data() : nullptr};
    runOnStream(
        [&](cudaStream_t stream) { return adamw(call, operands, stream); },
        seed);
    main = gpuMain.read();
    m = gpuM.read();
    v = gpuV.read();
    param = gpuParam.read();
    (void)gpuGrad.read();
  }
  auto results() const { return std::tie(main, m, v, param); }
};

struct Expected {
  Doubles main, m, v;
  /// torch.optim.AdamW's formulas on the state before the step.
  explicit Expected(const Adamw &a, bool decayed = true) {
    for (int64_t i = 0; i < a.call.n; ++i) {
      double g = a.grad[i] * a.factor;
      double w = a.main[i] * (1.0 - (decayed ? a.lr * a.call.decay : 0.0));
      double m1 = a.call.beta1 * a.m[i] + (1.0 - a.call.beta1) * g;
      double v1 = a.call.beta2 * a.v[i] + (1.0 - a.call.beta2) * g * g;
      double mHat = m1 / (1.0 - std::pow(a.call.beta1, a.t));
      double vHat = v1 / (1.0 - std::pow(a.call.beta2, a.t));
      main.push_back(w - a.lr * mHat / (std::sqrt(vHat) + a.call.eps));
      m.push_back(m1);
      v.push_back(v1);
    }
  }
};

constexpr double adamwTolerance = 2e-7;

void expectStep(Adamw state, int shift, int apart) {
  Expected want(state);
  Adamw before = state;
  state.run(shift, apart);
  EXPECT_LT(relative(state.main, want.main), adamwTolerance);
  EXPECT_LT(relative(state.m, want.m), adamwTolerance);
  EXPECT_LT(relative(state.v, want.v), adamwTolerance);
  EXPECT_LT(largest(state.main, want.main), 1e-6);
  for (int64_t i = 0; i < state.call.n; ++i)
    ASSERT_EQ(state.param[i],
              state.call.cast ? bf16Bits(state.main[i]) : before.param[i]);
}

} // namespace

TEST(CudaOptimizer, SquaredNorm) {
  // Nothing, less than 16 bytes, part of a block's share, several blocks.
  for (int64_t n : {0, 1, 2, 3, 5, 1023, 16384, 16385, 5 * 16384 + 7})
    for (int shift = 0; shift < 4; ++shift) {
      SCOPED_TRACE(testing::Message() << n << " shift " << shift);
      Floats x = randomFloats(n, 1);
      double want = 0.25;
      for (float value : x)
        want += double(value) * value;
      Doubles metrics = squaredNorm(x, shift);
      EXPECT_NEAR(metrics[MetricSquaredNorm], want, 1e-13 * want);
      EXPECT_EQ(metrics[MetricClipFactor], 0.25);
    }
}

TEST(CudaOptimizer, SquaredNormOfMoreThanTheMostParts) {
  // Each block takes several rounds; the squares are integers, so exact.
  int64_t n = (int64_t(1) << 24) + (1 << 15) + 3;
  EXPECT_EQ(sumSquaresParts(n), sumSquaresParts(2 * n));
  Floats x(n);
  double want = 0.25;
  for (int64_t i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i % 7);
    want += double(x[i]) * x[i];
  }
  EXPECT_EQ(squaredNorm(x, 1)[MetricSquaredNorm], want);
}

TEST(CudaOptimizer, SquaredNormIsInF64) {
  // 1e8 ones in f32 would lose them beside 1e16; and squares overflow f32.
  Floats x(1000, 1.0f);
  x[0] = 1e7f;
  EXPECT_EQ(squaredNorm(x, 0)[MetricSquaredNorm], 1e14 + 999 + 0.25);
  EXPECT_NE(static_cast<float>(1e14) + 999.0f, 1e14 + 999);
  x[0] = 1e30f;
  EXPECT_NEAR(squaredNorm(x, 0)[MetricSquaredNorm] / 1e60, 1.0, 1e-6);
}

TEST(CudaOptimizer, OnlyTheOwnerAddsSquares) {
  uint64_t kernels = kernelsRun();
  EXPECT_EQ(squaredNorm(randomFloats(100, 1), 0, false),
            Doubles(metricSlots, 0.25));
  EXPECT_EQ(kernelsRun(), kernels);
}

TEST(CudaOptimizer, SquaredNormHasTheSameBitsInAnyOrderOfThreads) {
  Floats x = randomFloats(100003, 1);
  Doubles natural = squaredNorm(x, 1);
  for (uint64_t seed : threadSeeds)
    EXPECT_EQ(squaredNorm(x, 1, true, seed), natural);
  // Another order of adding gives other bits: the equality is not vacuous.
  double backwards = 0.25;
  for (size_t i = x.size(); i-- > 0;)
    backwards += double(x[i]) * x[i];
  EXPECT_NE(backwards, natural[MetricSquaredNorm]);
}

TEST(CudaOptimizer, ClipFactor) {
  auto clip = [](double squared, double limit) {
    OnDevice<double> metrics(Doubles{1.5, squared, 7.0, 7.0});
    runOnStream([&](cudaStream_t stream) {
      return clipFactor({limit}, metrics.data(), stream);
    });
    return metrics.read();
  };
  Doubles clipped = clip(16.0, 1.0);
  EXPECT_EQ(clipped[MetricNorm], 4.0);
  EXPECT_DOUBLE_EQ(clipped[MetricClipFactor], 1.0 / (4.0 + 1e-6));
  EXPECT_EQ(clipped[device::MetricLossSum], 1.5);
  EXPECT_EQ(clip(0.25, 1.0)[MetricClipFactor], 1.0);
  EXPECT_EQ(clip(16.0, 0.0)[MetricClipFactor], 1.0);
  EXPECT_EQ(clip(16.0, -1.0)[MetricClipFactor], 1.0);
  EXPECT_TRUE(std::isnan(clip(NAN, 1.0)[MetricClipFactor]));
}

TEST(CudaOptimizer, AdamwAgreesWithTheReference) {
  for (int64_t n : {0, 1, 3, 4, 7, 1000, 1029, 4097})
    for (bool cast : {false, true})
      for (int shift : {0, 1, 2, 3})
        for (int apart : {0, 1}) {
          SCOPED_TRACE(testing::Message()
                       << n << " shift " << shift << " apart " << apart);
          expectStep(Adamw(n, cast), shift, apart);
        }
}

TEST(CudaOptimizer, AdamwOfManyRounds) {
  // More than the most blocks take in one stride.
  expectStep(Adamw(2048 * 1024 + 5), 1, 0);
}

TEST(CudaOptimizer, AdamwMistakesAreSeen) {
  Adamw state(1000);
  Expected decayless(state, false);
  Adamw later = state;
  later.t = 4;
  Expected wrongTime(later);
  state.run();
  EXPECT_GT(relative(state.main, decayless.main), 100 * adamwTolerance);
  EXPECT_GT(relative(state.main, wrongTime.main), 100 * adamwTolerance);
}

TEST(CudaOptimizer, AdamwSteps) {
  // From zero moments, as training starts: t counts from 1.
  Adamw state(100);
  std::fill(state.m.begin(), state.m.end(), 0.0f);
  std::fill(state.v.begin(), state.v.end(), 0.0f);
  for (state.t = 1; state.t <= 3; ++state.t) {
    Expected want(state);
    state.run();
    EXPECT_LT(largest(state.main, want.main), 1e-6);
  }
}

TEST(CudaOptimizer, AdamwSameBitsInAnyOrderOfThreadsAndAtAnyAddress) {
  Adamw natural(5001);
  natural.run();
  for (uint64_t seed : threadSeeds) {
    Adamw shuffled(5001);
    shuffled.run(static_cast<int>(seed), 1, seed);
    EXPECT_TRUE(natural.results() == shuffled.results()) << "seed " << seed;
  }
}

} // namespace reckon::cuda::test
