//===- Fp8Test.cpp - eight-bit formats, casts and products ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The formats are held against their definition in f64: every code, and every
// place where rounding changes from one code to the next. Casts and products
// are held against f64 references of the same inputs.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/device/Support.h"

#include "runtime/device/kernels/Fp8.h"

#include <bit>
#include <limits>
#include <map>

using namespace reckon;
using namespace reckon::device;
using namespace reckon::device::test;

namespace {

/// A format by its definition: bits of the fraction, bias, the largest code.
struct Format {
  Fp8 number;
  DType dtype;
  int fraction, bias, largest;
  uint8_t (*to)(float);
  float (*from)(uint8_t);

  /// The value of a code without sign, up to the largest.
  double value(int code) const {
    int exponent = code >> fraction, rest = code & ((1 << fraction) - 1);
    double part = std::ldexp(rest, -fraction);
    return exponent ? std::ldexp(1.0 + part, exponent - bias)
                    : std::ldexp(part, 1 - bias);
  }
  /// The code nearest to a value, to the even one of two, by looking at all.
  uint8_t nearest(double value) const {
    static std::map<Fp8, Doubles> tables;
    Doubles &table = tables[number];
    for (auto code = static_cast<int>(table.size()); code <= largest; ++code)
      table.push_back(this->value(code));
    int best = 0;
    for (int code = 1; code <= largest; ++code) {
      double old = std::abs(std::abs(value) - table[best]);
      double now = std::abs(std::abs(value) - table[code]);
      if (now < old || (now == old && code % 2 == 0))
        best = code;
    }
    return static_cast<uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
  }
};

const Format formats[] = {
    {Fp8::E4M3, DType::F8E4M3, 3, 7, 0x7e, toFp8<Fp8::E4M3>,
     fromFp8<Fp8::E4M3>},
    {Fp8::E5M2, DType::F8E5M2, 2, 15, 0x7b, toFp8<Fp8::E5M2>,
     fromFp8<Fp8::E5M2>},
};

float widened(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

Halves randomHalves(int64_t n, uint32_t seed, double scale = 1.0) {
  Halves halves;
  for (float value : random(n, seed, scale))
    halves.push_back(
        static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
  return halves;
}

/// A matrix of random values as codes, and the values.
struct Matrix {
  Matrix(const Format &format, int64_t rows, int64_t columns, uint32_t seed)
      : codes{format.dtype, std::vector<uint8_t>(fp8Codes(rows, columns))},
        values(rows * columns) {
    Floats drawn = random(rows * columns, seed, 3.0);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        uint8_t code = format.to(drawn[r * columns + c]);
        codes.bytes[r * fp8Padded(columns) + c] = code;
        values[r * columns + c] = format.from(code);
      }
  }
  Codes codes;
  Doubles values;
};

class Fp8Test : public Variants {};

} // namespace

TEST(Fp8Format, EveryCodeHasItsValue) {
  for (const Format &format : formats)
    for (int code = 0; code < 256; ++code) {
      float got = format.from(static_cast<uint8_t>(code));
      int low = code & 0x7f;
      double sign = code & 0x80 ? -1.0 : 1.0;
      if (low <= format.largest) {
        EXPECT_EQ(got, sign * format.value(low)) << code;
        EXPECT_EQ(std::signbit(got), code >= 0x80) << code;
        EXPECT_EQ(format.to(got), code);
      } else if (format.number == Fp8::E5M2 && low == 0x7c) {
        EXPECT_EQ(got, sign * std::numeric_limits<double>::infinity());
      } else {
        EXPECT_TRUE(std::isnan(got)) << code;
      }
    }
  EXPECT_EQ(formats[0].value(0x7e), 448.0);
  EXPECT_EQ(formats[1].value(0x7b), 57344.0);
}

TEST(Fp8Format, RoundsToNearestEvenAtEveryBoundary) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Format &format : formats)
    for (int code = 0; code < format.largest; ++code) {
      double low = format.value(code), high = format.value(code + 1);
      auto middle = static_cast<float>((low + high) / 2);
      ASSERT_EQ(middle, (low + high) / 2); // exact
      EXPECT_EQ(format.to(middle), code + code % 2) << code;
      EXPECT_EQ(format.to(std::nextafter(middle, 0.0f)), code) << code;
      EXPECT_EQ(format.to(std::nextafter(middle, infinity)), code + 1) << code;
      EXPECT_EQ(format.to(-middle), (code + code % 2) | 0x80) << code;
    }
}

