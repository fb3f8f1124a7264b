//===- ElementwiseTest.cpp - flat kernels and rope on the emulated device -===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/cuda/Support.h"

#include "runtime/device/RopeTable.h"

#include <functional>

using namespace reckon::cuda;
using namespace reckon::cuda::test;
using reckon::device::NormalStream;

namespace {

/// Sizes about one 16-byte access, one block, and more than one.
constexpr int64_t sizes[] = {0, 1, 7, 8, 9, 64, 1023, 2048, 5003};
/// All operands at 16 bytes; all, and one of them, beside.
constexpr int shifts[][2] = {{0, 0}, {1, 1}, {0, 3}};

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double geluOf(double x) {
  return 0.5 * x *
         (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}
/// By a central difference: no derivation by hand is trusted twice.
double slope(const std::function<double(double)> &f, double x) {
  constexpr double step = 1e-5;
  return (f(x + step) - f(x - step)) / (2.0 * step);
}

Doubles mapped(size_t n, const std::function<double(size_t)> &f) {
  Doubles values(n);
  for (size_t i = 0; i < n; ++i)
    values[i] = f(i);
  return values;
}

class ElementwiseTest : public Stored {
protected:
  /// body(n, first operand's shift, the others' shift)
  void forSizes(const std::function<void(int64_t, int, int)> &body) {
    for (int64_t n : sizes)
      for (auto [first, others] : shifts) {
        SCOPED_TRACE(std::to_string(n) + " shifted " + std::to_string(first) +
                     " and " + std::to_string(others));
        body(n, first, others);
      }
  }
  Doubles values(int64_t n, uint32_t seed, double scale = 1.0) {
    return stored(storage, random(n, seed, scale));
  }
};

} // namespace

TEST_P(ElementwiseTest, FillCopyAdd) {
  forSizes([&](int64_t n, int first, int others) {
    Doubles a = values(n, 1), b = values(n, 2);
    auto size = static_cast<size_t>(n);
    Operand A(storage, a, first), B(storage, b, others);
    Doubles c = underSeeds([&] {
      Operand out(storage, n, others);
      EXPECT_EQ(add(storage, A.data(), B.data(), out.data(), n, queue()),
                cudaSuccess);
      return out.read();
    });
    // One operation: correctly rounded, so every bit is known.
    EXPECT_EQ(c, mapped(size, [&](size_t i) {
                return stored(storage, static_cast<float>(a[i]) +
                                           static_cast<float>(b[i]));
              }));
    EXPECT_EQ(add(storage, A.data(), B.data(), A.data(), n, queue()),
              cudaSuccess);
    EXPECT_EQ(A.read(), c);
    int64_t bytes = n * static_cast<int64_t>(bytesOf(storage));
    EXPECT_EQ(copy(A.data(), B.data(), bytes, queue()), cudaSuccess);
    EXPECT_EQ(B.read(), c);
    EXPECT_EQ(fillZero(A.data(), bytes, queue()), cudaSuccess);
    EXPECT_EQ(A.read(), Doubles(size, 0.0));
  });
}

TEST(CastTest, WidensExactlyAndNarrowsToNearestEven) {
  for (int64_t n : sizes)
    for (auto [first, others] : shifts) {
      SCOPED_TRACE(n);
      Doubles x = stored(Storage::F32, random(n, 1));
      if (n > 3) {
        x[0] = 1.0 + 0x1p-8; // ties, to the even of both sides
        x[1] = 1.0 + 3 * 0x1p-8;
        x[2] = 3.4e38; // overflows
        x[3] = -0.0;
      }
      Operand single(Storage::F32, x, first), half(Storage::Bf16, n, others);
      Operand back(Storage::F32, n, first);
      EXPECT_EQ(narrow(single.floats(), half.data(), n, queue()), cudaSuccess);
      EXPECT_EQ(half.read(), stored(Storage::Bf16, x));
      EXPECT_EQ(widen(half.data(), back.floats(), n, queue()), cudaSuccess);
      EXPECT_EQ(back.read(), stored(Storage::Bf16, x));
    }
  Operand nan(Storage::F32, Doubles(9, NAN)), half(Storage::Bf16, 9);
  EXPECT_EQ(narrow(nan.floats(), half.data(), 9, queue()), cudaSuccess);
  for (double value : half.read())
    EXPECT_TRUE(std::isnan(value));
}

TEST_P(ElementwiseTest, RandomNumbersAreTheHostsBits) {
  NormalStream normal =
      reckon::device::normalStream(7, "layers.3.mlp.up.weight", 0.02);
  // Also where an element's counter passes 32 bits.
  for (int64_t start : {int64_t{0}, int64_t{5}, (int64_t{1} << 31) - 9})
    for (int64_t n : sizes) {
      SCOPED_TRACE(n);
      std::vector<float> host(static_cast<size_t>(n));
      reckon::device::fillNormal(host.data(), 7, "layers.3.mlp.up.weight",
                                 start, n, 0.02);
      Doubles want = stored(storage, Doubles(host.begin(), host.end()));
      for (int shift : {0, 1}) {
        Doubles got = underSeeds([&] {
          Operand out(storage, n, shift);
          EXPECT_EQ(fillNormal(storage, out.data(), normal, start, n, queue()),
                    cudaSuccess);
          return out.read();
        });
        EXPECT_EQ(got, want);
      }
      if (n > 8) { // another element's number is another
        Operand out(storage, n);
        EXPECT_EQ(
            fillNormal(storage, out.data(), normal, start + 1, n, queue()),
            cudaSuccess);
        EXPECT_NE(out.read(), want);
      }
    }
}

TEST_P(ElementwiseTest, Swiglu) {
  forSizes([&](int64_t n, int first, int others) {
    Doubles g = values(n, 1, 4.0), u = values(n, 2), d = values(n, 3);
    if (n > 8) {
      g[0] = stored(storage, 1e4); // exp overflows or vanishes
      g[1] = stored(storage, -1e4);
      g[2] = 0.0;
    }
    auto size = static_cast<size_t>(n);
    Operand G(storage, g, first), U(storage, u, others), D(storage, d, others);
    Doubles y = underSeeds([&] {
      Operand out(storage, n, others);
      EXPECT_EQ(swiglu(storage, G.data(), U.data(), out.data(), n, queue()),
                cudaSuccess);
      return out.read();
    });
    auto silu = [](double x) { return x * sigmoid(x); };
    expectClose(y, mapped(size, [&](size_t i) { return silu(g[i]) * u[i]; }),
                toleranceOf(storage, 1e-6, 1e-7));
    auto grads = underSeeds([&] {
      Operand dg(storage, n, others), du(storage, n, first);
      EXPECT_EQ(swigluGrad(storage, D.data(), G.data(), U.data(), dg.data(),
                           du.data(), n, queue()),
                cudaSuccess);
      return std::pair(dg.read(), du.read());
    });
    expectClose(
        grads.first,
        mapped(size, [&](size_t i) { return d[i] * u[i] * slope(silu, g[i]); }),
        toleranceOf(storage, 1e-6, 2e-6));
    expectClose(grads.second,
                mapped(size, [&](size_t i) { return d[i] * silu(g[i]); }),
                toleranceOf(storage, 1e-6, 1e-7));
    // Outputs over inputs.
    EXPECT_EQ(swigluGrad(storage, D.data(), G.data(), U.data(), U.data(),
                         D.data(), n, queue()),
              cudaSuccess);
    EXPECT_EQ(U.read(), grads.first);
    EXPECT_EQ(D.read(), grads.second);
  });
}

TEST_P(ElementwiseTest, Gelu) {
  forSizes([&](int64_t n, int first, int others) {
    Doubles x = values(n, 1, 3.0), d = values(n, 2);
    if (n > 8) {
      x[0] = stored(storage, 1e15); // its cube is no f32
      x[1] = stored(storage, -1e15);
      x[2] = 0.0;
    }
    auto size = static_cast<size_t>(n);
    Operand X(storage, x, first), D(storage, d, others);
    Doubles y = underSeeds([&] {
      Operand out(storage, n, others);
      EXPECT_EQ(reckon::cuda::gelu(storage, X.data(), out.data(), n, queue()),
                cudaSuccess);
      return out.read();
    });
    expectClose(y, mapped(size, [&](size_t i) { return geluOf(x[i]); }),
                toleranceOf(storage, 1e-6, 1e-6));
    Doubles dx = underSeeds([&] {
      Operand out(storage, n, others);
      EXPECT_EQ(geluGrad(storage, D.data(), X.data(), out.data(), n, queue()),
                cudaSuccess);
      return out.read();
    });
    expectClose(dx,
                mapped(size,
                       [&](size_t i) {
                         // A difference of large numbers has no such small
                         // step.
                         double at = std::clamp(x[i], -50.0, 50.0);
                         return d[i] * slope(geluOf, at);
                       }),
                toleranceOf(storage, 1e-6, 2e-6));
    EXPECT_EQ(geluGrad(storage, D.data(), X.data(), D.data(), n, queue()),
              cudaSuccess);
    EXPECT_EQ(D.read(), dx);
  });
}

TEST_P(ElementwiseTest, RopeRotatesHalvesAndBack) {
  struct Case {
    int64_t batch, s, heads, d;
    int shift = 0;
  };
  for (auto [batch, s, heads, d, shift] :
       {Case{0, 4, 2, 16}, Case{1, 1, 1, 2}, Case{2, 9, 3, 10},
        Case{2, 5, 3, 64}, Case{1, 5, 2, 128, 1}, Case{1, 3, 20, 128}}) {
    SCOPED_TRACE(std::to_string(heads) + " heads of " + std::to_string(d));
    int64_t rows = batch * s;
    std::vector<float> single(static_cast<size_t>(s * d));
    reckon::device::ropeTable(single.data(), s, d, {.theta = 100.0});
    Doubles table(single.begin(), single.end());
    Doubles x = values(rows * heads * d, 1), want(x.size());
    for (int64_t at = 0; at < rows * heads * d; at += d)
      for (int64_t i = 0; i < d / 2; ++i) {
        auto a = static_cast<size_t>(at + i),
             b = a + static_cast<size_t>(d / 2);
        auto position = static_cast<double>(at / (heads * d) % s);
        double angle = position * std::pow(100.0, -2.0 * double(i) / double(d));
        want[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
        want[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
      }
    Operand X(storage, x, shift), angles(Storage::F32, table);
    RopeSizes sizes{rows, heads, d, s};
    Doubles y = underSeeds([&] {
      Operand out(storage, rows * heads * d, shift);
      EXPECT_EQ(
          rope(storage, sizes, X.data(), angles.floats(), out.data(), queue()),
          cudaSuccess);
      return out.read();
    });
    expectClose(y, want, toleranceOf(storage, 1e-6, 1e-6));
    // In place, and back: a rotation's gradient is its inverse.
    Operand back(storage, y, shift);
    sizes.inverse = true;
    EXPECT_EQ(rope(storage, sizes, back.data(), angles.floats(), back.data(),
                   queue()),
              cudaSuccess);
    double twice = storage == Storage::Bf16 ? 0x1p-7 : 1e-6;
    expectClose(back.read(), x, {twice, twice});
  }
}

// The tests see a wrong kernel: SiLU for GELU.
TEST_P(ElementwiseTest, OtherFunctionsFail) {
  const int64_t n = 256;
  Doubles x = values(n, 1, 3.0), ones(n, 1.0);
  Operand X(storage, x), one(storage, ones), y(storage, n);
  EXPECT_EQ(swiglu(storage, X.data(), one.data(), y.data(), n, queue()),
            cudaSuccess);
  EXPECT_GT(worst(y.read(), mapped(n, [&](size_t i) { return geluOf(x[i]); }),
                  toleranceOf(storage, 1e-6, 1e-6)),
            1.0);
}

RECKON_STORED(ElementwiseTest);
