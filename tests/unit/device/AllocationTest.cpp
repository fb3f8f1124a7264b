//===- AllocationTest.cpp - running a kernel allocates nothing ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// This program counts every allocation of the process, malloc's own included.
// oneDNN makes a few small ones for each execution (its map of arguments);
// they are measured apart, so that they are known and cannot grow unnoticed.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/device/Support.h"

#include <atomic>
#include <cstdlib>

namespace {
std::atomic<int64_t> allocations{0};
} // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RECKON_COUNTS_MALLOC
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void *realloc(void *block, size_t bytes) {
  ++allocations;
  return __libc_realloc(block, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **block, size_t alignment, size_t bytes) {
  ++allocations;
  *block = __libc_memalign(alignment, bytes);
  return *block ? 0 : 12;
}
}
#endif

using namespace reckon::device;
using namespace reckon::device::test;

namespace {

class AllocationTest : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
#ifndef RECKON_COUNTS_MALLOC
    GTEST_SKIP() << "a sanitizer owns malloc";
#endif
    device = std::move(*makeCpuDevice({.threads = GetParam(), .isa = {}}));
  }

  /// Allocations of one run, after two that warm up threads and caches.
  int64_t count(const Call &call) {
    auto prepared = call.prepare(*device);
    EXPECT_TRUE(prepared.ok());
    std::vector<void *> pointers = call.pointers();
    EXPECT_TRUE((*prepared)->run(pointers));
    EXPECT_TRUE((*prepared)->run(pointers));
    int64_t before = allocations;
    bool ok = (*prepared)->run(pointers).ok();
    int64_t after = allocations;
    EXPECT_TRUE(ok);
    return after - before;
  }
  std::unique_ptr<Device> device;
};

} // namespace

TEST_P(AllocationTest, TheCounterCounts) {
  int64_t before = allocations;
  delete[] new (std::nothrow) char[100];
  void *volatile block = std::malloc(10);
  std::free(block);
  EXPECT_GE(allocations - before, 1);
}

TEST_P(AllocationTest, HandWrittenKernelsAllocateNothing) {
  const int64_t t = 512, h = 256, v = 300, s = 128;
  Floats x = random(t * h, 1), y = x, w = random(h, 2), z = x, u = x, rows(t);
  Floats bias(h);
  Floats logits = random(t * v, 3), sums(2 * t, 1.0f), table(s * 64);
  Floats weights = random(v * h, 4);
  Floats kv = random(t * 128, 5), dk = kv, dv = kv, lse(t * 4), delta = lse;
  Ints tokens = randomTokens(t, v, 6);
  Doubles metrics(metricSlots, 1.0), scalars(scalarSlots, 0.5);
  Halves half(t * h, 0x3f80);
  Floats amax(1, 1.0f), scale(1);
  Codes codes{DType::F8E4M3, std::vector<uint8_t>(t * h)}, turned = codes;
  const Call calls[] = {
      {Kernel::FillZero, {}, {y}, {}, {}},
      {Kernel::Copy, {x}, {y}, {}, {}},
      {Kernel::Add, {x, y}, {y}, {}, {}},
      {Kernel::Embedding, {tokens, weights}, {y}, {v, h, 0}, {}},
      {Kernel::EmbeddingGrad, {x, tokens}, {weights}, {v, h, 0, 1}, {}},
      {Kernel::RmsNorm, {x, w}, {y}, {h}, {1e-5}},
      {Kernel::RmsNormGradInput, {x, x, w}, {y}, {h}, {1e-5}},
      {Kernel::RmsNormGradWeight, {x, x}, {w}, {h, 1}, {1e-5}},
      {Kernel::Rope, {x, table}, {y}, {4, 64, s, 0}, {}},
      {Kernel::Attention, {x, kv, kv}, {y, lse}, {4, 2, 64, s}, {}},
      {Kernel::AttentionGrad,
       {x, x, kv, kv, y, lse},
       {z, dk, dv, delta},
       {4, 2, 64, s},
       {}},
      {Kernel::Swiglu, {x, y}, {z}, {h}, {}},
      {Kernel::SwigluGrad, {x, y, z}, {z, u}, {h}, {}},
      {Kernel::CrossEntropyMax, {logits}, {rows}, {v, v}, {}},
      {Kernel::CrossEntropySum, {logits, tokens, rows}, {sums}, {v, v, 0}, {}},
      {Kernel::CrossEntropyLoss, {sums, rows}, {rows, metrics}, {1}, {}},
      {Kernel::CrossEntropyGrad,
       {logits, tokens, rows},
       {logits},
       {v, v, 0},
       {1.0}},
      {Kernel::SumSquares, {x}, {metrics}, {1}, {}},
      {Kernel::ClipFactor, {}, {metrics}, {}, {1.0}},
      {Kernel::Adamw,
       {x, metrics, scalars},
       {y, z, u},
       {},
       {0.9, 0.95, 1e-8, 0.1}},
      {Kernel::Amax, {half}, {amax}, {}, {}},
      {Kernel::CastFp8, {half, amax}, {scale, codes, turned}, {t, h, 0, 3}, {}},
      {Kernel::LayerNorm, {x, w, w}, {y}, {h}, {1e-5}},
      {Kernel::LayerNormGradInput, {x, x, w}, {y}, {h}, {1e-5}},
      {Kernel::LayerNormGradWeight, {x, x}, {w, bias}, {h, 1}, {1e-5}},
      {Kernel::Gelu, {x}, {y}, {h}, {}},
      {Kernel::GeluGrad, {x, y}, {z}, {h}, {}},
  };
  // Every kernel but the four products.
  EXPECT_EQ(std::size(calls), static_cast<size_t>(kernelCount - 1 - 4));
  for (const Call &call : calls)
    EXPECT_EQ(count(call), 0) << kernelSignature(call.kernel)->name;
}

