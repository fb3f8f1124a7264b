//===- LazyLibraryTest.cpp - a library that may be missing ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/LazyLibrary.h"

#include <gtest/gtest.h>

namespace {

const reckon::cuda::LazyLibrary &mathematics() {
  static const reckon::cuda::LazyLibrary library("libm.so.6");
  return library;
}
const reckon::cuda::LazyLibrary &absent() {
  static const reckon::cuda::LazyLibrary library("libreckon-absent.so.1");
  return library;
}

} // namespace

extern "C" int reckonNotInMathematics(int);
extern "C" int reckonOfAbsent(int, int);

// A function that the library has, one that it lacks, one of no library.
namespace lazy {
RECKON_LAZY(mathematics, -1, int, ilogb, (double x), (x))
} // namespace lazy
RECKON_LAZY(mathematics, -2, int, reckonNotInMathematics, (int x), (x))
RECKON_LAZY(absent, -3, int, reckonOfAbsent, (int x, int y), (x, y))

namespace {

TEST(LazyLibrary, CallsWhatIsThere) {
  EXPECT_EQ(mathematics().missing(), "");
  EXPECT_EQ(lazy::ilogb(8.0), 3);
}

TEST(LazyLibrary, GivesTheFailureForWhatIsNot) {
  EXPECT_EQ(reckonNotInMathematics(1), -2);
  EXPECT_EQ(reckonOfAbsent(1, 2), -3);
}

TEST(LazyLibrary, KeepsTheLoadersWords) {
  EXPECT_NE(absent().missing().find("libreckon-absent.so.1: cannot open"),
            std::string::npos)
      << absent().missing();
}

} // namespace
