//===- BuildTrain.cpp - from the spec to the train dialect ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/import/BuildTrain.h"

#include "dialect/Train/Train.h"
#include "frontends/import/Config.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace reckon;
using namespace reckon::train;

namespace {

/// Builds a Llama: embedding, decoder layers, head.
class LlamaBuilder {
public:
  LlamaBuilder(MLIRContext &context, const Spec &spec,
               const model::Choice &choice)
      : context(context), spec(spec), model(spec.model), choice(choice),
        b(&context), f32(b.getF32Type()),
        activation(choice.precision == Precision::Fp32
                       ? Type(b.getF32Type())
                       : Type(b.getBF16Type())),
        tokens(choice.dp * choice.microBatch *
               *spec.training.sequenceLength),
        hidden(*model.hiddenSize), headDim(*model.headDim) {}

  OwningOpRef<ModuleOp> build(const PlanFacts &facts);

private:
  Location yaml(const SourceLoc &at) {
    return FileLineColLoc::get(b.getStringAttr(fileName(at)), at.line,
                               at.column);
  }
  /// "layers.3.q" at the key that shapes it.
  Location named(StringRef name, const SourceLoc &at) {
    std::string full = layer.empty() ? name.str() : layer + "." + name.str();
    return NameLoc::get(b.getStringAttr(full), yaml(at));
  }
  RankedTensorType rows(int64_t columns) {
    return RankedTensorType::get({tokens, columns}, activation);
  }
  RankedTensorType statistics(int64_t leading = 0) {
    llvm::SmallVector<int64_t> shape{tokens};
    if (leading)
      shape.insert(shape.begin(), leading);
    return RankedTensorType::get(shape, f32);
  }
  FlatSymbolRefAttr symbol(StringRef name) {
    return FlatSymbolRefAttr::get(&context, name);
  }

  /// Declares a parameter before the micro-batch and reads it here.
  Value parameter(StringRef name, llvm::ArrayRef<int64_t> shape,
                  const SourceLoc &at, std::optional<int64_t> split = {});
  void buffers(Location loc);
  LayerOp beginLayer(StringRef name, ValueRange inputs, TypeRange outputs,
                     const SourceLoc &at);
  void endLayer(ValueRange results);

  Value norm(StringRef name, StringRef state, Value x);
  /// `split` is the weight's dimension under tensor parallelism: 0 splits the
  /// outputs (column parallel), 1 the inputs (row parallel).
  Value linear(StringRef name, StringRef state, Value x, int64_t outputs,
               int64_t split, const SourceLoc &at);
  Value embedding(Value ids);
  Value decoder(int64_t index, Value x);
  void head(Value x, Value targets);

  MLIRContext &context;
  const Spec &spec;
  const ModelSpec &model;
  const model::Choice &choice;
  OpBuilder b;
  Type f32, activation;
  int64_t tokens, hidden, headDim;
  MicrobatchOp microbatch;
  std::string layer;  ///< name of the layer being built
  std::string prefix; ///< of its parameters in a checkpoint
};

Value LlamaBuilder::parameter(StringRef name, llvm::ArrayRef<int64_t> shape,
                              const SourceLoc &at,
                              std::optional<int64_t> split) {
  std::string full = prefix + name.str() + ".weight";
  auto type = RankedTensorType::get(shape, activation);
  Location loc = NameLoc::get(b.getStringAttr(full), yaml(at));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(microbatch);
    auto state = StateOp::create(b, loc, full, StateRole::Parameter, type);
    // Matrices decay, norms do not; norms start at one.
    bool matrix = shape.size() > 1;
    state.setDecay(matrix);
    if (split)
      state.setTensorParallelDimAttr(b.getI64IntegerAttr(*split));
    NamedAttrList init;
    init.append("kind", b.getStringAttr(matrix ? "normal" : "ones"));
    if (matrix)
      init.append("stddev", b.getF64FloatAttr(*model.initializerRange));
    state.setInitAttr(init.getDictionary(&context));
  }
  return ReadOp::create(b, loc, type, symbol(full));
}

