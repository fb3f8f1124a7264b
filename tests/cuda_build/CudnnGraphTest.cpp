//===- CudnnGraphTest.cpp - what cuDNN says of our graphs, without a GPU --===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// cuDNN chooses engines for a chip that it is told about, so that a graph which
// it would refuse on a cluster is refused here. Only compiling and running the
// engine need the chip.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/CudnnGraph.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

using namespace reckon;
using namespace reckon::cuda;

namespace {

struct Chip {
  const char *name;
  int capability;
  int multiprocessors;
  int sharedBytes; // of a block, at most
};
constexpr Chip chips[] = {{"NVIDIA A100-SXM4-80GB", 80, 108, 166912},
                          {"NVIDIA H100 80GB HBM3", 90, 132, 232448},
                          {"NVIDIA B200", 100, 148, 232448},
                          {"NVIDIA B300", 103, 148, 232448}};

/// The chip that the calls below speak of.
Chip present = chips[1];

/// As cuDNN 9.19 writes a device's properties.
std::string properties(const Chip &chip) {
  auto number = [](long long value) { return std::to_string(value); };
  return "{\"maxGridSize\":[2147483647,65535,65535],"
         "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
         "\"multiProcessorCount\":" +
         number(chip.multiprocessors) +
         ",\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
         "\"maxSharedMemoryPerBlockOptin\":" +
         number(chip.sharedBytes) +
         ",\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
         "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
         "\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
         "\"supportCoopLaunch\":1,\"totalGlobalMem\":85899345920,"
         "\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
         "\"l2CacheSize\":52428800,\"cudaDeviceId\":0,\"deviceVer\":" +
         number(chip.capability * 10) +
         ",\"driverVer\":13000,\"deviceName\":\"" + chip.name + "\"}";
}

Status chooseFor(const Chip &chip, CudnnGraph::Direction direction,
                 const AttentionShape &shape, const AttentionSlice &slice) {
  present = chip;
  CudnnGraph graph(direction, shape, slice);
  return graph.choose(nullptr, properties(chip), chip.capability);
}

class EveryChip : public testing::TestWithParam<Chip> {};

TEST_P(EveryChip, HasEnginesForBothDirections) {
  // batch, hq, hkv, d, s: Llama 8B, its share of eight ranks, odd ones.
  const AttentionShape shapes[] = {{2, 32, 8, 128, 8192, device::DType::BF16},
                                   {1, 4, 1, 128, 4096, device::DType::BF16},
                                   {1, 3, 1, 64, 17, device::DType::BF16},
                                   {3, 4, 2, 80, 130, device::DType::BF16},
                                   {1, 2, 2, 8, 2, device::DType::BF16}};
  for (const AttentionShape &shape : shapes)
    for (auto direction :
         {CudnnGraph::Direction::Forward, CudnnGraph::Direction::Backward})
      for (const AttentionSlice &slice :
           {AttentionSlice{shape.batch, shape.hkv}, AttentionSlice{1, 1}}) {
        Status chosen = chooseFor(GetParam(), direction, shape, slice);
        EXPECT_TRUE(chosen.ok())
            << GetParam().name << ", " << shape.s
            << " tokens: " << (chosen.ok() ? "" : chosen.error().message);
      }
}

INSTANTIATE_TEST_SUITE_P(CudnnGraph, EveryChip, testing::ValuesIn(chips));

TEST(CudnnGraph, RefusesWhatNoEngineDoes) {
  AttentionShape odd{1, 4, 2, 20, 128, device::DType::BF16};
  Status chosen =
      chooseFor(chips[1], CudnnGraph::Direction::Forward, odd, {1, 2});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().code, ExitCode::Incompatible);
  EXPECT_NE(chosen.error().message.find("multiple of 8"), std::string::npos)
      << chosen.error().message;
}

} // namespace

// The frontend asks the CUDA runtime for the capability in places where it
// could use what it was told. These come before the library's own.
extern "C" cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties,
                                               int) {
  std::memset(properties, 0, sizeof *properties);
  properties->major = present.capability / 10;
  properties->minor = present.capability % 10;
  properties->multiProcessorCount = present.multiprocessors;
  return cudaSuccess;
}
