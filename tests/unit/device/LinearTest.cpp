//===- LinearTest.cpp - matrix products against plain loops ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/device/Support.h"

using namespace reckon::device;
using namespace reckon::device::test;

namespace {

class LinearTest : public Variants {};

} // namespace

TEST_P(LinearTest, AgreesWithPlainLoops) {
  struct {
    int64_t t, n, k;
  } cases[] = {{1, 1, 1},    {3, 5, 7},      {17, 33, 65},
               {64, 64, 64}, {100, 130, 48}, {0, 8, 8}};
  for (auto [t, n, k] : cases) {
    SCOPED_TRACE(testing::Message() << t << " x " << n << " x " << k);
    Floats x = random(t * k, 1), w = random(n * k, 2), dy = random(t * n, 3);
    Floats start = random(n * k, 4), y(t * n, 7.0f), dx(t * k, 7.0f);
    Doubles wantY(t * n), wantX(t * k), wantW(n * k);
    for (int64_t r = 0; r < t; ++r)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < k; ++j) {
          wantY[r * n + i] += static_cast<double>(x[r * k + j]) * w[i * k + j];
          wantX[r * k + j] += static_cast<double>(dy[r * n + i]) * w[i * k + j];
          wantW[i * k + j] += static_cast<double>(dy[r * n + i]) * x[r * k + j];
        }
    Call{Kernel::Linear, {x, w}, {y}, {n, k}, {}}.run(*device);
    EXPECT_LT(relative(y, wantY), 1e-6);
    Call{Kernel::LinearGradInput, {dy, w}, {dx}, {n, k}, {}}.run(*device);
    EXPECT_LT(relative(dx, wantX), 1e-6);
    Floats gw = start;
    Call{Kernel::LinearGradWeight, {dy, x}, {gw}, {n, k, 0}, {}}.run(*device);
    if (t == 0) {
      EXPECT_EQ(gw, Floats(n * k, 0.0f));
      continue;
    }
    EXPECT_LT(relative(gw, wantW), 1e-6);
    gw = start;
    Call{Kernel::LinearGradWeight, {dy, x}, {gw}, {n, k, 1}, {}}.run(*device);
    for (int64_t i = 0; i < n * k; ++i)
      wantW[i] += start[i];
    EXPECT_LT(relative(gw, wantW), 1e-6);
  }
}

TEST_P(LinearTest, OperandsMayMoveBetweenRuns) {
  // One primitive serves every call of a shape, at whatever addresses.
  const int64_t t = 8, n = 16, k = 32;
  Floats x = random(t * k, 1), w = random(n * k, 2), y(t * n);
  Floats x2 = random(t * k, 3), w2 = random(n * k, 4), y2(t * n), again(t * n);
  auto prepared =
      Call{Kernel::Linear, {x, w}, {y}, {n, k}, {}}.prepare(*device);
  auto other =
      Call{Kernel::Linear, {x2, w2}, {y2}, {n, k}, {}}.prepare(*device);
  ASSERT_TRUE(prepared.ok() && other.ok());
  std::vector<void *> first = {x.data(), w.data(), y.data()};
  std::vector<void *> second = {x2.data(), w2.data(), y2.data()};
  std::vector<void *> third = {x.data(), w.data(), again.data()};
  ASSERT_TRUE((*prepared)->run(first));
  ASSERT_TRUE((*other)->run(second));
  ASSERT_TRUE((*prepared)->run(third));
  EXPECT_EQ(y, again) << "equal runs must give equal bits";
  EXPECT_NE(y, y2);
}

TEST_P(LinearTest, ScratchThatGrowsLaterIsFound) {
  // A kernel prepared first must still work when a later one has made the
  // workspace move.
  Floats dy = random(40 * 24, 1), x = random(40 * 56, 2), gw(24 * 56);
  auto early =
      Call{Kernel::LinearGradWeight, {dy, x}, {gw}, {24, 56, 0}, {}}.prepare(
          *device);
  ASSERT_TRUE(early.ok());
  int64_t before = (*device).workspaceBytes();
  int64_t rows = int64_t{1} << 24;
  Operand huge[] = {{DType::F32, rows}, {DType::F32, rows}};
  Operand one[] = {{DType::F32, 1}};
  int64_t args[] = {1, 0};
  double eps[] = {1e-5};
  ASSERT_TRUE(
      device->prepare(Kernel::RmsNormGradWeight, {huge, one, args, eps}));
  ASSERT_GT(device->workspaceBytes(), before);
  std::vector<void *> pointers = {dy.data(), x.data(), gw.data()};
  ASSERT_TRUE((*early)->run(pointers));
  Doubles want(24 * 56);
  for (int64_t r = 0; r < 40; ++r)
    for (int64_t i = 0; i < 24; ++i)
      for (int64_t j = 0; j < 56; ++j)
        want[i * 56 + j] += static_cast<double>(dy[r * 24 + i]) * x[r * 56 + j];
  EXPECT_LT(relative(gw, want), 1e-6);
}

RECKON_VARIANTS(LinearTest);
