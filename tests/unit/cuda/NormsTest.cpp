//===- NormsTest.cpp - RMSNorm and LayerNorm on the emulated device -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/cuda/Support.h"

using namespace reckon::cuda;
using namespace reckon::cuda::test;

namespace {

constexpr float eps = 1e-5f;

struct Case {
  int64_t rows, h;
  int shift = 0; ///< elements; 1 makes 16-byte accesses impossible
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << c.rows << " x " << c.h << " shifted " << c.shift;
}

/// Short rows (a warp each) and long ones (a block each), with and without
/// 16-byte accesses, more rows than a block or a part has.
const Case cases[] = {{0, 8},     {1, 1},    {3, 7},       {9, 64},
                      {9, 64, 1}, {5, 130},  {3, 1032},    {3, 1032, 1},
                      {2, 1100},  {5, 2048}, {2, 2048, 3}, {70, 24}};

struct Reference {
  Doubles y, dx, gw, gb;
};

/// Both norms in f64: centred is LayerNorm.
Reference reference(bool centred, const Case &c, const Doubles &x,
                    const Doubles &w, const Doubles &b, const Doubles &dy) {
  auto h = static_cast<size_t>(c.h);
  Reference r{Doubles(x.size()), Doubles(x.size()), Doubles(h), Doubles(h)};
  auto count = static_cast<double>(h);
  for (size_t row = 0; row < static_cast<size_t>(c.rows); ++row) {
    size_t at = row * h;
    double mean = 0.0, squares = 0.0, along = 0.0, level = 0.0;
    for (size_t i = 0; centred && i < h; ++i)
      mean += x[at + i] / count;
    for (size_t i = 0; i < h; ++i)
      squares += (x[at + i] - mean) * (x[at + i] - mean);
    double rstd = 1.0 / std::sqrt(squares / count + double(eps));
    auto n = [&](size_t i) { return (x[at + i] - mean) * rstd; };
    for (size_t i = 0; i < h; ++i) {
      double g = dy[at + i] * w[i];
      along += g * n(i) / count;
      level += centred ? g / count : 0.0;
      r.y[at + i] = n(i) * w[i] + (centred ? b[i] : 0.0);
      r.gw[i] += dy[at + i] * n(i);
      r.gb[i] += dy[at + i];
    }
    for (size_t i = 0; i < h; ++i)
      r.dx[at + i] = rstd * (dy[at + i] * w[i] - level - n(i) * along);
  }
  return r;
}

class NormsTest : public Stored {
protected:
  void make(const Case &c, double mean = 0.0) {
    sizes = {c.rows, c.h, eps};
    x = random(c.rows * c.h, 1, 3.0);
    for (double &value : x)
      value += mean;
    x = stored(storage, x);
    w = stored(storage, random(c.h, 2));
    b = stored(storage, random(c.h, 3));
    dy = stored(storage, random(c.rows * c.h, 4));
    start = random(c.h, 5);
  }
  Operand in(const Doubles &values, const Case &c) const {
    return Operand(storage, values, c.shift);
  }

  NormSizes sizes;
  Doubles x, w, b, dy, start;
};

} // namespace

TEST_P(NormsTest, RmsNorm) {
  for (const Case &c : cases) {
    SCOPED_TRACE(testing::PrintToString(c));
    make(c);
    Reference want = reference(false, c, x, w, b, dy);
    Operand X = in(x, c), W = in(w, c), D = in(dy, c);
    Doubles y = underSeeds([&] {
      Operand out(storage, c.rows * c.h, c.shift);
      EXPECT_EQ(
          rmsNorm(storage, sizes, X.data(), W.data(), out.data(), queue()),
          cudaSuccess);
      return out.read();
    });
    expectClose(y, want.y, toleranceOf(storage, 1e-6, 1e-7));
    Doubles dx = underSeeds([&] {
      Operand out(storage, c.rows * c.h, c.shift);
      EXPECT_EQ(rmsNormGradInput(storage, sizes, D.data(), X.data(), W.data(),
                                 out.data(), queue()),
                cudaSuccess);
      return out.read();
    });
    expectClose(dx, want.dx, toleranceOf(storage, 1e-6, 3e-6));
    Operand inPlace = in(dy, c);
    EXPECT_EQ(rmsNormGradInput(storage, sizes, inPlace.data(), X.data(),
                               W.data(), inPlace.data(), queue()),
              cudaSuccess);
    EXPECT_EQ(inPlace.read(), dx);
  }
}

TEST_P(NormsTest, LayerNorm) {
  for (const Case &c : cases) {
    SCOPED_TRACE(testing::PrintToString(c));
    make(c, 5.0);
    Reference want = reference(true, c, x, w, b, dy);
    Operand X = in(x, c), W = in(w, c), B = in(b, c), D = in(dy, c);
    Doubles y = underSeeds([&] {
      Operand out(storage, c.rows * c.h, c.shift);
      EXPECT_EQ(layerNorm(storage, sizes, X.data(), W.data(), B.data(),
                          out.data(), queue()),
                cudaSuccess);
      return out.read();
    });
    expectClose(y, want.y, toleranceOf(storage, 1e-6, 2e-6));
    Doubles dx = underSeeds([&] {
      Operand out(storage, c.rows * c.h, c.shift);
      EXPECT_EQ(layerNormGradInput(storage, sizes, D.data(), X.data(), W.data(),
                                   out.data(), queue()),
                cudaSuccess);
      return out.read();
    });
    // With one column dx is 0 / sqrt(eps).
    double most = c.h == 1 ? 1e-3 : 4e-6;
    expectClose(dx, want.dx, toleranceOf(storage, 1e-6, most));
    Operand inPlace = in(dy, c);
    EXPECT_EQ(layerNormGradInput(storage, sizes, inPlace.data(), X.data(),
                                 W.data(), inPlace.data(), queue()),
              cudaSuccess);
    EXPECT_EQ(inPlace.read(), dx);
  }
}

