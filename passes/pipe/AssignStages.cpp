//===- AssignStages.cpp - layers to pipeline stages -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/pipe/Passes.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace reckon::pipe {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "passes/pipe/Passes.h.inc"

namespace {

/// Whether the name is that of a decoder layer: "layers." and its number.
bool isDecoderLayer(StringRef name) {
  uint64_t number = 0;
  return name.consume_front("layers.") && !name.getAsInteger(10, number);
}

struct AssignStages : impl::AssignStagesBase<AssignStages> {
  using AssignStagesBase::AssignStagesBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<train::ProgramOp>())
      if (failed(assign(program)))
        return signalPassFailure();
  }

  LogicalResult assign(train::ProgramOp program);
  /// Decoder layers per stage, checked against their number.
  FailureOr<SmallVector<int64_t>> layoutOf(train::ProgramOp program,
                                           int64_t decoderLayers);
};

} // namespace

FailureOr<SmallVector<int64_t>> AssignStages::layoutOf(train::ProgramOp program,
                                                       int64_t decoderLayers) {
  SmallVector<int64_t> cut(layout.begin(), layout.end());
  if (cut.empty())
    if (auto written = program.getPipelineLayout())
      cut = llvm::to_vector(*written);
  if (cut.empty())
    cut = {decoderLayers};

  int64_t sum = 0;
  for (auto [stage, layers] : llvm::enumerate(cut)) {
    // Without layers a stage in the middle has nothing to run.
    bool edge = stage == 0 || stage + 1 == cut.size();
    if (layers < (edge ? 0 : 1)) {
      program.emitOpError("expected at least ")
          << (edge ? 0 : 1) << " decoder layers in stage " << stage
          << " of the layout, got " << layers;
      return failure();
    }
    sum += layers;
  }
  if (sum != decoderLayers) {
    InFlightDiagnostic error = program.emitOpError("expected a layout of ");
    error << decoderLayers << " decoder layers, got [";
    llvm::interleaveComma(cut, error);
    error << "], which has " << sum;
    return failure();
  }
  return cut;
}

LogicalResult AssignStages::assign(train::ProgramOp program) {
  Block &body = program.getMicrobatch().getBody().front();
  int64_t decoderLayers =
      llvm::count_if(body.getOps<train::LayerOp>(), [](train::LayerOp layer) {
        return isDecoderLayer(layer.getName());
      });
  FailureOr<SmallVector<int64_t>> cut = layoutOf(program, decoderLayers);
  if (failed(cut))
    return failure();

  llvm::StringMap<int64_t> stageOf;
  size_t stage = 0;
  int64_t seen = 0, end = cut->front();
  for (auto layer : body.getOps<train::LayerOp>()) {
    if (isDecoderLayer(layer.getName())) {
      while (seen == end)
        end += (*cut)[++stage];
      ++seen;
    } else if (seen == decoderLayers && seen > 0) {
      stage = cut->size() - 1;
    }
    layer.setStage(stage);
    if (!stageOf.try_emplace(layer.getName(), stage).second)
      return layer.emitOpError("is the second layer of this name");
  }
  for (auto grad : body.getOps<train::LayerGradOp>()) {
    auto it = stageOf.find(grad.getName());
    if (it == stageOf.end())
      return grad.emitOpError("has no train.layer of its name");
    grad.setStage(it->second);
  }
  return success();
}

} // namespace reckon::pipe
