//===- StageModelTest.cpp - states, stash and workspace to the byte
//----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/StageModel.h"

#include "passes/model/FragmentMirror.h"
#include "passes/model/ParameterTable.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

const ModelDims k70B{.vocab = 128256,
                     .hidden = 8192,
                     .ffn = 28672,
                     .layers = 80,
                     .heads = 64,
                     .kvHeads = 8,
                     .headDim = 128,
                     .sequence = 8192};
const ModelDims k8B{.vocab = 128256,
                    .hidden = 4096,
                    .ffn = 14336,
                    .layers = 32,
                    .heads = 32,
                    .kvHeads = 8,
                    .headDim = 128,
                    .sequence = 8192};
const ModelDims k405B{.vocab = 128256,
                      .hidden = 16384,
                      .ffn = 53248,
                      .layers = 126,
                      .heads = 128,
                      .kvHeads = 8,
                      .headDim = 128,
                      .sequence = 8192};
/// Odd sizes, so that alignment shows.
const ModelDims kOdd{.vocab = 250,
                     .hidden = 60,
                     .ffn = 100,
                     .layers = 7,
                     .heads = 6,
                     .kvHeads = 2,
                     .headDim = 10,
                     .sequence = 33};

/// Llama 70B on 1024 devices: TP 8, PP 4, DP 32, ZeRO-1, full recompute.
model::Choice thousand() {
  return {.tp = 8,
          .pp = 4,
          .dp = 32,
          .zero = 1,
          .microBatch = 1,
          .numMicroBatches = 16,
          .recompute = Recompute::Full,
          .layout = {20, 20, 20, 20}};
}

TEST(ParameterTable, PublishedCounts) {
  EXPECT_EQ(parameterCount(k8B), 8030261248);
  EXPECT_EQ(parameterCount(k70B), 70553706496);
  EXPECT_EQ(parameterCount(k405B), 405853388800);
}

TEST(ParameterTable, NamesShapesAndSplits) {
  std::vector<Parameter> all = allParameters(k8B);
  // Embedding, nine a layer, final norm and head.
  ASSERT_EQ(all.size(), 1 + 9 * 32 + 2u);
  EXPECT_EQ(all.front().name, "model.embed_tokens.weight");
  EXPECT_EQ(all.back().name, "lm_head.weight");
  int64_t sum = 0;
  for (const Parameter &parameter : all) {
    sum += parameter.elements();
    bool matrix = parameter.shape.size() == 2;
    EXPECT_EQ(parameter.decay, matrix) << parameter.name;
    EXPECT_EQ(parameter.tpDim.has_value(), matrix) << parameter.name;
    EXPECT_EQ(parameter.init == ParameterInit::Ones, !matrix);
  }
  EXPECT_EQ(sum, parameterCount(k8B));
  const Parameter &k = all[1 + 9 * 5 + 2];
  EXPECT_EQ(k.name, "model.layers.5.self_attn.k_proj.weight");
  EXPECT_EQ(k.shape, (std::vector<int64_t>{8 * 128, 4096}));
  const Parameter &down = all[1 + 9 * 5 + 8];
  EXPECT_EQ(down.name, "model.layers.5.mlp.down_proj.weight");
  EXPECT_EQ(down.tpDim, 1);
  EXPECT_EQ(down.localElements(8), 4096 * 14336 / 8);
}

