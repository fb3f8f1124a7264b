//===- StatesTest.cpp - parameters, gradients and optimizer ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/States.h"

#include "tests/unit/account/Models.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

model::Choice single(const ModelShape &m) { return {.layout = {m.layers}}; }

TEST(States, PublishedParameterCounts) {
  EXPECT_EQ(llama8B().parameters(), 8030261248);
  EXPECT_EQ(llama70B().parameters(), 70553706496);
  EXPECT_EQ(llama405B().parameters(), 405853388800);
  // DeepSeek-V3 without its prediction module: 671.0e9, of which a token
  // visits 37.6e9 (8 of 256 experts).
  EXPECT_NEAR(deepseekV3().parameters(), 671.0e9, 0.05e9);
  EXPECT_NEAR(deepseekV3().activeParameters(), 37.6e9, 0.05e9);
}

// 2 bf16 weights + 2 bf16 gradients + 12 optimizer = 16 bytes a parameter:
// 70.55e9 x 16 = 1.129e12 and 405.85e9 x 16 = 6.494e12. A checkpoint holds
// weights and optimizer, 14 bytes: 405.85e9 x 14 = 5.682e12.
TEST(States, SeedTerabytes) {
  for (auto [model, whole, checkpoint] :
       {std::tuple(llama70B(), 1.13e12, 0.99e12),
        std::tuple(llama405B(), 6.49e12, 5.68e12)}) {
    Job job = jobOf(model, Representation::Megatron);
    job.gradReduce = GradReduceDtype::Bf16;
    StageMemory memory = Accountant(job).memory(single(model), 0);
    uint64_t n = model.parameters();
    EXPECT_EQ(statesOf(memory), 16 * n);
    EXPECT_NEAR(statesOf(memory), whole, 0.005e12);
    EXPECT_EQ(memory.parameters + memory.optimizer, 14 * n);
    EXPECT_NEAR(memory.parameters + memory.optimizer, checkpoint, 0.005e12);
  }
}

struct Figure {
  Representation representation;
  const char *profile;
  int64_t zero;
  double bytes; ///< of a parameter on d = 64 ranks
};

// d = 64, so 12/64 = 0.1875, 16/64 = 0.25.
TEST(States, BytesAParameter) {
  ModelShape model = llama8B();
  for (const Figure &f : {
           Figure{Representation::Megatron, "", 0, 18},
           {Representation::Megatron, "", 1, 6 + 0.1875},
           {Representation::DeepSpeed, "", 1, 4 + 0.1875},
           {Representation::DeepSpeed, "", 2, 2 + 14 / 64.0},
           {Representation::DeepSpeed, "", 3, 16 / 64.0},
           {Representation::TorchTitan, "", 3, 16 / 64.0},
           {Representation::TorchTitan, "", 2, 16 / 64.0},
           {Representation::TorchTitan, "", 0, 16},
           {Representation::Reckon, "", 0, 18},
           {Representation::Reckon, "", 1, 6 + 0.1875},
           {Representation::Reckon, "", 2, 2 + 0.25},
           {Representation::Reckon, "", 3, 18 / 64.0},
           {Representation::Megatron, "nanotron", 1, 8 + 0.1875},
           {Representation::Megatron, "Megatron-DeepSpeed", 1, 4 + 0.25},
           {Representation::Megatron, "Aleph Alpha in-house (3D)", 1,
            4 + 0.1875},
           {Representation::Megatron, "NeMo 24.07", 1, 4 + 0.1875},
       }) {
    Job job = jobOf(model, f.representation, f.profile);
    model::Choice choice = single(model);
    choice.dp = 32;
    choice.cp = 2; // the states are shared over context parallelism too
    choice.contextMethod = ContextMethod::Ring;
    choice.zero = f.zero;
    StageMemory memory = Accountant(job).memory(choice, 0);
    double n = static_cast<double>(model.parameters());
    EXPECT_NEAR(statesOf(memory) / n, f.bytes, 0.002)
        << toString(f.representation) << " " << f.profile << " " << f.zero;
  }
}

// One layer of two tensors of 100 and 64 elements under d = 3: Megatron starts
// every parameter at a multiple of 64 and ends the bucket at a multiple of
// lcm(3, 128) = 384. Counted from the model's end.
TEST(States, MegatronPadding) {
  ModelShape m = llama(64, 96, 1, 4, 4);
  m.vocab = 100;
  Job job = jobOf(m, Representation::Megatron);
  model::Choice choice = single(m);
  choice.dp = 3;
  choice.zero = 1;
  Accountant accountant(job);
  StageMemory memory = accountant.memory(choice, 0);
  // Vocabulary of 100 rows padded to 128. Elements, all multiples of 64 but
  // none otherwise padded: embedding 8192, norms 3 x 64, qkv 192 x 64 = 12288,
  // o 4096, gate and up 192 x 64 = 12288, down 64 x 96 = 6144, head 8192.
  // Sum 51392; to a multiple of 384: 51456.
  EXPECT_EQ(memory.parameters, 2u * 51456);
  EXPECT_EQ(memory.gradients, 4u * 51456);
  EXPECT_EQ(memory.optimizer, 12u * 51456 / 3);
}

