//===- TermsTest.cpp - functions of coordinates, terms, symbolic memory ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/SymbolicMemory.h"
#include "tests/unit/prove/PlanBuilder.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

namespace {

constexpr unsigned kTp = 1, kDp = 8;

ExprT expr(int64_t base, std::vector<Term> terms, std::vector<Case> cases) {
  ExprT e;
  e.base = base;
  e.terms = std::move(terms);
  e.cases = std::move(cases);
  return e;
}

TEST(CoordFunctions, EqualValuesAreOneFunction) {
  CoordFunctions f(mesh(2, 3, 2));
  FnId term = f.of(expr(0, {Term(Axis::tp, 64)}, {}), 0);
  FnId cases = f.of(expr(64, {}, {Case(Axis::tp, false, 0, 0)}), 0);
  EXPECT_EQ(term, cases);
  EXPECT_EQ(term, f.block(kTp, 64));
  EXPECT_NE(term, f.block(kDp, 64));
  // An axis that makes no difference, or has one coordinate, is none.
  EXPECT_EQ(f.of(expr(7, {Term(Axis::cp, 5)}, {}), 0), f.constant(7));
  EXPECT_EQ(f.of(expr(7, {Term(Axis::dp, 0)}, {}), 0), f.constant(7));
  // The stage is a coordinate too, and known.
  EXPECT_EQ(f.of(expr(1, {Term(Axis::pp, 10)}, {}), 1), f.constant(11));
}

TEST(CoordFunctions, OverlapLooksAtAllRanks) {
  CoordFunctions f(mesh(1, 4, 1));
  FnId block = f.block(kDp, 64);
  EXPECT_FALSE(f.overlap(block, 64, f.shifted(block, 64), 64));
  EXPECT_TRUE(f.overlap(block, 65, f.shifted(block, 64), 64));
  // Only the last rank's block reaches byte 200.
  EXPECT_TRUE(f.overlap(block, 64, f.constant(200), 4));
  EXPECT_FALSE(f.covers(block, 64, f.constant(200), 4));
  EXPECT_TRUE(f.covers(f.constant(0), 256, block, 64));
  EXPECT_EQ(f.low(block), 0);
  EXPECT_EQ(f.high(block), 192);
}

class Values : public testing::Test {
protected:
  CoordFunctions functions{mesh(2, 2, 1)};
  TermTable terms{functions};