TEST(StageModel, StatesAre2Plus4Plus12OverDp) {
  StageModel model(k70B, 0);
  // A layer: q, o 8192^2 each; k, v 1024 * 8192 each; three of 28672 * 8192;
  // split over 8 ranks; two norms of 8192 on each. 20 layers on a middle stage.
  int64_t layer =
      (2 * 8192 * 8192 + 2 * 1024 * 8192 + 3 * 28672 * 8192) / 8 + 2 * 8192;
  auto elements = static_cast<uint64_t>(20 * layer);
  StageMemory middle = model.memory(thousand(), 1);
  EXPECT_EQ(middle.parameters, 2 * elements);
  EXPECT_EQ(middle.gradients, 4 * elements);
  EXPECT_EQ(middle.optimizer, 12 * elements / 32);

  model::Choice whole = thousand();
  whole.zero = 0;
  EXPECT_EQ(model.memory(whole, 1).optimizer, 12 * elements);

  // The first stage has the embedding, the last the head and a norm.
  auto rows = static_cast<uint64_t>(128256 / 8 * 8192);
  EXPECT_EQ(model.memory(thousand(), 0).parameters,
            middle.parameters + 2 * rows);
  EXPECT_EQ(model.memory(thousand(), 3).parameters,
            middle.parameters + 2 * rows + 2 * 8192);

  // fp32: the weights are the main weights, 4 + 4 + 8/d.
  model::Choice fp32 = thousand();
  fp32.precision = Precision::Fp32;
  StageMemory single = model.memory(fp32, 1);
  EXPECT_EQ(single.parameters, 4 * elements);
  EXPECT_EQ(single.gradients, 4 * elements);
  EXPECT_EQ(single.optimizer, 8 * elements / 32);
}

TEST(StageModel, ShardsArePaddedToWholeRanks) {
  model::Choice choice{
      .dp = 4, .zero = 1, .layout = {7}, .precision = Precision::Fp32};
  StageModel model(kOdd, 0);
  for (const StateSize &state : model.arena(choice, 0).states) {
    if (state.name == "model.embed_tokens.weight") { // 250 * 60 = 4 * 3750
      EXPECT_EQ(state.bytes, 4u * 15000);
    }
    if (state.name == "model.layers.0.input_layernorm.weight#momentum") {
      EXPECT_EQ(state.bytes, 4u * 15); // 60 / 4
    }
  }
  choice.dp = 7; // ceil(60 / 7) = 9, padded to 63
  for (const StateSize &state : model.arena(choice, 0).states) {
    if (state.name == "model.layers.0.input_layernorm.weight") {
      EXPECT_EQ(state.bytes, 4u * 63);
    }
    if (state.name == "model.layers.0.input_layernorm.weight#variance") {
      EXPECT_EQ(state.bytes, 4u * 9);
    }
  }
}

TEST(StageModel, StashOfALayer) {
  StageShape shape{.layers = 20, .tp = 8, .microBatch = 1};
  // In units of u = 2 T H bytes, without sequence parallelism: n1, x1, n2 and
  // the layer's output 4; q, k, v, o (2 + 2/8) / 8; gate, up, product
  // 3 * 3.5 / 8; and statistics 4 T a / 8.
  double u = 2.0 * 8192 * 8192;
  double layer = u * (4 + (2 + 0.25 + 10.5) / 8) + 4.0 * 8192 * 64 / 8;
  FragmentMemory memory = fragmentMemory(k70B, shape);
  // The last output is not saved but sent on.
  EXPECT_DOUBLE_EQ(static_cast<double>(memory.stashBytes), 20 * layer - u);
  EXPECT_EQ(memory.forwardWorkspace, 0u); // all values live in slots

  // With tp 1 this is the familiar 2 (4 + 2q + 2k + 3r) u / 2 = 33.5 T H.
  shape.tp = 1;
  double whole = u * (4 + 2 + 0.25 + 10.5) + 4.0 * 8192 * 64;
  EXPECT_DOUBLE_EQ(static_cast<double>(fragmentMemory(k70B, shape).stashBytes),
                   20 * whole - u);
  EXPECT_DOUBLE_EQ((whole - 4.0 * 8192 * 64) / (8192.0 * 8192.0), 33.5);
}