void LlamaBuilder::buffers(Location loc) {
  const RopeScalingSpec &scaling = model.ropeScaling;
  bool scaled = *scaling.type == RopeType::Llama3;
  auto state = StateOp::create(
      b, NameLoc::get(b.getStringAttr("rope.table"),
                      yaml(model.ropeTheta.loc)),
      "rope.table", StateRole::Buffer,
      RankedTensorType::get({*spec.training.sequenceLength, headDim}, f32));
  NamedAttrList init;
  init.append("kind", b.getStringAttr("rope"));
  init.append("rope",
              b.getDenseF64ArrayAttr(
                  {*model.ropeTheta, scaled ? *scaling.factor : 1.0,
                   scaled ? *scaling.lowFreqFactor : 1.0,
                   scaled ? *scaling.highFreqFactor : 1.0,
                   scaled ? static_cast<double>(
                                *scaling.originalMaxPositionEmbeddings)
                          : 0.0}));
  state.setInitAttr(init.getDictionary(&context));
  auto metrics =
      StateOp::create(b, loc, "metrics", StateRole::Metrics,
                      RankedTensorType::get({4}, b.getF64Type()));
  NamedAttrList zeros;
  zeros.append("kind", b.getStringAttr("zeros"));
  metrics.setInitAttr(zeros.getDictionary(&context));
}

LayerOp LlamaBuilder::beginLayer(StringRef name, ValueRange inputs,
                                 TypeRange outputs, const SourceLoc &at) {
  layer.clear();
  Location loc = named(name, at);
  layer = name.str();
  auto op = LayerOp::create(b, loc, outputs, b.getStringAttr(name), inputs,
                            IntegerAttr());
  Block &body = op.getBody().emplaceBlock();
  for (Value input : inputs)
    body.addArgument(input.getType(), loc);
  b.setInsertionPointToEnd(&body);
  return op;
}

void LlamaBuilder::endLayer(ValueRange results) {
  auto op = cast<LayerOp>(b.getInsertionBlock()->getParentOp());
  YieldOp::create(b, op.getLoc(), results);
  b.setInsertionPointAfter(op);
}

Value LlamaBuilder::norm(StringRef name, StringRef state, Value x) {
  Value w = parameter(state, {hidden}, model.rmsNormEps.loc);
  return RmsNormOp::create(b, named(name, model.rmsNormEps.loc), x.getType(),
                           x, w, b.getF64FloatAttr(*model.rmsNormEps));
}

Value LlamaBuilder::linear(StringRef name, StringRef state, Value x,
                           int64_t outputs, int64_t split,
                           const SourceLoc &at) {
  int64_t inputs = cast<RankedTensorType>(x.getType()).getDimSize(1);
  Value w = parameter(state, {outputs, inputs}, at, split);
  return LinearOp::create(b, named(name, at), rows(outputs), x, w);
}

Value LlamaBuilder::embedding(Value ids) {
  prefix = "model.";
  const SourceLoc &at = model.vocabSize.loc;
  LayerOp op = beginLayer("embedding", ids, rows(hidden), at);
  Value w = parameter("embed_tokens", {*model.vocabSize, hidden}, at, 0);
  Value y = EmbeddingOp::create(b, named("x", at), rows(hidden),
                                op.getBody().getArgument(0), w, ArrayAttr());
  endLayer(y);
  return op.getResult(0);
}

Value LlamaBuilder::decoder(int64_t index, Value input) {
  std::string name = "layers." + std::to_string(index);
  prefix = "model." + name + ".";
  const SourceLoc &heads = model.numAttentionHeads.loc;
  const SourceLoc &kvHeads = model.numKeyValueHeads.loc;
  const SourceLoc &ffn = model.intermediateSize.loc;
  const SourceLoc &width = model.hiddenSize.loc;
  int64_t queries = *model.numAttentionHeads * headDim;
  int64_t keys = *model.numKeyValueHeads * headDim;
  auto headDimAttr = b.getI64IntegerAttr(headDim);
  auto sequence = b.getI64IntegerAttr(*spec.training.sequenceLength);

  LayerOp op = beginLayer(name, input, rows(hidden),
                          model.numHiddenLayers.loc);
  Value x = op.getBody().getArgument(0);
  Value n1 = norm("n1", "input_layernorm", x);
  Value q = linear("q", "self_attn.q_proj", n1, queries, 0, heads);
  Value k = linear("k", "self_attn.k_proj", n1, keys, 0, kvHeads);
  Value v = linear("v", "self_attn.v_proj", n1, keys, 0, kvHeads);
  Value table = ReadOp::create(
      b, named("rope", model.ropeTheta.loc),
      RankedTensorType::get({*spec.training.sequenceLength, headDim}, f32),
      symbol("rope.table"));
  auto rotate = [&](StringRef called, Value value) -> Value {
    return RopeOp::create(b, named(called, model.ropeTheta.loc),
                          value.getType(), value, table, headDimAttr, sequence,
                          UnitAttr());
  };
  Value qr = rotate("q_rot", q);
  Value kr = rotate("k_rot", k);
  auto lse = RankedTensorType::get(
      {tokens / *spec.training.sequenceLength, *model.numAttentionHeads,
       *spec.training.sequenceLength},
      f32);
  Value o = AttentionOp::create(b, named("attention", heads),
                                TypeRange{rows(queries), lse}, qr, kr, v,
                                headDimAttr, sequence)
                .getResult();
  Value p = linear("attn_out", "self_attn.o_proj", o, hidden, 1, width);
  Value x1 = AddOp::create(b, named("x1", width), x.getType(), x, p);
  Value n2 = norm("n2", "post_attention_layernorm", x1);
  Value g = linear("gate", "mlp.gate_proj", n2, *model.intermediateSize, 0, ffn);
  Value u = linear("up", "mlp.up_proj", n2, *model.intermediateSize, 0, ffn);
  Value a = SwigluOp::create(b, named("act", ffn), g.getType(), g, u);
  Value d = linear("mlp_out", "mlp.down_proj", a, hidden, 1, width);
  Value y = AddOp::create(b, named("y", width), x.getType(), x1, d);
  endLayer(y);
  return op.getResult(0);
}