  TermId symbol(const std::string &name, int64_t bytes = 64) {
    return terms.symbol(name, -1, DType::f32, bytes);
  }
  TermId add(TermId a, TermId b) {
    TermId inputs[] = {a, b};
    return terms.kernel(Kernel::add, {}, {}, inputs, 0, DType::f32, 64);
  }
};

TEST_F(Values, EqualTermsHaveOneNumber) {
  TermId x = symbol("x"), y = symbol("y"), z = symbol("z");
  EXPECT_EQ(symbol("x"), x);
  EXPECT_NE(x, y);
  EXPECT_EQ(add(x, y), add(y, x)); // to the bit
  EXPECT_NE(add(add(x, y), z), add(x, add(y, z)));
  double scale[] = {0.1}, other[] = {0.1 + 1e-18}, third[] = {0.2};
  TermId in[] = {x};
  auto scaled = [&](std::span<const double> s) {
    return terms.kernel(Kernel::rms_norm, {}, s, in, 0, DType::f32, 64);
  };
  EXPECT_EQ(scaled(scale), scaled(other));
  EXPECT_NE(scaled(scale), scaled(third));
  EXPECT_NE(terms.cast(x, DType::bf16), x);
}

TEST_F(Values, CastsToFp8AreEqualWhateverElseTheyMake) {
  TermId x = symbol("x"), amax = symbol("amax", 4);
  auto cast = [&](int64_t layout, unsigned output, int64_t format = 0,
                  bool swapped = false) {
    FnId args[] = {functions.constant(4), functions.constant(8),
                   functions.constant(format), functions.constant(layout)};
    TermId inputs[] = {swapped ? amax : x, swapped ? x : amax};
    return terms.kernel(Kernel::cast_fp8, args, {}, inputs, output,
                        output ? DType::f8e4m3 : DType::f32, 256);
  };
  constexpr int64_t straight = 1, transposed = 2, both = 3;
  EXPECT_EQ(cast(straight, 1), cast(both, 1));
  EXPECT_EQ(cast(transposed, 1), cast(both, 2));
  EXPECT_EQ(cast(straight, 0), cast(both, 0));
  EXPECT_EQ(cast(transposed, 0), cast(both, 0));
  // But not codes and their transpose, nor two formats, nor two tensors.
  EXPECT_NE(cast(straight, 1), cast(transposed, 1));
  EXPECT_NE(cast(both, 0, 0), cast(both, 0, 1));
  EXPECT_NE(cast(both, 1), cast(both, 1, 0, true));
}

TEST_F(Values, ManyTermsStayDistinct) {
  std::vector<TermId> all;
  TermId x = symbol("x");
  for (int i = 0; i < 100000; ++i)
    all.push_back(x = add(x, symbol("x")));
  EXPECT_EQ(all.size() + 1, terms.size());
  EXPECT_EQ(terms.inputs(all[5000]).size(), 2u);
  x = symbol("x");
  for (int i = 0; i < 100000; ++i)
    ASSERT_EQ(x = add(x, symbol("x")), all[static_cast<size_t>(i)]);
}

TEST_F(Values, ScatteredSumsAreBlocksOfSums) {
  TermId x = symbol("x", 128);
  TermId whole =
      terms.collective(Opcode::all_reduce, Reduction::sum, kDp, x, 128);
  TermId part =
      terms.collective(Opcode::reduce_scatter, Reduction::sum, kDp, x, 64);
  EXPECT_EQ(part, terms.slice(whole, functions.block(kDp, 64), 64));
  EXPECT_NE(part, terms.slice(whole, functions.block(kTp, 64), 64));
  EXPECT_EQ(
      terms.collective(Opcode::all_gather, Reduction::sum, kDp, part, 128),
      whole);
  // Blocks of what differs between the ranks are not put together again.
  TermId own = terms.slice(x, functions.block(kDp, 64), 64);
  EXPECT_NE(terms.collective(Opcode::all_gather, Reduction::sum, kDp, own, 128),
            x);
  // The block of a gather is what was gathered.
  TermId y = symbol("y");
  TermId gathered =
      terms.collective(Opcode::all_gather, Reduction::sum, kDp, y, 128);
  EXPECT_EQ(terms.slice(gathered, functions.block(kDp, 64), 64), y);
  EXPECT_NE(terms.slice(gathered, functions.constant(0), 64), y);
}

TEST_F(Values, MemoryHoldsWhatWasWritten) {
  SymbolicMemory memory(terms);
  auto range = [](int64_t begin, int64_t end) {
    return Range{begin, end, end - begin, 0, false};
  };
  TermId x = symbol("x"), y = symbol("y");
  memory.write(range(0, 64), x);
  EXPECT_EQ(memory.read(range(0, 64)), x);
  EXPECT_EQ(memory.read(range(0, 65)), kNoTerm);
  memory.write(range(64, 128), y);
  TermId both[] = {x, y};
  EXPECT_EQ(memory.read(range(0, 128)), terms.concat(both));
  // A part that is overwritten is gone.
  memory.write(range(32, 96), symbol("z"));
  EXPECT_EQ(memory.read(range(0, 32)),
            terms.slice(x, functions.constant(0), 32));
  EXPECT_EQ(memory.read(range(96, 128)),
            terms.slice(y, functions.constant(32), 32));
  EXPECT_NE(memory.read(range(0, 64)), x);
  memory.clear(0, 33);
  EXPECT_EQ(memory.read(range(32, 96)), kNoTerm);
}

TEST_F(Values, BlocksLieOverTheWhole) {
  SymbolicMemory memory(terms);
  Range whole{0, 128, 128, 0, false};
  FnId block = functions.block(kDp, 64);
  Range mine{0, 128, 64, block, true};
  TermId x = symbol("x", 128), y = symbol("y");
  memory.write(whole, x);
  EXPECT_EQ(memory.read(mine), terms.slice(x, block, 64));
  memory.write(mine, y);
  EXPECT_EQ(memory.read(mine), y);
  // The whole is now of two values, elsewhere on each rank.
  EXPECT_EQ(memory.read(whole), kNoTerm);
  Range other{64, 128, 64, 0, false};
  EXPECT_EQ(memory.read(other), kNoTerm);
  memory.write(whole, x);
  EXPECT_EQ(memory.read(whole), x);
  // Writing half of the whole forgets the block and what lay below it.
  memory.write(mine, y);
  memory.write(other, y);
  EXPECT_EQ(memory.read(mine), kNoTerm);
  EXPECT_EQ(memory.read(other), y);
}

} // namespace
