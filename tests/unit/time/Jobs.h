//===- Jobs.h - jobs that the tests of the time model price ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_TIME_JOBS_H
#define RECKON_TESTS_UNIT_TIME_JOBS_H

#include "passes/model/Job.h"

namespace reckon::model::test {

inline Job machine(const char *accelerator, int64_t devices) {
  Job job;
  job.device = *findAccelerator(accelerator);
  job.gpusPerNode = std::min<int64_t>(8, devices);
  job.nodes = devices / job.gpusPerNode;
  job.intraBandwidth = job.device.intraNodeBwGbs * 1e9;
  job.interBandwidth = job.device.interNodeBwGbsPerGpu * 1e9;
  job.memoryBandwidth = job.device.memBwGbs * 1e9;
  job.pricePerGpuHour = 2.5;
  return job;
}

/// Llama 3 70B: 70.55e9 parameters with both embeddings.
inline Job llama70b(int64_t devices, int64_t batch) {
  Job job = machine("h100-sxm", devices);
  job.model = {.name = "70B",
               .architecture = "llama",
               .vocab = 128256,
               .hidden = 8192,
               .layers = 80,
               .ffn = 28672,
               .heads = 64,
               .kvHeads = 8,
               .headDim = 128,
               .sequence = 8192};
  job.globalBatch = batch;
  return job;
}

/// Of DeepSeek-V3's proportions: latent attention, three dense layers, 256
/// routed experts and a shared one.
inline Job deepseek(int64_t devices, int64_t batch) {
  Job job = machine("h100-sxm", devices);
  job.model = {.name = "671B",
               .architecture = "deepseek_v3",
               .vocab = 129280,
               .hidden = 7168,
               .layers = 61,
               .ffn = 18432,
               .heads = 128,
               .kvHeads = 128,
               .headDim = 56,
               .sequence = 4096};
  job.model.mla = {1536, 512, 128, 64, 128};
  job.model.experts = 256;
  job.model.topK = 8;
  job.model.expertFfn = 2048;
  job.model.sharedExperts = 1;
  job.model.firstDense = 3;
  job.globalBatch = batch;
  return job;
}

/// Layers spread as evenly as they go.
inline std::vector<int64_t> even(int64_t layers, int64_t stages) {
  std::vector<int64_t> layout(static_cast<size_t>(stages), layers / stages);
  for (int64_t k = 0; k < layers % stages; ++k)
    ++layout[static_cast<size_t>(k)];
  return layout;
}

/// TP8 PP4 v4 on all devices.
inline Choice choice70b(const Job &job) {
  Choice choice;
  choice.tp = 8;
  choice.sequenceParallel = true;
  choice.pp = 4;
  choice.v = 4;
  choice.schedule = ScheduleKind::Interleaved;
  choice.dp = job.devices() / 32;
  choice.zero = 1;
  choice.numMicroBatches = job.globalBatch / choice.dp;
  choice.layout = even(job.model.layers, 16);
  return choice;
}

} // namespace reckon::model::test

#endif // RECKON_TESTS_UNIT_TIME_JOBS_H