void LlamaBuilder::head(Value input, Value targets) {
  prefix = "";
  const SourceLoc &at = model.vocabSize.loc;
  LayerOp op = beginLayer("head", {input, targets}, TypeRange(), at);
  Value ids = op.getBody().getArgument(1);
  prefix = "model.";
  Value n = norm("n", "norm", op.getBody().getArgument(0));
  prefix = "";
  Value logits = linear("logits", "lm_head", n, *model.vocabSize, 0, at);
  Value max = CrossEntropyMaxOp::create(b, named("max", at), statistics(),
                                        logits, ArrayAttr());
  Value sums =
      CrossEntropySumOp::create(b, named("sums", at), statistics(2), logits,
                                ids, max, ArrayAttr());
  double scale = 1.0 / (static_cast<double>(*spec.training.globalBatchSize) *
                        static_cast<double>(*spec.training.sequenceLength));
  CrossEntropyLossOp::create(b, named("logits", at), statistics(),
                             symbol("metrics"), logits, ids, sums, max,
                             b.getF64FloatAttr(scale), ArrayAttr());
  endLayer(ValueRange());
}

OwningOpRef<ModuleOp> LlamaBuilder::build(const PlanFacts &facts) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(yaml(model.loc));
  b.setInsertionPointToEnd(module->getBody());
  Location loc = yaml(spec.training.loc);
  auto program = ProgramOp::create(
      b, loc, *model.name, *spec.training.sequenceLength, choice.microBatch,
      choice.numMicroBatches, *spec.training.globalBatchSize,
      toString(choice.precision),
      b.getDenseI64ArrayAttr(choice.layout),
      planConfig(b, spec, choice, facts));
  b.setInsertionPointToEnd(&program.getBody().emplaceBlock());
  buffers(loc);
  microbatch = MicrobatchOp::create(b, loc);
  b.setInsertionPointToEnd(&microbatch.getBody().emplaceBlock());

  auto ids = RankedTensorType::get({tokens}, b.getI32Type());
  Location data = yaml(spec.training.data.loc);
  Value input = InputOp::create(b, data, ids, InputKind::Tokens);
  Value targets = InputOp::create(b, data, ids, InputKind::Targets);
  Value x = embedding(input);
  for (int64_t i = 0; i < *model.numHiddenLayers; ++i)
    x = decoder(i, x);
  head(x, targets);
  YieldOp::create(b, loc);

  // Parameters were declared behind the buffers; the layout of a rank wants
  // them in the order of roles.
  Block &body = program.getBody().front();
  for (StateOp state : llvm::to_vector(body.getOps<StateOp>()))
    if (state.getRole() != StateRole::Parameter)
      state->moveBefore(microbatch);
  return module;
}

} // namespace

OwningOpRef<ModuleOp> reckon::buildTrain(MLIRContext &context,
                                         const Spec &spec,
                                         const model::Choice &choice,
                                         const PlanFacts &facts) {
  context.loadDialect<TrainDialect>();
  return LlamaBuilder(context, spec, choice).build(facts);
}