TEST(StageModel, StashOfALayerInFp8) {
  StageShape shape{
      .layers = 20, .tp = 8, .microBatch = 1, .precision = Precision::Fp8};
  // Of StashOfALayer's units: x1 and the layer's output 2; q, k, v, o and gate
  // and up as before; codes of n1, n2 and the product, half of what they were;
  // 3 scales, the maxima of o and of 7 weights, 256 bytes each.
  double u = 2.0 * 8192 * 8192;
  double layer = u * (2 + (2 + 0.25 + 7) / 8) + u * (2 + 3.5 / 8) / 2 +
                 4.0 * 8192 * 64 / 8 + 11 * 256;
  FragmentMemory memory = fragmentMemory(k70B, shape);
  EXPECT_DOUBLE_EQ(static_cast<double>(memory.stashBytes), 20 * layer - u);
  // Codes of the widest weight, 28672 x 8192 / 8, and of its input.
  EXPECT_GT(memory.forwardWorkspace, 8192ull * 28672 / 8);

  // With sequence parallelism a rank's part of the norms stays in bf16, and the
  // maximum of all of each.
  shape.sequenceParallel = true;
  layer = u * (4 + 2 + 0.25 + 7) / 8 + u * 3.5 / 8 / 2 + 4.0 * 8192 * 64 / 8 +
          11 * 256;
  memory = fragmentMemory(k70B, shape);
  EXPECT_DOUBLE_EQ(static_cast<double>(memory.stashBytes), 20 * layer - u / 8);

  // States are those of bf16.
  StageModel model(k70B, 0);
  model::Choice fp8 = thousand();
  fp8.precision = Precision::Fp8;
  StageMemory a = model.memory(fp8, 1), b = model.memory(thousand(), 1);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(a.optimizer, b.optimizer);
  EXPECT_EQ(a.communication, b.communication);
}

TEST(StageModel, Fp8CodesArePadded) {
  // 33 tokens of 60 and 100 columns are 48 x 64 and 48 x 112 codes.
  StageShape shape{.layers = 1, .microBatch = 1, .precision = Precision::Fp8};
  std::vector<uint64_t> saved = fragmentMemory(kOdd, shape).saved;
  ASSERT_EQ(saved.size(), 22u);
  for (size_t i = 0; i < 8; ++i) // 7 maxima and n1's scale
    EXPECT_EQ(saved[i], 4u);
  EXPECT_EQ(saved[8], 48u * 64);
  EXPECT_EQ(saved.back(), 48u * 112);
}

TEST(StageModel, FullRecomputeSavesOneActivationALayer) {
  StageShape shape{
      .layers = 20, .tp = 8, .microBatch = 2, .recompute = Recompute::Full};
  uint64_t hidden = 2ull * 2 * 8192 * 8192; // two sequences
  // A middle stage: the first layer's input has its own slot.
  EXPECT_EQ(fragmentMemory(k70B, shape).stashBytes, 19 * hidden);
  shape.first = true;
  EXPECT_EQ(fragmentMemory(k70B, shape).stashBytes, 20 * hidden);
  shape.last = true; // and the head's input
  EXPECT_EQ(fragmentMemory(k70B, shape).stashBytes, 21 * hidden);
}

TEST(StageModel, SlotsOfTheThousandDeviceRun) {
  StageModel model(k70B, 2ull << 30);
  uint64_t hidden = 2ull * 8192 * 8192, row = 4ull * 8192;
  StageArena first = model.arena(thousand(), 0);
  auto slot = [&](SlotClassId id) {
    return first.slots[static_cast<size_t>(id)];
  };
  // min(16, 4) in flight, one more micro-batch loaded ahead.
  EXPECT_EQ(slot(SlotClassId::Stash).count, 4u);
  EXPECT_EQ(slot(SlotClassId::Stash).bytes, 20 * hidden);
  EXPECT_EQ(slot(SlotClassId::Tokens).count, 5u);
  EXPECT_EQ(slot(SlotClassId::Tokens).bytes, row);
  EXPECT_EQ(slot(SlotClassId::Targets).count, 0u);
  EXPECT_EQ(first.memory.activations, 4 * 20 * hidden + 5 * row);
  // Two results to send and two gradients to receive.
  EXPECT_EQ(first.memory.communication, 4 * hidden);
  EXPECT_EQ(first.memory.logits, 0u);
  EXPECT_EQ(first.memory.total(), first.layout.arenaBytes + (2ull << 30));

  StageMemory last = model.memory(thousand(), 3);
  EXPECT_EQ(last.logits, 2ull * 8192 * 128256 / 8);
}