TEST_P(NormsTest, WeightGradients) {
  for (const Case &c : cases)
    for (bool accumulate : {false, true}) {
      SCOPED_TRACE(testing::PrintToString(c) + (accumulate ? " more" : ""));
      make(c);
      start = stored(Storage::F32, start);
      Reference rms = reference(false, c, x, w, b, dy);
      Reference layer = reference(true, c, x, w, b, dy);
      for (size_t i = 0; accumulate && i < start.size(); ++i)
        for (double *sum : {&rms.gw[i], &layer.gw[i], &layer.gb[i]})
          *sum += start[i];
      Operand X = in(x, c), D = in(dy, c);
      Tolerance tolerance{1e-6, 2e-6 * std::sqrt(double(c.rows + 1))};
      Doubles gw = underSeeds([&] {
        Operand out(Storage::F32, start, c.shift);
        Scratch scratch(rmsNormGradWeightScratch(sizes));
        EXPECT_EQ(rmsNormGradWeight(storage, sizes, accumulate, D.data(),
                                    X.data(), out.floats(), scratch.data(),
                                    queue()),
                  cudaSuccess);
        return out.read();
      });
      expectClose(gw, rms.gw, tolerance);
      auto both = underSeeds([&] {
        Operand outW(Storage::F32, start), outB(Storage::F32, start, c.shift);
        Scratch scratch(layerNormGradWeightScratch(sizes));
        EXPECT_EQ(layerNormGradWeight(storage, sizes, accumulate, D.data(),
                                      X.data(), outW.floats(), outB.floats(),
                                      scratch.data(), queue()),
                  cudaSuccess);
        return std::pair(outW.read(), outB.read());
      });
      expectClose(both.first, layer.gw, tolerance);
      expectClose(both.second, layer.gb, tolerance);
    }
}

// Rows that are too long for shared memory are read again; so are, for the
// weight's gradient, rows beside which the running sums fit or do not.
TEST_P(NormsTest, LongRows) {
  for (int64_t h : {8200, 13000, 25000, 49160}) {
    Case c{2, h};
    SCOPED_TRACE(testing::PrintToString(c));
    make(c);
    Reference want = reference(false, c, x, w, b, dy);
    Operand X = in(x, c), W = in(w, c), D = in(dy, c);
    Operand y(storage, 2 * h), dx(storage, 2 * h), gw(Storage::F32, h);
    Scratch scratch(rmsNormGradWeightScratch(sizes));
    EXPECT_EQ(rmsNorm(storage, sizes, X.data(), W.data(), y.data(), queue()),
              cudaSuccess);
    EXPECT_EQ(rmsNormGradInput(storage, sizes, D.data(), X.data(), W.data(),
                               dx.data(), queue()),
              cudaSuccess);
    EXPECT_EQ(rmsNormGradWeight(storage, sizes, false, D.data(), X.data(),
                                gw.floats(), scratch.data(), queue()),
              cudaSuccess);
    expectClose(y.read(), want.y, toleranceOf(storage, 1e-6, 1e-7));
    expectClose(dx.read(), want.dx, toleranceOf(storage, 1e-6, 3e-6));
    expectClose(gw.read(), want.gw, {1e-6, 3e-6});
  }
}

// Sums of equal numbers round the same way every time: an f32 sum over the row
// in one go would be off by 1e-3.
TEST(NormsLong, StayExact) {
  const int64_t h = 1 << 16;
  Operand x(Storage::F32, Doubles(h, 0.1)), w(Storage::F32, Doubles(h, 1.0));
  Operand y(Storage::F32, h);
  EXPECT_EQ(rmsNorm(Storage::F32, {1, h, 0.0f}, x.data(), w.data(), y.data(),
                    queue()),
            cudaSuccess);
  expectClose(y.read(), Doubles(h, 1.0), {1e-6, 0.0});
}

// The tests see wrong statistics: another eps, or the mean left in.
TEST_P(NormsTest, OtherStatisticsFail) {
  Case c{3, 64};
  make(c);
  Operand X = in(x, c), W = in(w, c), B = in(b, c), y(storage, c.rows * c.h);
  Tolerance tolerance = toleranceOf(storage, 1e-6, 1e-7);
  EXPECT_EQ(rmsNorm(storage, {c.rows, c.h, 0.1f}, X.data(), W.data(), y.data(),
                    queue()),
            cudaSuccess);
  EXPECT_GT(worst(y.read(), reference(false, c, x, w, b, dy).y, tolerance),
            1.0);
  EXPECT_EQ(rmsNorm(storage, sizes, X.data(), W.data(), y.data(), queue()),
            cudaSuccess);
  EXPECT_GT(worst(y.read(), reference(true, c, x, w, b, dy).y, tolerance), 1.0);
}

RECKON_STORED(NormsTest);