TEST(Fp8Format, SaturatesAndKeepsNaN) {
  for (const Format &format : formats) {
    auto most = static_cast<float>(format.value(format.largest));
    for (float large : {most, std::nextafter(most, 1e9f), most * 1.1f, 1e30f,
                        std::numeric_limits<float>::infinity()}) {
      EXPECT_EQ(format.to(large), format.largest);
      EXPECT_EQ(format.to(-large), format.largest | 0x80);
    }
    EXPECT_EQ(format.to(std::nextafter(most, 0.0f)), format.largest);
    for (uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu})
      EXPECT_EQ(format.to(std::bit_cast<float>(nan)), 0x7f);
    EXPECT_EQ(format.to(0.0f), 0);
    EXPECT_EQ(format.to(-0.0f), 0x80);
    EXPECT_EQ(format.to(1e-40f), 0);
    EXPECT_EQ(format.to(-1e-40f), 0x80);
  }
}

TEST(Fp8Format, IsTheNearestOfAllCodes) {
  std::mt19937 engine(1);
  std::uniform_int_distribution<uint32_t> bits;
  for (const Format &format : formats)
    for (int i = 0; i < 20000; ++i) {
      // Every exponent that is near the format's.
      uint32_t drawn = bits(engine);
      float value = std::bit_cast<float>((drawn & 0x807fffffu) |
                                         (96u + drawn / 131u % 50u) << 23);
      ASSERT_EQ(format.to(value), format.nearest(value)) << value;
    }
}

TEST(Fp8Format, ScalesToTheLargestCode) {
  EXPECT_EQ(fp8Scale<Fp8::E4M3>(0.0f), 1.0f);
  EXPECT_EQ(fp8Scale<Fp8::E4M3>(448.0f), 1.0f);
  EXPECT_EQ(fp8Scale<Fp8::E5M2>(28672.0f), 0.5f);
  EXPECT_EQ(fp8Scale<Fp8::E4M3>(3.0f), 3.0f / 448.0f);
  // The reciprocal stays finite.
  EXPECT_EQ(1.0f / fp8Scale<Fp8::E5M2>(1e-38f), 0x1p126f);
  EXPECT_TRUE(
      std::isnan(fp8Scale<Fp8::E4M3>(std::numeric_limits<float>::quiet_NaN())));
}

TEST_P(Fp8Test, AmaxIsTheLargestMagnitude) {
  for (int64_t n : {1, 2, 15, 65536, 65537, 200000}) {
    Halves x = randomHalves(n, 1);
    double want = 0.0;
    for (uint16_t half : x)
      want = std::max(want, double(std::abs(widened(half))));
    Floats amax(1, 7.0f);
    Call call{Kernel::Amax, {x}, {amax}, {}, {}};
    call.run(*device);
    EXPECT_EQ(amax[0], want) << n;
    // Wherever it stands, and whatever its sign.
    for (int64_t at : {int64_t(0), n / 2, n - 1}) {
      uint16_t old = x[at];
      x[at] = 0xc2f7; // -123.5
      call.run(*device);
      EXPECT_EQ(amax[0], 123.5f) << n << " " << at;
      for (uint16_t nan : {0x7fc0, 0xffc0, 0x7f81}) {
        x[at] = nan;
        call.run(*device);
        EXPECT_TRUE(std::isnan(amax[0])) << n << " " << at;
      }
      x[at] = old;
    }
  }
  Halves none(40, 0x8000);
  Floats amax(1, 7.0f);
  Call{Kernel::Amax, {none}, {amax}, {}, {}}.run(*device);
  EXPECT_EQ(amax[0], 0.0f);
}