TEST(StageModel, ScalingABatchIsExact) {
  for (const ModelDims &dims : {k8B, kOdd})
    for (int64_t b : {1, 2, 3, 5})
      for (Recompute recompute : {Recompute::None, Recompute::Full})
        for (bool last : {false, true}) {
          StageShape shape{.layers = 3,
                           .first = !last,
                           .last = last,
                           .tp = 2,
                           .microBatch = b,
                           .recompute = recompute};
          StageModel model(dims, 0);
          FragmentMemory direct = fragmentMemory(dims, shape);
          const FragmentMemory &scaled = model.fragments(shape);
          EXPECT_EQ(scaled.saved, direct.saved);
          EXPECT_EQ(scaled.stashBytes, direct.stashBytes);
          EXPECT_EQ(scaled.forwardWorkspace, direct.forwardWorkspace);
          EXPECT_EQ(scaled.backwardWorkspace, direct.backwardWorkspace);
          EXPECT_EQ(scaled.logitsBytes, direct.logitsBytes);
        }
}

TEST(StageModel, SumsEqualTheLayout) {
  for (int64_t pp : {1, 2, 3})
    for (int64_t zero : {0, 1})
      for (Precision precision :
           {Precision::Fp32, Precision::Bf16, Precision::Fp8})
        for (Recompute recompute : {Recompute::None, Recompute::Full})
          for (ScheduleKind kind :
               {ScheduleKind::GPipe, ScheduleKind::OneFOneB}) {
            model::Choice choice{.tp = 2,
                                 .pp = pp,
                                 .dp = 3,
                                 .zero = zero,
                                 .microBatch = 2,
                                 .numMicroBatches = 4,
                                 .recompute = recompute,
                                 .schedule = kind,
                                 .precision = precision};
            choice.layout.assign(pp, 7 / pp);
            choice.layout[0] += 7 % pp;
            StageModel model(kOdd, 12345);
            for (int64_t stage = 0; stage < pp; ++stage) {
              // arena() itself checks its sum; the search uses memory().
              StageArena arena = model.arena(choice, stage);
              EXPECT_EQ(arena.layout.arenaBytes,
                        model.memory(choice, stage).arena());
              EXPECT_GE(arena.fragments.backwardWorkspace,
                        arena.fragments.backwardLowerBound);
            }
          }
}

TEST(FragmentMirror, InPlaceNeedsADeadOperandOfEqualSize) {
  FragmentMirror f;
  auto x = f.argument(512);
  auto a = f.op1({x}, 512);
  auto b = f.op1({a}, 512, {{0, 0}}); // takes a's buffer
  auto c = f.op1({b}, 256, {{0, 0}}); // smaller: its own
  f.op({b, c}, {});
  EXPECT_EQ(f.pack().bytes, 512u + 256u);

  FragmentMirror g;
  auto d = g.op1({}, 512);
  auto e = g.op1({d}, 512, {{0, 0}}); // d is read later: its own
  g.op({d, e}, {});
  EXPECT_EQ(g.pack().bytes, 1024u);
}

TEST(FragmentMirror, ArgumentsAreNotOverwritten) {
  FragmentMirror f;
  auto x = f.argument(512);
  f.op1({x}, 512, {{0, 0}});
  EXPECT_EQ(f.pack().bytes, 512u);
}

TEST(FragmentMirror, AKeptValueTakesItsClassIntoTheSlot) {
  FragmentMirror f;
  auto a = f.op1({}, 512);
  auto b = f.op1({a}, 512, {{0, 0}});
  f.keep(b);
  EXPECT_EQ(f.pack().bytes, 0u);

  // A kept operand stays where it is; the result needs workspace.
  FragmentMirror g;
  auto c = g.op1({}, 512);
  g.keep(c);
  auto d = g.op1({c}, 512, {{0, 0}});
  g.op({d}, {});
  EXPECT_EQ(g.pack().bytes, 512u);
}

TEST(FragmentMirror, ScratchLivesForOneOp) {
  FragmentMirror f;
  auto a = f.op1({}, 256);
  auto b = f.op({a}, {256}, {}, 1024)[0]; // a, b and scratch together
  auto c = f.op1({b}, 512);               // into the scratch's or a's place
  f.op({c}, {});
  EXPECT_EQ(f.pack().bytes, 256u + 256u + 1024u);
}

} // namespace
