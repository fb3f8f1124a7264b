//===- AttentionTest.cpp - our own attention kernels, emulated ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Attention.h"
#include "runtime/cuda/kernels/AttentionKernels.h"
#include "tests/unit/cuda/OnDevice.h"
#include "tests/unit/device/AttentionReference.h"

namespace reckon::cuda::test {
namespace {

using device::test::AttentionReference;
using device::test::attentionReference;
using Case = device::test::AttentionCase;

/// Operands and results of both directions, stored as T.
template <typename T> struct Pass {
  Case shape;
  std::vector<T> q, k, v, dO, o, dq, dk, dv;
  Floats lse, delta;

  explicit Pass(const Case &shape, double scale = 1.0) : shape(shape) {
    auto [batch, hq, hkv, d, s] = shape;
    int64_t queries = batch * s * hq * d, keys = batch * s * hkv * d;
    q = storedAs<T>(randomFloats(queries, 1, scale));
    k = storedAs<T>(randomFloats(keys, 2, scale));
    v = storedAs<T>(randomFloats(keys, 3));
    dO = storedAs<T>(randomFloats(queries, 4));
    // Garbage, for every output must be overwritten.
    o = dq = storedAs<T>(Floats(queries, 7.0f));
    dk = dv = storedAs<T>(Floats(keys, 7.0f));
    lse = delta = Floats(batch * hq * s, 7.0f);
  }

  /// Every array starts `shift` elements past a 16-byte boundary.
  void run(std::optional<uint64_t> seed = std::nullopt, int shift = 0) {
    AttentionShape sizes{shape.batch, shape.hq, shape.hkv,
                         shape.d,     shape.s,  dtypeOf<T>};
    OwnAttention attention;
    auto forward = attention.prepareForward(sizes, 0);
    auto backward = attention.prepareBackward(sizes, 0);
    ASSERT_TRUE(forward.ok()) << forward.error().message;
    ASSERT_TRUE(backward.ok()) << backward.error().message;
    OnDevice<T> gpuQ(q, shift), gpuK(k, shift), gpuV(v, shift),
        gpuDO(dO, shift);
    OnDevice<T> gpuO(o, shift), gpuDq(dq, shift), gpuDk(dk, shift),
        gpuDv(dv, shift);
    OnDevice<float> gpuLse(lse, shift), gpuDelta(delta, shift);
    auto enqueue = [&](cudaStream_t stream) {
      AttentionForward out{gpuQ.data(), gpuK.data(), gpuV.data(), gpuO.data(),
                           gpuLse.data()};
      AttentionBackward in{gpuDO.data(),   gpuQ.data(),  gpuK.data(),
                           gpuV.data(),    gpuO.data(),  gpuLse.data(),
                           gpuDq.data(),   gpuDk.data(), gpuDv.data(),
                           gpuDelta.data()};
      Status first = (*forward)->run(out, stream);
      EXPECT_TRUE(first.ok()) << first.error().message;
      Status second = (*backward)->run(in, stream);
      EXPECT_TRUE(second.ok()) << second.error().message;
      return cudaSuccess;
    };
    runOnStream(enqueue, seed);
    o = gpuO.read();
    lse = gpuLse.read();
    dq = gpuDq.read();
    dk = gpuDk.read();
    dv = gpuDv.read();
    delta = gpuDelta.read();
    for (const auto *unchanged : {&gpuQ, &gpuK, &gpuV, &gpuDO})
      (void)unchanged->read();
  }

  AttentionReference reference(int64_t ahead = 0) const {
    return attentionReference(shape, widened(q), widened(k), widened(v),
                              widened(dO), ahead);
  }
  auto results() const { return std::tie(o, lse, dq, dk, dv, delta); }
};

/// One query; rows that fill no tile, one tile, several; each number of
/// 64-column chunks; heads that 16 bytes do not divide; groups of 1, 2, 4.
const Case cases[] = {
    {1, 1, 1, 8, 1},    {2, 4, 2, 16, 17},  {1, 4, 1, 64, 65},
    {2, 2, 2, 80, 130}, {1, 4, 2, 128, 65}, {1, 2, 1, 128, 130},
    {1, 3, 3, 7, 70},   {1, 2, 1, 20, 130}, {1, 2, 2, 192, 40},
    {1, 2, 1, 256, 97}, {3, 4, 4, 8, 5},    {1, 4, 1, 16, 200},
};

testing::Message describe(const Case &shape) {
  return testing::Message() << "heads " << shape.hq << "/" << shape.hkv << " d "
                            << shape.d << " s " << shape.s;
}

/// The largest relative error of o, dq, dk and dv. Of a single token dq and dk
/// are exactly zero.
template <typename T>
double worst(const Pass<T> &got, const AttentionReference &want) {
  double error = std::max(relative(widened(got.o), want.o),
                          relative(widened(got.dv), want.dv));
  if (got.shape.s > 1)
    error = std::max({error, relative(widened(got.dq), want.dq),
                      relative(widened(got.dk), want.dk)});
  return error;
}

constexpr double f32Tolerance = 2e-6;
/// Operands are rounded before, results after: half a unit of 2^-8 each, and
/// the rounding of o in delta.
constexpr double bf16Tolerance = 4e-3;

} // namespace

TEST(CudaAttention, AgreesWithTheReference) {
  for (const Case &shape : cases) {
    SCOPED_TRACE(describe(shape));
    Pass<float> pass(shape);
    pass.run();
    AttentionReference want = pass.reference();
    EXPECT_LT(worst(pass, want), f32Tolerance);
    EXPECT_LT(largest(pass.lse, want.lse), 4e-6);
    EXPECT_LT(largest(pass.delta, want.delta), 3e-5);
    if (shape.s == 1) {
      EXPECT_LT(largest(pass.dq, want.dq), 1e-5);
      EXPECT_LT(largest(pass.dk, want.dk), 1e-5);
    }
  }
}

TEST(CudaAttention, AgreesInBf16) {
  for (const Case &shape : cases) {
    SCOPED_TRACE(describe(shape));
    Pass<uint16_t> pass(shape);
    pass.run();
    AttentionReference want = pass.reference();
    EXPECT_LT(worst(pass, want), bf16Tolerance);
    EXPECT_LT(largest(pass.lse, want.lse), 4e-6);
  }
}

/// The comparison must see a key too many or too few, in both types.
TEST(CudaAttention, WrongMasksAreSeen) {
  Case shape{1, 4, 2, 64, 65};
  Pass<float> f32(shape);
  Pass<uint16_t> bf16(shape);
  f32.run();
  bf16.run();
  for (int64_t ahead : {-1, 1}) {
    EXPECT_GT(worst(f32, f32.reference(ahead)), 10 * f32Tolerance);
    EXPECT_GT(worst(bf16, bf16.reference(ahead)), 10 * bf16Tolerance);
  }
  // And one wrong element of many.
  AttentionReference want = f32.reference();
  f32.dk[f32.dk.size() / 2] += 0.01f;
  EXPECT_GT(worst(f32, want), f32Tolerance);
}

/// The reference's gradients are those of its own output: central differences
/// of sum(o * dO) in single elements.
TEST(CudaAttention, ReferenceAgreesWithDifferences) {
  Case shape{1, 2, 1, 8, 9};
  Floats q = randomFloats(9 * 2 * 8, 1), k = randomFloats(9 * 8, 2),
         v = randomFloats(9 * 8, 3);
  Floats dO = randomFloats(9 * 2 * 8, 4);
  AttentionReference at = attentionReference(shape, q, k, v, dO);
  auto loss = [&] {
    AttentionReference r = attentionReference(shape, q, k, v, dO);
    double sum = 0.0;
    for (size_t i = 0; i < dO.size(); ++i)
      sum += r.o[i] * dO[i];
    return sum;
  };
  struct {
    Floats &values;
    const Doubles &gradient;
  } operands[] = {{q, at.dq}, {k, at.dk}, {v, at.dv}};
  constexpr float step = 1.0f / 1024; // exact where values are below 8
  for (auto &[values, gradient] : operands)
    for (size_t i = 0; i < values.size(); i += 5) {
      float middle = values[i], up = middle + step, down = middle - step;
      values[i] = up;
      double above = loss();
      values[i] = down;
      double below = loss();
      values[i] = middle;
      EXPECT_NEAR((above - below) / (double(up) - double(down)), gradient[i],
                  2e-6);
    }
}

template <typename T> void expectSameBitsForEverySeed(const Case &shape) {
  SCOPED_TRACE(describe(shape));
  Pass<T> natural(shape);
  natural.run();
  for (uint64_t seed : threadSeeds) {
    Pass<T> shuffled(shape);
    shuffled.run(seed);
    EXPECT_TRUE(natural.results() == shuffled.results()) << "seed " << seed;
  }
}

TEST(CudaAttention, SameBitsInAnyOrderOfThreads) {
  expectSameBitsForEverySeed<float>({1, 4, 2, 64, 130});
  expectSameBitsForEverySeed<float>({1, 2, 1, 128, 65});
  expectSameBitsForEverySeed<float>({1, 1, 1, 20, 17});
  expectSameBitsForEverySeed<uint16_t>({1, 2, 1, 80, 65});
}

/// Element by element where 16-byte accesses are impossible: the same bits.
template <typename T> void expectSameBitsAtAnyAddress(const Case &shape) {
  SCOPED_TRACE(describe(shape));
  Pass<T> aligned(shape), shifted(shape);
  aligned.run();
  shifted.run(std::nullopt, 1);
  EXPECT_TRUE(aligned.results() == shifted.results());
}

TEST(CudaAttention, SameBitsAtAnyAddress) {
  expectSameBitsAtAnyAddress<float>({1, 2, 1, 64, 70});
  expectSameBitsAtAnyAddress<float>({1, 2, 2, 80, 33});
  expectSameBitsAtAnyAddress<uint16_t>({1, 2, 1, 64, 70});
  expectSameBitsAtAnyAddress<uint16_t>({1, 2, 2, 80, 33});
}

TEST(CudaAttention, ExtremeScores) {
  // Scores of some hundreds: every softmax is close to one-hot.
  Pass<float> large({1, 2, 1, 32, 100}, 20.0);
  large.run();
  EXPECT_LT(relative(large.o, large.reference().o), 1e-3);
  // Scores of +-1e4 that are equal: the mean of the values so far.
  for (float sign : {1.0f, -1.0f}) {
    Case shape{1, 1, 1, 16, 70};
    Pass<float> equal(shape);
    equal.q.assign(equal.q.size(), 50.0f);
    equal.k.assign(equal.k.size(), sign * 50.0f);
    equal.run();
    AttentionReference want = equal.reference();
    EXPECT_NEAR(want.lse.front(), sign * 1e4, 1e-6);
    EXPECT_LT(relative(equal.o, want.o), 1e-6);
    // lse is rounded to 5e-4 at 1e4, and so are probabilities of the gradient.
    EXPECT_LT(largest(equal.lse, want.lse), 6e-4);
    EXPECT_LT(relative(equal.dv, want.dv), 6e-4);
  }
}

TEST(CudaAttention, LaterTokensHaveNoInfluence) {
  Case shape{1, 2, 1, 16, 150};
  Pass<float> before(shape), after(shape);
  for (int64_t i = 100 * 16; i < 150 * 16; ++i)
    after.k[i] = after.v[i] = 1e4f;
  before.run();
  after.run();
  for (int64_t i = 0; i < 100 * 2 * 16; ++i)
    ASSERT_EQ(before.o[i], after.o[i]);
}

TEST(CudaAttention, NoTokensNoLaunch) {
  uint64_t kernels = kernelsRun();
  Pass<float> none({0, 2, 1, 16, 8});
  none.run();
  EXPECT_EQ(kernelsRun(), kernels);
}

TEST(CudaAttention, RefusesWhatDoesNotFit) {
  OwnAttention attention;
  auto wide = attention.prepareForward({1, 1, 1, 257, 8}, 0);
  ASSERT_FALSE(wide.ok());
  EXPECT_EQ(wide.error().code, ExitCode::Incompatible);
  EXPECT_NE(wide.error().message.find("at most 256 elements"),
            std::string::npos);
  auto longer = attention.prepareBackward({1, 1, 1, 8, int64_t(1) << 31}, 0);
  ASSERT_FALSE(longer.ok());
  EXPECT_NE(longer.error().message.find("blocks of 64 queries"),
            std::string::npos);
}

TEST(CudaAttention, BlocksFitAMultiprocessor) {
  // 228 KiB a multiprocessor of an H100, 1 KiB of it kept for each block.
  const size_t whole = 228 << 10, kept = 1 << 10;
  std::printf("d    forward  backward bytes of shared memory a block\n");
  for (int64_t d = 1; d <= 256; ++d) {
    AttentionShape shape{1, 1, 1, d, 8};
    size_t forward = attentionForwardShared(shape);
    size_t backward = attentionBackwardShared(shape);
    EXPECT_LT(forward, backward);
    EXPECT_LE((backward + kept) * (d <= 128 ? 2 : 1), whole) << d;
    if (d % 64 == 0)
      std::printf("%-4ld %7zu  %8zu\n", static_cast<long>(d), forward,
                  backward);
  }
}

TEST(CudaAttention, RefusesAGpuOfLessSharedMemory) {
  setSharedMemory(163 << 10); // an A100's
  OwnAttention attention;
  AttentionShape shape{1, 1, 1, 256, 8};
  EXPECT_TRUE(attention.prepareForward(shape, 0).ok());
  auto backward = attention.prepareBackward(shape, 0);
  ASSERT_FALSE(backward.ok());
  EXPECT_EQ(backward.error().code, ExitCode::Incompatible);
  // Two tiles of 64 and two of 32 rows of 260, weights of 64 rows of 36.
  EXPECT_EQ(attentionBackwardShared(shape), 4u * (192 * 260 + 64 * 36));
  EXPECT_NE(backward.error().message.find("expected a GPU with 208896 bytes"),
            std::string::npos);
  shape.d = 192;
  EXPECT_TRUE(attention.prepareBackward(shape, 0).ok());
  setSharedMemory(0);
  shape.d = 256;
  EXPECT_TRUE(attention.prepareBackward(shape, 0).ok());
}

} // namespace reckon::cuda::test
