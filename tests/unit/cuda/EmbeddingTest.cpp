//===- EmbeddingTest.cpp - words looked up and their gradient -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/cuda/Support.h"

using namespace reckon::cuda;
using namespace reckon::cuda::test;

namespace {

struct Case {
  int64_t rows, v, h, offset;
  int shift = 0;
  /// Words that occur; the first of them is every second token.
  int32_t words = 30;
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << c.rows << " tokens, table " << c.v << " x " << c.h << " from "
       << c.offset << ", shifted " << c.shift << ", " << c.words << " words";
}

// Also: words of other shards on both sides; words with more tokens than a
// piece has, beside each other; one word only.
const Case cases[] = {
    {0, 5, 8, 0},           {1, 1, 1, 0, 0, 1},         {300, 13, 7, 5},
    {300, 13, 24, 5},       {300, 13, 24, 5, 1},        {64, 40, 16, 0, 0, 1},
    {65, 40, 16, 0, 0, 1},  {700, 1100, 40, 0, 0, 900}, {700, 4, 1032, 0, 0, 4},
    {193, 40, 16, 0, 0, 1}, {520, 3, 9, 0, 0, 3},
};

Ints tokensOf(const Case &c) {
  std::mt19937 engine(7);
  std::uniform_int_distribution<int32_t> word(0, c.words - 1);
  Ints tokens(static_cast<size_t>(c.rows));
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = i % 2 == 0 ? c.words / 2 : word(engine);
  return tokens;
}

Doubles gradientOf(const Case &c, const Doubles &dy, const Ints &tokens,
                   const Doubles &start) {
  Doubles want = start;
  for (int64_t r = 0; r < c.rows; ++r) {
    int64_t row = tokens[static_cast<size_t>(r)] - c.offset;
    if (row < 0 || row >= c.v)
      continue;
    for (int64_t i = 0; i < c.h; ++i)
      want[static_cast<size_t>(row * c.h + i)] +=
          dy[static_cast<size_t>(r * c.h + i)];
  }
  return want;
}

class EmbeddingTest : public Stored {};

} // namespace

TEST_P(EmbeddingTest, LooksUp) {
  for (const Case &c : cases) {
    SCOPED_TRACE(testing::PrintToString(c));
    Ints tokens = tokensOf(c);
    Doubles table = stored(storage, random(c.v * c.h, 1));
    Doubles want(static_cast<size_t>(c.rows * c.h));
    for (int64_t r = 0; r < c.rows; ++r) {
      int64_t row = tokens[static_cast<size_t>(r)] - c.offset;
      for (int64_t i = 0; row >= 0 && row < c.v && i < c.h; ++i)
        want[static_cast<size_t>(r * c.h + i)] =
            table[static_cast<size_t>(row * c.h + i)];
    }
    Operand weight(storage, table, c.shift);
    IntOperand words(tokens);
    Doubles y = underSeeds([&] {
      Operand out(storage, c.rows * c.h, c.shift);
      EXPECT_EQ(embedding(storage, {c.rows, c.v, c.h, c.offset}, words.data(),
                          weight.data(), out.data(), queue()),
                cudaSuccess);
      return out.read();
    });
    EXPECT_EQ(y, want);
  }
}

TEST_P(EmbeddingTest, GradientAddsInTheOrderOfTokens) {
  for (const Case &c : cases)
    for (bool accumulate : {false, true}) {
      SCOPED_TRACE(testing::PrintToString(c) + (accumulate ? " more" : ""));
      Ints tokens = tokensOf(c);
      Doubles dy = stored(storage, random(c.rows * c.h, 2));
      Doubles start = stored(Storage::F32, random(c.v * c.h, 3));
      EmbeddingSizes sizes{c.rows, c.v, c.h, c.offset};
      Operand D(storage, dy, c.shift);
      IntOperand words(tokens);
      Doubles gw = underSeeds([&] {
        Operand out(Storage::F32, start, c.shift);
        Scratch scratch(embeddingGradScratch(sizes));
        EXPECT_EQ(embeddingGrad(storage, sizes, accumulate, D.data(),
                                words.data(), out.floats(), scratch.data(),
                                queue()),
                  cudaSuccess);
        return out.read();
      });
      Doubles zeros(start.size(), 0.0);
      Doubles want = gradientOf(c, dy, tokens, accumulate ? start : zeros);
      double terms = static_cast<double>(c.rows) + 1.0;
      Tolerance tolerance{1e-6, 1e-6 * std::sqrt(terms)};
      expectClose(gw, want, tolerance);
      // A token that is counted for its neighbour's word is seen.
      if (c.rows > 1 && c.v > 1) {
        Ints moved = tokens;
        moved[0] = static_cast<int32_t>(c.offset + (moved[0] == c.offset));
        EXPECT_GT(worst(gw,
                        gradientOf(c, dy, moved, accumulate ? start : zeros),
                        tolerance),
                  1.0);
      }
    }
}

// f32 addition is not associative, so a sum in another order shows in the bits:
// 2^24 + 1 + 1 is 2^24, 1 + 1 + 2^24 is 2^24 + 2.
TEST(EmbeddingOrder, IsThatOfTokens) {
  const int64_t v = 2, h = 4;
  for (bool largeFirst : {true, false}) {
    Doubles dy(3 * h, 1.0);
    for (int64_t i = 0; i < h; ++i)
      dy[static_cast<size_t>((largeFirst ? 0 : 2 * h) + i)] = 0x1p24;
    Operand D(Storage::F32, dy);
    IntOperand words(Ints{1, 1, 1});
    EmbeddingSizes sizes{3, v, h, 0};
    Doubles gw = underSeeds([&] {
      Operand out(Storage::F32, v * h);
      Scratch scratch(embeddingGradScratch(sizes));
      EXPECT_EQ(embeddingGrad(Storage::F32, sizes, false, D.data(),
                              words.data(), out.floats(), scratch.data(),
                              queue()),
                cudaSuccess);
      return out.read();
    });
    EXPECT_EQ(gw[h], largeFirst ? 0x1p24 : 0x1p24 + 2.0);
    EXPECT_EQ(gw[0], 0.0);
  }
}

RECKON_STORED(EmbeddingTest);