TEST_P(Fp8Test, CastPadsTransposesAndRoundsOnce) {
  struct {
    int64_t rows, columns;
  } cases[] = {{1, 1}, {16, 16}, {17, 40}, {130, 33}, {64, 256}};
  for (const Format &format : formats)
    for (auto [rows, columns] : cases)
      for (int64_t layout : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message()
                     << rows << " x " << columns << " layout " << layout);
        Halves x = randomHalves(rows * columns, 1, 5.0);
        Floats amax(1), scale(1, 7.0f);
        Call{Kernel::Amax, {x}, {amax}, {}, {}}.run(*device);
        int64_t height = fp8Padded(rows), width = fp8Padded(columns);
        Codes filled{format.dtype, std::vector<uint8_t>(height * width, 0x55)};
        Codes straight = filled, turned = filled;
        std::vector<Bound> outputs{scale};
        if (layout & 1)
          outputs.push_back(straight);
        if (layout & 2)
          outputs.push_back(turned);
        Call{Kernel::CastFp8,
             {x, amax},
             outputs,
             {rows, columns, static_cast<int64_t>(format.number), layout},
             {}}
            .run(*device);
        double most = format.value(format.largest);
        ASSERT_NEAR(scale[0], amax[0] / most, 1e-7 * amax[0] / most);
        double largest = 0.0;
        for (int64_t r = 0; r < height; ++r)
          for (int64_t c = 0; c < width; ++c) {
            bool inside = r < rows && c < columns;
            uint8_t a = straight.bytes[r * width + c];
            uint8_t b = turned.bytes[c * height + r];
            if (layout == 3) {
              ASSERT_EQ(a, b);
            }
            uint8_t code = layout & 1 ? a : b;
            if (!inside) {
              ASSERT_EQ(code, 0);
              continue;
            }
            double value = widened(x[r * columns + c]);
            double got = double(format.from(code)) * scale[0];
            // Half a step of the code's exponent, at least of the lowest one.
            double step = std::ldexp(std::max(std::abs(value) / scale[0],
                                              std::ldexp(1.0, 1 - format.bias)),
                                     -format.fraction - 1);
            ASSERT_LE(std::abs(got - value), step * scale[0] * (1 + 1e-6));
            // No code is nearer: rounding of the scaled value was the only one.
            ASSERT_EQ(code, format.nearest(static_cast<float>(value) *
                                           (1.0f / scale[0])));
            largest = std::max(largest, std::abs(double(format.from(code))));
          }
        EXPECT_EQ(largest, most); // the whole range is used
      }
}

TEST_P(Fp8Test, CastOfZerosNaNAndTinyValues) {
  const int64_t n = 16;
  Floats amax(1), scale(1);
  auto cast = [&](Halves x) {
    Codes codes{DType::F8E4M3, std::vector<uint8_t>(n * n, 0x55)};
    Call{Kernel::Amax, {x}, {amax}, {}, {}}.run(*device);
    Call{Kernel::CastFp8, {x, amax}, {scale, codes}, {n, n, 0, 1}, {}}.run(
        *device);
    return codes.bytes;
  };
  EXPECT_EQ(cast(Halves(n * n)), std::vector<uint8_t>(n * n));
  EXPECT_EQ(scale[0], 1.0f);
  Halves tiny(n * n, 0x0001); // the smallest bf16
  tiny[3] = 0;
  std::vector<uint8_t> codes = cast(tiny);
  EXPECT_EQ(codes[3], 0);
  for (uint8_t code : codes)
    EXPECT_NE(code & 0x7f, 0x7f);
  Halves nan = randomHalves(n * n, 1);
  nan[5] = 0x7fc0;
  EXPECT_TRUE(std::isnan(formats[0].from(cast(nan)[5])));
  EXPECT_TRUE(std::isnan(scale[0])); // so every product of it is
}