TEST_P(AllocationTest, NeitherOnBf16Operands) {
  const int64_t t = 512, h = 256, v = 300, s = 128;
  Halves x(t * h, 0x3f80), y = x, w(h, 0x3f80), z = x, u = x;
  Halves logits(t * v), kv(t * 128), dk = kv, dv = kv, weights(v * h);
  Floats gw(v * h), rows(t), sums(2 * t), table(s * 64), lse(t * 4), delta(lse);
  Ints tokens = randomTokens(t, v, 6);
  const Call calls[] = {
      {Kernel::Add, {x, y}, {y}, {}, {}},
      {Kernel::Embedding, {tokens, weights}, {y}, {v, h, 0}, {}},
      {Kernel::EmbeddingGrad, {x, tokens}, {gw}, {v, h, 0, 1}, {}},
      {Kernel::RmsNorm, {x, w}, {y}, {h}, {1e-5}},
      {Kernel::RmsNormGradInput, {x, x, w}, {y}, {h}, {1e-5}},
      {Kernel::Rope, {x, table}, {y}, {4, 64, s, 0}, {}},
      {Kernel::Attention, {x, kv, kv}, {y, lse}, {4, 2, 64, s}, {}},
      {Kernel::AttentionGrad,
       {x, x, kv, kv, y, lse},
       {z, dk, dv, delta},
       {4, 2, 64, s},
       {}},
      {Kernel::Swiglu, {x, y}, {z}, {h}, {}},
      {Kernel::SwigluGrad, {x, y, z}, {z, u}, {h}, {}},
      {Kernel::CrossEntropyMax, {logits}, {rows}, {v, v}, {}},
      {Kernel::CrossEntropySum, {logits, tokens, rows}, {sums}, {v, v, 0}, {}},
      {Kernel::CrossEntropyGrad,
       {logits, tokens, rows},
       {logits},
       {v, v, 0},
       {1.0}},
  };
  for (const Call &call : calls)
    EXPECT_EQ(count(call), 0) << kernelSignature(call.kernel)->name;
}

TEST_P(AllocationTest, WhatOneDnnAllocates) {
  const int64_t t = 256, n = 128, k = 192;
  Floats x = random(t * k, 1), w = random(n * k, 2), y = random(t * n, 3);
  Halves x2(t * k), w2(n * k), y2(t * n);
  Codes x8{DType::F8E4M3, std::vector<uint8_t>(t * k)};
  Codes w8{DType::F8E4M3, std::vector<uint8_t>(n * k)};
  Floats scale(1, 1.0f);
  const Call calls[] = {
      {Kernel::LinearFp8, {x8, scale, w8, scale}, {y2}, {t, n, k, 0}, {}},
      {Kernel::Linear, {x2, w2}, {y2}, {n, k}, {}},
      {Kernel::LinearGradInput, {y2, w2}, {x2}, {n, k}, {}},
      {Kernel::LinearGradWeight, {y2, x2}, {w}, {n, k, 1}, {}},
      {Kernel::Linear, {x, w}, {y}, {n, k}, {}},
      {Kernel::LinearGradInput, {y, w}, {x}, {n, k}, {}},
      {Kernel::LinearGradWeight, {y, x}, {w}, {n, k, 1}, {}},
  };
  for (const Call &call : calls) {
    int64_t got = count(call);
    RecordProperty(std::string(kernelSignature(call.kernel)->name), got);
    std::printf("%s: oneDNN makes %ld allocations a run\n",
                kernelSignature(call.kernel)->name.data(), got);
    EXPECT_LE(got, 8);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, AllocationTest, testing::Values(1, 2));
