//===- AllocationTest.cpp - a step allocates nothing ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/exec/CountingAllocator.h"
#include "tests/unit/exec/TinyPlan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <unistd.h>

using namespace reckon;
using namespace reckon::test;

static int64_t residentBytes() {
  std::FILE *file = std::fopen("/proc/self/statm", "r");
  long long size = 0;
  long long resident = 0;
  int read = std::fscanf(file, "%lld %lld", &size, &resident);
  std::fclose(file);
  return read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

#if defined(__has_feature)
#define RECKON_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define RECKON_ADDRESS_SANITIZER 0
#endif

TEST(Allocation, TheCounterCounts) {
  countAllocations(true);
  auto *value = new std::map<int, int>{{1, 2}};
  Allocations counted = countAllocations(false);
  delete value;
  EXPECT_EQ(counted.own, 2);
  EXPECT_EQ(counted.oneDnn, 0);
}

/// Our code allocates nothing inside a step. oneDNN 2.6 allocates a little in
/// every execution of a matmul primitive and frees it before it returns.
TEST(Allocation, AStepAllocatesNothing) {
  TinyOptions options{.dp = 2, .pp = 2, .microBatches = 3, .zero1 = true};
  TemporaryFolder folder;
  std::atomic<int64_t> oneDnn = 0;
  trainTiny(
      options, 5, folder, [](int, exec::TrainOptions &o) { o.trace = true; },
      [&](int rank, exec::Trainer &trainer) {
        // The first step sizes the queues.
        ASSERT_TRUE(trainer.step(1).ok());
        for (int step = 2; step <= 5; ++step) {
          countAllocations(true);
          Status status = trainer.step(step);
          Allocations counted = countAllocations(false);
          EXPECT_EQ(counted.own, 0) << "rank " << rank << ", step " << step;
          ASSERT_TRUE(status.ok()) << status.error().message;
          oneDnn += counted.oneDnn;
        }
      });
  std::printf("oneDNN allocated %lld times in 4 steps of 2 ranks with 9 "
              "matmuls each\n",
              static_cast<long long>(oneDnn));
  RecordProperty("onednn_allocations", std::to_string(oneDnn));
}

TEST(Allocation, ResidentMemoryIsFlatOver200Steps) {
#if defined(__SANITIZE_ADDRESS__) || RECKON_ADDRESS_SANITIZER
  GTEST_SKIP() << "AddressSanitizer keeps freed memory for a while";
#endif
  TinyOptions options{.dp = 2, .microBatches = 2};
  TemporaryFolder folder;
  trainTiny(options, 200, folder, {}, [](int rank, exec::Trainer &trainer) {
    int64_t early = 0;
    for (int step = 1; step <= 200; ++step) {
      ASSERT_TRUE(trainer.step(step).ok());
      if (step == 20)
        early = residentBytes();
    }
    if (rank == 0) {
      EXPECT_GT(early, 1 << 20);
      // A leak of one small object a step and rank would be 20 pages.
      EXPECT_LE(residentBytes() - early, 256 << 10);
    }
  });
}