TEST_P(Fp8Test, LinearAgreesWithPlainLoops) {
  struct {
    int64_t m, n, k;
  } cases[] = {{1, 1, 1},    {3, 5, 7},    {16, 16, 16},
               {17, 33, 65}, {64, 48, 32}, {20, 40, 1100}};
  for (const Format &left : formats)
    for (auto [m, n, k] : cases) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
      Matrix a(left, m, k, 1), b(formats[0], n, k, 2);
      Floats sa{0.37f}, sb{0.011f};
      Doubles want(m * n), plain(m * n);
      for (int64_t r = 0; r < m; ++r)
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < k; ++j)
            plain[r * n + i] += a.values[r * k + j] * b.values[i * k + j];
          want[r * n + i] = plain[r * n + i] * sa[0] * sb[0];
        }
      Floats start = random(m * n, 4), y = start;
      std::vector<Bound> operands{a.codes, sa, b.codes, sb};
      Call{Kernel::LinearFp8, operands, {y}, {m, n, k, 0}, {}}.run(*device);
      EXPECT_LT(relative(y, want), 1e-6);
      EXPECT_GT(relative(y, plain), 0.1); // the scales count
      Halves half(m * n, 7);
      Call{Kernel::LinearFp8, operands, {half}, {m, n, k, 0}, {}}.run(*device);
      for (int64_t i = 0; i < m * n; ++i)
        ASSERT_NEAR(widened(half[i]), want[i],
                    std::abs(want[i]) * 0x1.01p-8 + 1e-6);
      y = start;
      Call{Kernel::LinearFp8, operands, {y}, {m, n, k, 1}, {}}.run(*device);
      for (int64_t i = 0; i < m * n; ++i)
        want[i] += start[i];
      EXPECT_LT(relative(y, want), 1e-6);
    }
}

TEST_P(Fp8Test, LinearIgnoresPaddedRowsButNotColumns) {
  // Rows of padding belong to no result, whatever stands there; columns of it
  // must be zeros, as cast_fp8 leaves them.
  const int64_t m = 5, n = 3, k = 20;
  Matrix a(formats[0], m, k, 1), b(formats[0], n, k, 2);
  Floats one{1.0f}, y(m * n), again(m * n);
  std::vector<Bound> operands{a.codes, one, b.codes, one};
  Call call{Kernel::LinearFp8, operands, {y}, {m, n, k, 0}, {}};
  call.run(*device);
  for (int64_t i = m * fp8Padded(k); i < fp8Codes(m, k); ++i)
    a.codes.bytes[i] = 0x7f;
  Call{Kernel::LinearFp8, operands, {again}, {m, n, k, 0}, {}}.run(*device);
  EXPECT_EQ(y, again);
}

TEST_P(Fp8Test, RefusesWhatTheConventionsForbid) {
  Halves x(16 * 32), y(16 * 16);
  Floats one(1), wide(16 * 32), sums(16 * 16);
  Codes e4m3{DType::F8E4M3, std::vector<uint8_t>(16 * 32)};
  Codes e5m2{DType::F8E5M2, std::vector<uint8_t>(16 * 32)};
  Codes small{DType::F8E4M3, std::vector<uint8_t>(16 * 16)};
  auto message = [&](const Call &call) {
    auto made = call.prepare(*device);
    return made.ok() ? std::string() : made.error().message;
  };
  auto cast = [&](std::vector<Bound> outputs, std::vector<int64_t> args) {
    return message({Kernel::CastFp8, {x, one}, outputs, args, {}});
  };
  EXPECT_EQ(cast({one, e4m3}, {16, 32, 0, 1}), "");
  EXPECT_NE(cast({one, e5m2}, {16, 32, 0, 1}).find("f8e4m3"),
            std::string::npos);
  EXPECT_NE(cast({one, e4m3}, {16, 32, 0, 3}).find("3 outputs"),
            std::string::npos);
  EXPECT_NE(cast({one, e4m3}, {16, 32, 0, 4}).find("LAYOUT"),
            std::string::npos);
  EXPECT_NE(cast({one, e4m3}, {17, 32, 0, 1}), "");
  auto linear = [&](Bound a, Bound b, Bound to, std::vector<int64_t> args) {
    return message({Kernel::LinearFp8, {a, one, b, one}, {to}, args, {}});
  };
  EXPECT_EQ(linear(e4m3, e5m2, y, {16, 16, 32, 0}), "");
  EXPECT_NE(linear(e4m3, e5m2, y, {16, 16, 32, 1}).find("ACC"),
            std::string::npos);
  EXPECT_NE(linear(x, e5m2, sums, {16, 16, 32, 0}).find("f8e4m3 or f8e5m2"),
            std::string::npos);
  EXPECT_NE(linear(small, e5m2, sums, {16, 16, 32, 0}), "");
  EXPECT_NE(message({Kernel::Amax, {wide}, {one}, {}, {}}), "");
}

RECKON_VARIANTS(Fp8Test);
