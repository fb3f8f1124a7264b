//===- AttentionTest.cpp - attention against a naive f64 reference --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/device/AttentionReference.h"

using namespace reckon::device;
using namespace reckon::device::test;

namespace {

using Shape = AttentionCase;
using Reference = AttentionReference;

struct Pass {
  Floats q, k, v, dO, o, lse, dq, dk, dv, delta;

  Pass(const Shape &shape, double scale = 1.0) {
    auto [batch, hq, hkv, d, s] = shape;
    int64_t queries = batch * s * hq * d, keys = batch * s * hkv * d;
    q = random(queries, 1, scale);
    k = random(keys, 2, scale);
    v = random(keys, 3);
    dO = random(queries, 4);
    // Garbage, for every output must be overwritten.
    o = dq = Floats(queries, 7.0f);
    dk = dv = Floats(keys, 7.0f);
    lse = delta = Floats(batch * hq * s, 7.0f);
  }
  void run(const Shape &shape, Device &device) {
    auto [batch, hq, hkv, d, s] = shape;
    Call{Kernel::Attention, {q, k, v}, {o, lse}, {hq, hkv, d, s}, {}}.run(
        device);
    Call{Kernel::AttentionGrad,
         {dO, q, k, v, o, lse},
         {dq, dk, dv, delta},
         {hq, hkv, d, s},
         {}}
        .run(device);
  }
};

class AttentionTest : public Variants {};

} // namespace

TEST_P(AttentionTest, AgreesWithTheReference) {
  // One query; less than a vector, than a block; whole blocks; remainders in
  // every dimension; groups of 1, 2, 3 and 4 query heads; multi-query.
  const Shape shapes[] = {
      {1, 1, 1, 8, 1},    {2, 2, 1, 16, 5},   {1, 4, 4, 64, 64},
      {2, 4, 1, 64, 65},  {1, 6, 2, 128, 77}, {1, 2, 2, 32, 128},
      {2, 4, 2, 20, 130}, {1, 3, 1, 7, 200},  {1, 2, 1, 80, 97},
      {1, 8, 2, 64, 192},
  };
  for (const Shape &shape : shapes) {
    SCOPED_TRACE(testing::Message() << "heads " << shape.hq << "/" << shape.hkv
                                    << " d " << shape.d << " s " << shape.s);
    Pass run(shape);
    run.run(shape, *device);
    Reference want = attentionReference(shape, run.q, run.k, run.v, run.dO);
    EXPECT_LT(relative(run.o, want.o), 1e-6);
    EXPECT_LT(largest(run.lse, want.lse), 4e-6);
    EXPECT_LT(relative(run.dq, want.dq), shape.s == 1 ? 1e30 : 2e-6);
    EXPECT_LT(relative(run.dk, want.dk), shape.s == 1 ? 1e30 : 2e-6);
    EXPECT_LT(relative(run.dv, want.dv), 2e-6);
    if (shape.s == 1) { // softmax of one score is constant
      EXPECT_LT(largest(run.dq, want.dq), 1e-5);
    }
    EXPECT_LT(largest(run.delta, want.delta), 2e-5);
  }
}

TEST_P(AttentionTest, LargeScoresStayFinite) {
  // Scores of some hundreds: every softmax is close to one-hot.
  Shape shape{1, 2, 1, 32, 100};
  Pass run(shape, 20.0);
  run.run(shape, *device);
  Reference want = attentionReference(shape, run.q, run.k, run.v, run.dO);
  EXPECT_LT(relative(run.o, want.o), 1e-3);
  for (const Floats *values : {&run.o, &run.lse, &run.dq, &run.dk, &run.dv})
    for (float value : *values)
      ASSERT_TRUE(std::isfinite(value));
}

TEST_P(AttentionTest, LaterTokensHaveNoInfluence) {
  Shape shape{1, 2, 1, 16, 150};
  Pass before(shape), after(shape);
  for (int64_t i = 100 * 16; i < 150 * 16; ++i)
    after.k[i] = after.v[i] = 1e4f;
  before.run(shape, *device);
  after.run(shape, *device);
  for (int64_t i = 0; i < 100 * 2 * 16; ++i)
    ASSERT_EQ(before.o[i], after.o[i]);
}

TEST_P(AttentionTest, ScratchDoesNotGrowWithTheSequence) {
  int64_t bytes[2];
  int64_t lengths[] = {256, 1 << 20};
  for (int i = 0; i < 2; ++i) {
    auto [isa, threads] = GetParam();
    auto fresh = makeCpuDevice({.threads = threads, .isa = isa});
    int64_t s = lengths[i], h = 4, d = 64;
    Operand wide{DType::F32, s * h * d}, rows{DType::F32, h * s};
    Operand in[] = {wide, wide, wide, wide, wide, rows};
    Operand out[] = {wide, wide, wide, rows};
    int64_t args[] = {h, h, d, s};
    ASSERT_TRUE((*fresh)->prepare(Kernel::AttentionGrad, {in, out, args, {}}));
    bytes[i] = (*fresh)->workspaceBytes();
    // 3 panels of d x 64 and 2 blocks of 64 x 64 floats a thread.
    EXPECT_LE(bytes[i], threads * 4 * (3 * d * 64 + 2 * 64 * 64 + 2 * 64));
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

RECKON_VARIANTS(AttentionTest);

TEST(AttentionDeterminism, SameBitsForAnyThreadCount) {
  Shape shape{2, 6, 3, 64, 161};
  Pass one(shape), four(shape), again(shape);
  one.run(shape, **makeCpuDevice({.threads = 1, .isa = {}}));
  auto device = makeCpuDevice({.threads = 4, .isa = {}});
  four.run(shape, **device);
  again.run(shape, **device);
  EXPECT_EQ(one.o, four.o);
  EXPECT_EQ(one.dq, four.dq);
  EXPECT_EQ(one.dk, four.dk);
  EXPECT_EQ(one.dv, four.dv);
  EXPECT_EQ(four.dk, again.dk);
  EXPECT_EQ(four.o, again.o);
}
