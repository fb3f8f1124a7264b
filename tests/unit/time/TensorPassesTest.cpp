//===- TensorPassesTest.cpp - collectives of tensor parallelism -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/TensorPasses.h"

#include "passes/model/LayerMirror.h"
#include "passes/model/time/TimeModel.h"
#include "tests/unit/time/Jobs.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::model::test;

namespace {

/// Collectives in reckon's own fragments, by LayerMirror, whose sizes every
/// compile checks: what there is with two tensor ranks beside what there is
/// with one.
struct Counted {
  Counted(bool sequenceParallel, Recompute recompute, int64_t layers,
          bool first, bool last) {
    StageShape shape{.layers = layers,
                     .first = first,
                     .last = last,
                     .tp = 2,
                     .sequenceParallel = sequenceParallel,
                     .microBatch = 1,
                     .recompute = recompute};
    StageShape single = shape;
    single.tp = 1;
    single.sequenceParallel = false;
    ModelDims dims{.vocab = 512,
                   .hidden = 64,
                   .ffn = 96,
                   .layers = layers,
                   .heads = 4,
                   .kvHeads = 4,
                   .headDim = 16,
                   .sequence = 64};
    LayerMirror two(dims, shape), one(dims, single);
    // An all-reduce is two passes.
    int64_t passes = sequenceParallel ? 1 : 2;
    forward = passes * (two.forward().ops() - one.forward().ops());
    backward = passes * (two.backward().ops() - one.backward().ops());
  }
  int64_t forward, backward;
};

TEST(TensorPasses, AreThoseOfReckonsFragments) {
  Job job = llama70b(64, 64);
  for (bool split : {false, true})
    for (Recompute recompute : {Recompute::None, Recompute::Full}) {
      Counted none(split, recompute, 0, false, false),
          three(split, recompute, 3, false, false);
      TensorPasses layer = layerPasses(job, split, 4, false);
      EXPECT_EQ(three.forward - none.forward, 3 * layer.forward);
      EXPECT_EQ(three.backward - none.backward,
                3 * layer.inBackward(recompute));
      TensorPasses embedding = embeddingPasses(job, split);
      Counted first(split, recompute, 3, true, false);
      EXPECT_EQ(first.forward - three.forward, embedding.forward);
      EXPECT_EQ(first.backward - three.backward,
                embedding.inBackward(recompute));
      // The loss is part of the backward's fragment; beside hidden states it
      // reduces the rows' maxima and sums, which are too small to count.
      TensorPasses head = headPasses(job, split);
      Counted last(split, recompute, 3, false, true);
      int64_t rows = 2 * (split ? 1 : 2);
      EXPECT_EQ(last.forward - three.forward, 0);
      EXPECT_EQ(last.backward - three.backward - rows,
                head.forward + head.inBackward(recompute));
    }
}

// Under sequence parallelism: forward gather, scatter, gather, scatter;
// backward the same mirrored, and the norms' outputs gathered once more. Full
// recomputation gathers them itself and leaves the last scatter out.
TEST(TensorPasses, OfALayer) {
  Job ours = llama70b(64, 64), theirs = ours;
  theirs.representation = Representation::Megatron;
  auto backward = [](const Job &job, bool split, Recompute recompute) {
    return layerPasses(job, split, 4, false).inBackward(recompute);
  };
  EXPECT_EQ(backward(ours, true, Recompute::None), 6);
  EXPECT_EQ(backward(ours, true, Recompute::Full), 7);
  EXPECT_EQ(backward(ours, false, Recompute::None), 4);
  EXPECT_EQ(backward(ours, false, Recompute::Full), 6);
  for (bool split : {false, true}) {
    EXPECT_EQ(backward(theirs, split, Recompute::None), 4);
    EXPECT_EQ(backward(theirs, split, Recompute::Full), 8);
  }
}

double tensorBytes(const Job &job, const model::Choice &choice) {
  double bytes = 0;
  for (const CommunicationTime &line : TimeModel(job).step(choice).communication)
    if (line.dimension == std::string("tensor"))
      bytes += line.bytesPerStep;
  return bytes;
}

// One stage, one micro-batch: 80 layers of 4 + 6 passes, 2 for the embedding,
// 3 for the head, each 2 x 8192 x 8192 B times 7/8. Recomputing 20 layers adds
// a pass each.
TEST(TensorPasses, BytesOfAStep) {
  Job job = llama70b(8, 1);
  model::Choice c{
      .tp = 8, .sequenceParallel = true, .numMicroBatches = 1, .layout = {80}};
  double pass = 2.0 * 8192 * 8192 * 7 / 8;
  EXPECT_DOUBLE_EQ(tensorBytes(job, c), pass * (80 * 10 + 2 + 3));
  c.recompute = Recompute::Full;
  c.recomputeLayers = {20};
  EXPECT_DOUBLE_EQ(tensorBytes(job, c), pass * (80 * 10 + 20 + 2 + 3));
  c.recomputeLayers = {};
  EXPECT_DOUBLE_EQ(tensorBytes(job, c), pass * (80 * 11 + 2 + 3));
}

// Sixteen ranks and eight heads of keys: reckon copies them, so that each rank
// multiplies more; Megatron parts them and gathers queries, keys and values of
// 8192 + 2 x 1024 columns, 1.25 hidden states, forward and backward.
TEST(TensorPasses, KeyHeadsOnMoreRanks) {
  Job job = llama70b(16, 1);
  job.representation = Representation::Megatron;
  model::Choice c{
      .tp = 16, .sequenceParallel = true, .numMicroBatches = 1, .layout = {80}};
  double pass = 2.0 * 8192 * 8192 * 15 / 16;
  EXPECT_DOUBLE_EQ(tensorBytes(job, c), pass * (80 * (8 + 2.5) + 4));
  Job more = job;
  more.model.kvHeads = 16;
  EXPECT_DOUBLE_EQ(tensorBytes(more, c), pass * (80 * 8 + 4));
  EXPECT_GT(TimeModel(job).units(c).dense.tensorForward.exposed,
            TimeModel(more).units(c).dense.tensorForward.exposed);
  // As many rows of keys on a rank whether they are copies or its own.
  job.representation = more.representation = Representation::Reckon;
  EXPECT_EQ(TimeModel(job).units(c).dense.forward.kernel,
            TimeModel(more).units(c).dense.forward.kernel);
  EXPECT_EQ(localParameters(job, job.model.layerParameters(false), 16),
            localParameters(more, more.model.layerParameters(false), 16));
  // Copies add up their gradients once a step.
  EXPECT_GT(TimeModel(job).quickStep(c), TimeModel(more).quickStep(c));
}

} // namespace
