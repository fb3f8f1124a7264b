//===- Models.h - the models that the tests account for -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_ACCOUNT_MODELS_H
#define RECKON_TESTS_UNIT_ACCOUNT_MODELS_H

#include "passes/model/account/Accountant.h"

namespace reckon::model {

inline ModelShape llama(int64_t hidden, int64_t ffn, int64_t layers,
                        int64_t heads, int64_t kvHeads) {
  ModelShape m;
  m.architecture = "llama";
  m.vocab = 128256;
  m.hidden = hidden;
  m.ffn = ffn;
  m.layers = layers;
  m.heads = heads;
  m.kvHeads = kvHeads;
  m.headDim = hidden / heads;
  m.sequence = 8192;
  return m;
}

inline ModelShape llama8B() { return llama(4096, 14336, 32, 32, 8); }
inline ModelShape llama70B() { return llama(8192, 28672, 80, 64, 8); }
inline ModelShape llama405B() { return llama(16384, 53248, 126, 128, 8); }

/// The models of Korthikanti et al. 2022, table 3: GPT with four times the
/// width in the feed-forward block, sequences of 2048 tokens.
inline ModelShape gpt(int64_t hidden, int64_t layers, int64_t heads) {
  ModelShape m;
  m.architecture = "gpt2";
  m.vocab = 51200;
  m.hidden = hidden;
  m.ffn = 4 * hidden;
  m.layers = layers;
  m.heads = m.kvHeads = heads;
  m.headDim = hidden / heads;
  m.sequence = 2048;
  m.gated = false;
  m.layerNorm = m.linearBias = true;
  m.tied = true;
  m.learnedPositions = 2048;
  return m;
}

inline ModelShape deepseekV3() {
  ModelShape m;
  m.architecture = "deepseek_v3";
  m.vocab = 129280;
  m.hidden = 7168;
  m.ffn = 18432;
  m.layers = 61;
  m.heads = m.kvHeads = 128;
  m.headDim = 192;
  m.sequence = 4096;
  m.mla = {.qRank = 1536, .kvRank = 512, .nope = 128, .rope = 64, .value = 128};
  m.experts = 256;
  m.topK = 8;
  m.expertFfn = 2048;
  m.sharedExperts = 1;
  m.firstDense = 3;
  return m;
}

inline Job jobOf(const ModelShape &model,
                 Representation representation = Representation::Reckon,
                 const char *profile = "") {
  Job job;
  job.model = model;
  job.device.memGb = 80;
  job.reserveBytes = uint64_t{2} << 30;
  job.limitBytes = uint64_t{78} << 30;
  job.representation = representation;
  job.profile = profile;
  return job;
}

/// The seed's 70B job on 1024 devices: TP8 with SP, PP4, v4, DP32, 16
/// micro-batches of one sequence.
inline Choice seed70B() {
  return {.tp = 8,
          .sequenceParallel = true,
          .pp = 4,
          .v = 4,
          .dp = 32,
          .zero = 1,
          .microBatch = 1,
          .numMicroBatches = 16,
          .schedule = ScheduleKind::Interleaved,
          .layout = std::vector<int64_t>(16, 5)};
}

inline uint64_t statesOf(const StageMemory &memory) {
  return memory.parameters + memory.gradients + memory.optimizer;
}

inline uint64_t bytesOf(const std::vector<MemoryItem> &items,
                        const std::string &name) {
  uint64_t sum = 0;
  for (const MemoryItem &item : items)
    if (item.name == name)
      sum += item.bytes;
  return sum;
}

} // namespace reckon::model

#endif // RECKON_TESTS_UNIT_ACCOUNT_MODELS_H
