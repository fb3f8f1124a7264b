//===- ScalarsTest.cpp - numbers and switches -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Scalars.h"

#include "frontends/spec/Keys.h"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(Scalars, Integers) {
  EXPECT_EQ(parseInteger("0"), 0);
  EXPECT_EQ(parseInteger("-12"), -12);
  EXPECT_EQ(parseInteger("+12"), 12);
  EXPECT_EQ(parseInteger("007"), 7);
  EXPECT_EQ(parseInteger("9223372036854775807"), INT64_MAX);
  for (const char *bad : {"", "-", "+", "+-1", "0x10", "1_000", "1,000", "1 ",
                          " 1", "four", "1.0", "1e3", "9223372036854775808"})
    EXPECT_FALSE(parseInteger(bad)) << bad;
}

TEST(Scalars, WhyNoInteger) {
  IntegerError why;
  parseInteger("1.5", &why);
  EXPECT_EQ(why, IntegerError::Fraction);
  parseInteger("99999999999999999999", &why);
  EXPECT_EQ(why, IntegerError::TooLarge);
  parseInteger("abc", &why);
  EXPECT_EQ(why, IntegerError::NotANumber);
}

TEST(Scalars, Reals) {
  EXPECT_EQ(parseReal("3"), 3.0);
  EXPECT_EQ(parseReal("3.0e-4"), 3e-4);
  EXPECT_EQ(parseReal("3e4"), 3e4);
  EXPECT_EQ(parseReal("-.5"), -0.5);
  EXPECT_EQ(parseReal("+1E+2"), 100.0);
  for (const char *bad : {"", ".", "e5", "inf", ".inf", "nan", ".nan", "1e999",
                          "1,5", "0x1p3", "1.0f", "--1"})
    EXPECT_FALSE(parseReal(bad)) << bad;
}

TEST(Scalars, Switches) {
  EXPECT_EQ(parseBool("true"), true);
  EXPECT_EQ(parseBool("False"), false);
  for (const char *bad : {"yes", "no", "on", "off", "1", "0", "", "tRUE"})
    EXPECT_FALSE(parseBool(bad)) << bad;
}

TEST(Scalars, NumbersInMessages) {
  EXPECT_EQ(formatNumber(64), "64");
  EXPECT_EQ(formatNumber(0.0003), "0.0003");
  EXPECT_EQ(formatNumber(1e-8), "1e-08");
  EXPECT_EQ(formatNumber(9007199254740992.0), "9.00719925474e+15");
}

} // namespace
} // namespace reckon
