//===- DefaultsTest.cpp - what an absent key means ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Keys.h"
#include "tests/unit/spec/SpecTesting.h"

namespace reckon::testing_spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Defaults, Model) {
  Spec spec = loadGood(edited(goodSpec, "  num_key_value_heads: 2\n", ""));
  const ModelSpec &model = spec.model;
  EXPECT_EQ(*model.name, "model");
  EXPECT_EQ(*model.numKeyValueHeads, 4); // as many as query heads
  EXPECT_EQ(*model.headDim, 16);         // 64 / 4
  EXPECT_FALSE(*model.tieWordEmbeddings);
  EXPECT_EQ(*model.ropeTheta, 10000.0);
  EXPECT_EQ(*model.ropeScaling.type, RopeType::None);
  EXPECT_EQ(*model.rmsNormEps, 1e-6);
  EXPECT_EQ(*model.initializerRange, 0.02);
  // A default has the place of the section, so every value has one.
  EXPECT_FALSE(model.ropeTheta.given);
  EXPECT_EQ(model.ropeTheta.loc.str(), "spec.yaml:1:1");
  EXPECT_TRUE(model.hiddenSize.given);
  EXPECT_EQ(model.hiddenSize.loc.str(), "spec.yaml:4:3");
}

TEST(Defaults, Cluster) {
  Spec spec = loadGood(goodSpec);
  const ClusterSpec &cluster = spec.cluster;
  EXPECT_EQ(cluster.worldSize(), 8);
  EXPECT_EQ(*cluster.interNodeBandwidthGbps, 400); // 50 GB/s
  EXPECT_EQ(*cluster.memoryReserveGib, 2);
  EXPECT_EQ(*cluster.gpuMtbfHours, 50000);
  EXPECT_EQ(*cluster.pricePerGpuHour, 2.5);
  EXPECT_EQ(*spec.constraints.memoryLimitGib, 78); // 80 - 2
  EXPECT_EQ(spec.constraints.memoryLimitBytes(), int64_t{78} << 30);
  EXPECT_FALSE(spec.constraints.memoryLimitGib.given);
}

TEST(Defaults, CpuReservesNothingAndCostsNothing) {
  Spec spec = loadGood(edited(goodSpec, "h100-sxm", "cpu"));
  EXPECT_EQ(*spec.cluster.memoryReserveGib, 0);
  EXPECT_EQ(*spec.cluster.pricePerGpuHour, 0);
  EXPECT_EQ(*spec.constraints.memoryLimitGib, 8);
}

TEST(Defaults, Training) {
  Spec spec = loadGood(goodSpec);
  const TrainingSpec &training = spec.training;
  EXPECT_EQ(*training.trainSteps, 1000);
  EXPECT_EQ(*training.precision, Precision::Bf16);
  EXPECT_EQ(*training.gradReduceDtype, GradReduceDtype::Fp32);
  EXPECT_EQ(*training.optimizer.name, "adamw");
  EXPECT_EQ(*training.optimizer.lr, 3e-4);
  EXPECT_EQ(*training.optimizer.beta1, 0.9);
  EXPECT_EQ(*training.optimizer.beta2, 0.95);
  EXPECT_EQ(*training.optimizer.eps, 1e-8);
  EXPECT_EQ(*training.optimizer.weightDecay, 0.1);
  EXPECT_EQ(*training.optimizer.clipGrad, 1.0);
  EXPECT_EQ(*training.lrSchedule.type, LrScheduleType::Constant);
  EXPECT_EQ(*training.lrSchedule.warmupSteps, 0);
  EXPECT_EQ(*training.seed, 1234);
  EXPECT_FALSE(training.data.given);
}