TEST(States, ContextParallelRanksShareTheOptimizer) {
  Job job = jobOf(llama70B(), Representation::Megatron);
  Accountant accountant(job);
  model::Choice a = single(job.model), b = single(job.model);
  a.zero = b.zero = 1;
  a.dp = 16;
  b.dp = 4, b.cp = 4, b.contextMethod = ContextMethod::Ring;
  EXPECT_EQ(accountant.memory(a, 0).optimizer,
            accountant.memory(b, 0).optimizer);
}

// 256 experts over EP 64, dense states over d = 128, experts over
// 1 x 1 x 128 / 64 = 2 ranks.
TEST(States, ExpertsHaveTheirOwnGroup) {
  ModelShape m = deepseekV3();
  m.layers = 2;
  m.firstDense = 0;
  Job job = jobOf(m, Representation::Megatron);
  model::Choice choice = single(m);
  choice.dp = 128;
  choice.ep = 64;
  choice.zero = 1;
  Accountant accountant(job);
  StageMemory memory = accountant.memory(choice, 0);
  LayerParameters layer = m.layerParameters(true);
  double experts = 2.0 * layer.experts / 64;
  double dense = static_cast<double>(m.parameters()) - 2.0 * layer.experts;
  EXPECT_NEAR(memory.parameters, 2 * (experts + dense), 1e5);
  EXPECT_NEAR(memory.optimizer, 12 * (experts / 2 + dense / 128), 1e5);
  EXPECT_EQ(choice.edp(), 2);
}

TEST(States, TiedHeadIsStoredTwiceInAPipeline) {
  ModelShape m = llama8B();
  m.tied = true;
  Job job = jobOf(m, Representation::Megatron);
  Accountant accountant(job);
  uint64_t table = 2 * m.vocab * m.hidden;
  EXPECT_EQ(accountant.memory(single(m), 0).parameters, 2u * m.parameters());
  model::Choice choice{.pp = 2, .numMicroBatches = 4, .layout = {16, 16}};
  uint64_t both = accountant.memory(choice, 0).parameters +
                  accountant.memory(choice, 1).parameters;
  EXPECT_EQ(both, 2 * m.parameters() + table);
}

TEST(States, PredictionModuleIsOnTheLastRank) {
  ModelShape with = deepseekV3(), without = with;
  with.mtpLayers = 1;
  model::Choice choice{.pp = 2, .numMicroBatches = 4, .layout = {31, 30}};
  Accountant a(jobOf(with, Representation::Megatron)),
      b(jobOf(without, Representation::Megatron));
  EXPECT_EQ(a.memory(choice, 0).parameters, b.memory(choice, 0).parameters);
  // The module and the embedding that it reads.
  EXPECT_EQ(a.memory(choice, 1).parameters - b.memory(choice, 1).parameters,
            2u * (with.mtpParameters() + with.vocab * with.hidden));
}

// A layer of h = 4, whose norm of 4 elements is below DeepSpeed's threshold of
// 100 000 and stays whole on each of 8 ranks, and FSDP2 pads its 4 rows to 8.
TEST(States, SmallParametersUnderZero3) {
  ModelShape m = llama(4, 1024, 1, 1, 1);
  m.vocab = 50000;
  for (Representation representation :
       {Representation::DeepSpeed, Representation::TorchTitan}) {
    Job job = jobOf(m, representation);
    model::Choice choice = single(m);
    choice.dp = 8;
    choice.zero = 3;
    StageMemory memory = Accountant(job).memory(choice, 0);
    // Embedding and head 200 000 each; q, k, v, o 16, gate, up, down 4096,
    // three norms of 4 elements.
    int64_t large = 2 * 200000, q = 4 * 16, mlp = 3 * 4096, norms = 3 * 4;
    if (representation == Representation::DeepSpeed)
      EXPECT_EQ(memory.parameters, 2u * (large / 8 + q + mlp + norms));
    else // rows: 50000 and 1024 divide, 4 rows become 8
      EXPECT_EQ(memory.parameters,
                4u * (large + 2 * q + 2 * 4096 + 2 * 4096 + 2 * norms) / 8);
  }
}

} // namespace