TEST(Defaults, ParallelismIsAutoOverTheWholeDomain) {
  Spec spec = loadGood(goodSpec);
  const ParallelismSpec &p = spec.parallelism;
  for (const auto *degree :
       {&p.tensorParallel, &p.contextParallel, &p.pipelineParallel,
        &p.virtualPipeline, &p.dataParallel, &p.microBatchSize}) {
    EXPECT_TRUE(degree->isAuto);
    EXPECT_THAT(degree->values, IsEmpty());
    EXPECT_TRUE(degree->allows(7));
  }
  // A dense model has no experts to spread.
  for (const auto *one : {&p.expertParallel, &p.expertTensorParallel}) {
    EXPECT_TRUE(one->isAuto);
    EXPECT_THAT(one->values, ElementsAre(1));
  }
  EXPECT_THAT(p.zeroStage.values, ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(p.zeroStage.allows(4));
  using S = PipelineSchedule;
  EXPECT_THAT(p.pipelineSchedule.values,
              ElementsAre(S::OneFOneB, S::Interleaved, S::ZbH1, S::ZbH2, S::ZbV,
                          S::DualPipeV, S::GPipe, S::Bfs));
  EXPECT_FALSE(p.pipelineSchedule.allows(S::Synthesized));
  EXPECT_THAT(
      p.recompute.values,
      ElementsAre(Recompute::None, Recompute::Selective, Recompute::Full));
  EXPECT_FALSE(p.recomputeLayers);
  EXPECT_THAT(p.contextParallelMethod.values,
              ElementsAre(ContextMethod::Ring, ContextMethod::AllGather,
                          ContextMethod::AllToAll));
  EXPECT_THAT(p.sequenceParallel.values, ElementsAre(true, false));
  EXPECT_THAT(*p.pipelineLayout, IsEmpty());
  EXPECT_FALSE(p.moeCapacityFactor.given);
  EXPECT_EQ(*p.representation, Representation::Reckon);
  EXPECT_EQ(*spec.search.space, SearchSpace::All);
}

TEST(Defaults, OnTheCpuWhatCanBeCompiledIsLeftOpen) {
  Spec spec = loadGood(edited(goodSpec, "h100-sxm", "cpu"));
  const ParallelismSpec &p = spec.parallelism;
  EXPECT_EQ(*spec.search.space, SearchSpace::Compilable);
  for (const auto *one : {&p.contextParallel, &p.virtualPipeline,
                          &p.expertParallel, &p.expertTensorParallel}) {
    EXPECT_TRUE(one->isAuto);
    EXPECT_THAT(one->values, ElementsAre(1));
  }
  EXPECT_THAT(p.zeroStage.values, ElementsAre(0, 1));
  EXPECT_THAT(p.pipelineSchedule.values,
              ElementsAre(PipelineSchedule::OneFOneB, PipelineSchedule::GPipe));
  EXPECT_THAT(p.recompute.values,
              ElementsAre(Recompute::None, Recompute::Full));
  // What is fixed is a wish, and then everything may be considered.
  spec = loadGood(edited(goodSpec, "h100-sxm", "cpu"),
                  {"parallelism.zero_stage=3"});
  EXPECT_EQ(*spec.search.space, SearchSpace::All);
  EXPECT_THAT(spec.parallelism.recompute.values, ::testing::SizeIs(3));
  spec = loadGood(edited(goodSpec, "h100-sxm", "cpu"), {"search.space=all"});
  EXPECT_EQ(*spec.search.space, SearchSpace::All);
}

TEST(Defaults, ConstraintsAndSearch) {
  Spec spec = loadGood(goodSpec);
  EXPECT_EQ(*spec.constraints.maxBubble, 0.10);
  EXPECT_FALSE(spec.constraints.hostMemoryLimitGib->has_value());
  EXPECT_EQ(*spec.search.objective, Objective::StepTime);
  EXPECT_EQ(*spec.search.timeLimitS, 60);
  EXPECT_EQ(*spec.search.top, 5);
  EXPECT_EQ(spec.warnings.size(), 0u);
}

TEST(Values, TheContractsExampleIsRead) {
  Spec spec = loadGood(R"(
model:
  name: llama3-70b
  architecture: llama
  vocab_size: 128256
  hidden_size: 8192
  intermediate_size: 28672
  num_hidden_layers: 80
  num_attention_heads: 64
  num_key_value_heads: 8
  head_dim: 128
  tie_word_embeddings: false
  rope_theta: 500000.0
  rope_scaling: {rope_type: llama3, factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_max_position_embeddings: 8192}
  rms_norm_eps: 1.0e-5
  initializer_range: 0.02
cluster:
  accelerator: h100-sxm
  nodes: 128
  gpus_per_node: 8
  inter_node_bandwidth_gbps: 400
  memory_reserve_gib: 2.0
  host_memory_gib: 2048
  gpu_mtbf_hours: 50000
  price_per_gpu_hour: 2.5
  efficiency_profile: reckon
  bootstrap_interface: eth0
  slurm: {partition: train, account: me, qos: high, time: "01:00:00", setup: module load x, srun_args: [--mpi=none], extra: [--exclusive]}
training:
  sequence_length: 8192
  global_batch_size: 512
  train_steps: 1000
  precision: bf16
  grad_reduce_dtype: fp32
  optimizer: {name: adamw, lr: 3.0e-4, betas: [0.9, 0.95], eps: 1.0e-8, weight_decay: 0.1, clip_grad: 1.0}
  lr_schedule: {type: cosine, warmup_steps: 100, min_lr: 3.0e-5}
  seed: 1234
  data: {format: text, path: corpus.txt, tokenizer: byte}
  checkpoint: {dir: <run-dir>/checkpoints, interval: auto, keep: 3, async: true}
parallelism:
  tensor_parallel: auto
  sequence_parallel: auto
  context_parallel: auto
  context_parallel_method: auto
  pipeline_parallel: auto
  virtual_pipeline: auto
  pipeline_schedule: auto
  pipeline_layout: auto
  expert_parallel: auto
  expert_tensor_parallel: auto
  data_parallel: auto
  zero_stage: auto
  micro_batch_size: auto
  recompute: auto
  moe_capacity_factor: auto
  representation: reckon
constraints:
  memory_limit_gib: auto
  max_bubble: 0.10
  host_memory_limit_gib: auto
search:
  objective: step_time
  time_limit_s: 60
  top: 5
)");
  EXPECT_EQ(*spec.model.ropeScaling.type, RopeType::Llama3);
  EXPECT_EQ(*spec.model.ropeScaling.factor, 8.0);
  EXPECT_EQ(*spec.model.ropeScaling.originalMaxPositionEmbeddings, 8192);
  EXPECT_EQ(*spec.training.lrSchedule.type, LrScheduleType::Cosine);
  EXPECT_EQ(*spec.training.lrSchedule.minLr, 3e-5);
  EXPECT_EQ(*spec.cluster.slurm.time, "01:00:00");
  EXPECT_THAT(*spec.cluster.slurm.extra, ElementsAre("--exclusive"));
  EXPECT_EQ(*spec.cluster.bootstrapInterface, "eth0");
  // Only the checkpoints, which this version does not write.
  EXPECT_EQ(spec.warnings.size(), 1u) << joinDiagnostics(spec.warnings);
}

TEST(Values, ListsKeepTheirOrderAndDropRepeats) {
  Spec spec = loadGood(goodAnd(
      "parallelism: {micro_batch_size: [4, 1, 4, 2], zero_stage: [1, 0]}\n"));
  EXPECT_THAT(spec.parallelism.microBatchSize.values, ElementsAre(4, 1, 2));
  EXPECT_THAT(spec.parallelism.zeroStage.values, ElementsAre(1, 0));
  EXPECT_FALSE(spec.parallelism.zeroStage.fixed());
}

TEST(Values, WsdDecaysOverATenthUnlessTold) {
  Spec spec = loadGood(goodSpec, {"training.lr_schedule.type=wsd"});
  EXPECT_EQ(*spec.training.lrSchedule.decaySteps, 100); // 1000 / 10
  spec = loadGood(goodSpec, {"training.lr_schedule.type=wsd",
                             "training.lr_schedule.decay_steps=7"});
  EXPECT_EQ(*spec.training.lrSchedule.decaySteps, 7);
}

TEST(KeyTable, EveryRowIsSound) {
  for (const KeyRow &row : keyTable()) {
    SCOPED_TRACE(std::string(row.path));
    EXPECT_FALSE(row.doc.empty());
    EXPECT_EQ(findKey(row.path), &row) << "stands twice";
    if (!row.parent().empty()) {
      EXPECT_TRUE(findKey(row.parent())) << "without a section";
    }
    for (const std::string &word : splitWords(row.compiles))
      if (!row.words.empty()) {
        EXPECT_THAT(splitWords(row.words), ::testing::Contains(word));
      }
    if (row.kind == KeyKind::Word || row.kind == KeyKind::Words) {
      EXPECT_FALSE(row.words.empty());
    }
    if (row.kind == KeyKind::Special) {
      EXPECT_FALSE(row.type.empty());
    }
  }
}

} // namespace
} // namespace reckon::testing_spec
