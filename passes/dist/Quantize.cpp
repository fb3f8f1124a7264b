//===- Quantize.cpp - dist-quantize ---------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/dist/Passes.h"
#include "passes/train/Passes.h"
#include "runtime/base/Fp8Layout.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace reckon::dist {
#define GEN_PASS_DEF_QUANTIZE
#include "passes/dist/Passes.h.inc"
} // namespace reckon::dist

using namespace mlir;
using namespace reckon;
using namespace reckon::dist;

namespace {

/// What one operand of a linear becomes. Activations and weights are e4m3;
/// gradients, whose range is larger, e5m2.
struct Use {
  Value value;
  bool gradient;   ///< dy
  bool transposed; ///< its transposed codes are wanted
  StringRef role;  ///< "x", "w" or "dy"
};

/// The operands of a linear in the order of linear_fp8's: (x, w), (dy, w^T),
/// (dy^T, x^T). Empty for another operation.
SmallVector<Use, 2> usesOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, SmallVector<Use, 2>>(op)
      .Case([](train::LinearOp linear) {
        return SmallVector<Use, 2>{{linear.getX(), false, false, "x"},
                                   {linear.getWeight(), false, false, "w"}};
      })
      .Case([](train::LinearGradInputOp linear) {
        return SmallVector<Use, 2>{{linear.getDy(), true, false, "dy"},
                                   {linear.getWeight(), false, true, "w"}};
      })
      .Case([](train::LinearGradWeightOp linear) {
        return SmallVector<Use, 2>{{linear.getDy(), true, true, "dy"},
                                   {linear.getX(), false, true, "x"}};
      })
      .Default([](Operation *) { return SmallVector<Use, 2>(); });
}

/// What a largest magnitude belongs to: a state, which several reads give, or a
/// value.
const void *keyOf(Value value) {
  if (auto read = value.getDefiningOp<train::ReadOp>())
    return read.getStateAttr().getAttr().getAsOpaquePointer();
  return value.getAsOpaquePointer();
}

/// "layers.3.q" with another last part.
Location renamed(Location loc, function_ref<std::string(StringRef)> rename) {
  auto named = dyn_cast<NameLoc>(loc);
  if (!named)
    return loc;
  StringRef text = named.getName().getValue();
  size_t cut = text.rfind('.') + 1;
  return NameLoc::get(
      StringAttr::get(loc.getContext(),
                      text.take_front(cut) + rename(text.drop_front(cut))),
      named.getChildLoc());
}

/// Quantizes the linears of one layer's forward or backward.
class BodyQuantizer {
public:
  BodyQuantizer(Block &block, MeshOp mesh)
      : block(block), mesh(mesh), b(block.getParentOp()->getContext()) {
    for (Operation &op : block)
      for (Use use : usesOf(&op)) {
        if (linears.empty() || linears.back() != &op)
          linears.push_back(&op);
        want(use.value, use.transposed);
      }
  }

  bool uses(Value value) const { return used.contains(keyOf(value)); }

  /// Another place wants the codes of a value, too.
  void want(Value value, bool transposed) {
    used.insert(keyOf(value));
    (transposed ? wanted[value].transposed : wanted[value].straight) = true;
  }
  /// The largest magnitude of a value is known here.
  void giveAmax(Value value, Value known) { amax[keyOf(value)] = known; }
  /// So are its scale and its transposed codes, which are all that is wanted.
  void giveCodes(Value value, Value scale, Value codes) {
    given[value] = {codes, scale};
  }

  void run() {
    for (Operation *op : linears)
      replace(op);
    for (Operation *op : linears)
      op->erase();
  }

  Value amaxOf(Value value) const { return amax.lookup(keyOf(value)); }
  train::CastFp8Op castOf(Value value) const { return casts.lookup(value); }

private:
  struct Wanted {
    bool straight = false, transposed = false;
  };
  struct Codes {
    Value codes, scale;
  };

  Location locationOf(Operation *op, const Use &use, StringRef suffix);
  void findMaxima(Operation *op);
  Codes quantize(Operation *op, const Use &use);
  void replace(Operation *op);

  Block &block;
  MeshOp mesh;
  OpBuilder b;
  SmallVector<Operation *> linears;
  llvm::DenseSet<const void *> used;
  llvm::DenseMap<Value, Wanted> wanted;
  llvm::DenseMap<const void *, Value> amax;
  llvm::DenseMap<Value, Codes> given;
  llvm::DenseMap<Value, train::CastFp8Op> casts;
};

/// Named after the value, or, where that has no name of its own, after what
/// reads it: "layers.3.n1_fp8", "layers.3.q_w_fp8".
Location BodyQuantizer::locationOf(Operation *op, const Use &use,
                                   StringRef suffix) {
  Operation *source = use.value.getDefiningOp();
  bool own = source && !isa<train::ReadOp>(source);
  return renamed(own ? source->getLoc() : op->getLoc(), [&](StringRef name) {
    return own ? (name + suffix).str() : (name + "_" + use.role + suffix).str();
  });
}

/// Makes the largest magnitudes that `op` needs and, so that one message serves
/// several, those of all the layer's weights and of whatever else is there
/// already for a later linear.
void BodyQuantizer::findMaxima(Operation *op) {
  llvm::MapVector<Attribute, SmallVector<std::pair<const void *, Value>>> split;
  auto find = [&](Operation *linear, unsigned number, const Use &use) {
    Value source = use.value;
    if (amax.count(keyOf(source)) || given.count(source))
      return;
    Operation *maker = source.getDefiningOp();
    if (maker && maker->getBlock() == op->getBlock() &&
        !maker->isBeforeInBlock(op))
      source = b.clone(*maker)->getResult(0); // a read
    Value found = train::AmaxOp::create(
        b, locationOf(linear, use, "_amax"),
        RankedTensorType::get({1}, b.getF32Type()), source);
    amax[keyOf(source)] = found;
    auto notes = linear->getAttrOfType<ArrayAttr>(operandAxesAttrName);
    auto axes = notes ? cast<ArrayAttr>(notes[number]) : b.getArrayAttr({});
    if (!axes.empty())
      split[axes].push_back({keyOf(source), found});
  };
  for (Operation *linear :
       ArrayRef(linears).drop_front(llvm::find(linears, op) - linears.begin()))
    for (auto [number, use] : llvm::enumerate(usesOf(linear))) {
      Operation *maker = use.value.getDefiningOp();
      bool weight = isa_and_nonnull<train::ReadOp>(maker);
      if (linear == op || weight || (maker && maker->isBeforeInBlock(op)))
        find(linear, number, use);
    }
  for (auto &[axes, parts] : split) {
    SmallVector<Value> inputs = llvm::to_vector(llvm::make_second_range(parts));
    Axes names;
    for (Attribute axis : cast<ArrayAttr>(axes))
      names.push_back(cast<StringAttr>(axis).str());
    StringRef origin = mesh.getOrigin(names.front());
    auto reduced = AllReduceOp::create(
        b, renamed(op->getLoc(), [](StringRef) { return "amax"; }),
        ValueRange(inputs).getTypes(), inputs, cast<ArrayAttr>(axes),
        b.getI64IntegerAttr(groupSize(mesh, names)), b.getStringAttr("max"),
        origin.empty() ? StringAttr() : b.getStringAttr(origin));
    for (auto [part, result] : llvm::zip(parts, reduced.getOutputs()))
      amax[part.first] = result;
  }
}

BodyQuantizer::Codes BodyQuantizer::quantize(Operation *op, const Use &use) {
  if (auto known = given.find(use.value); known != given.end())
    return known->second;
  train::CastFp8Op &cast = casts[use.value];
  if (!cast) {
    Wanted all = wanted.lookup(use.value);
    auto type = mlir::cast<RankedTensorType>(use.value.getType());
    int64_t rows = fp8Padded(type.getDimSize(0));
    int64_t columns = fp8Padded(type.getDimSize(1));
    Type code = use.gradient ? Type(Float8E5M2Type::get(b.getContext()))
                             : Type(Float8E4M3FNType::get(b.getContext()));
    SmallVector<Type> types;
    if (all.straight)
      types.push_back(RankedTensorType::get({rows, columns}, code));
    if (all.transposed)
      types.push_back(RankedTensorType::get({columns, rows}, code));
    cast = train::CastFp8Op::create(b, locationOf(op, use, "_fp8"),
                                    RankedTensorType::get({1}, b.getF32Type()),
                                    types, use.value, amaxOf(use.value),
                                    all.straight, all.transposed);
  }
  return {use.transposed ? cast.getTransposedCodes() : cast.getStraightCodes(),
          cast.getScale()};
}

void BodyQuantizer::replace(Operation *op) {
  b.setInsertionPoint(op);
  SmallVector<Use, 2> operands = usesOf(op);
  if (llvm::any_of(operands, [&](const Use &use) {
        return !given.count(use.value) && !amaxOf(use.value);
      }))
    findMaxima(op);
  Codes left = quantize(op, operands[0]), right = quantize(op, operands[1]);
  auto type = cast<RankedTensorType>(operands[0].value.getType());
  int64_t k = type.getDimSize(operands[0].transposed ? 0 : 1);
  auto product = train::LinearFp8Op::create(
      b, op->getLoc(), op->getResult(0).getType(), left.codes, left.scale,
      right.codes, right.scale, b.getI64IntegerAttr(k));
  op->getResult(0).replaceAllUsesWith(product.getResult());
}

/// Quantizes a layer and its gradient. What the forward found out, the backward
/// need not: where it read a saved activation only to multiply it, the layer
/// now saves its transposed codes, half as many bytes; else, the largest
/// magnitude. A layer that saves nothing is computed again, and quantized again
/// with it.
class LayerQuantizer {
public:
  LayerQuantizer(train::LayerOp layer, train::LayerGradOp grad, MeshOp mesh)
      : layer(layer), grad(grad), forward(layer.getBody().front(), mesh),
        backward(grad.getBody().front(), mesh) {}

  void run() {
    if (layer.getNumResults() > 1)
      findCrossings();
    for (const Crossing &crossing : crossings)
      if (crossing.codes)
        forward.want(crossing.source, /*transposed=*/true);
    forward.run();
    saveMore();
    backward.run();
    // Nothing reads the activations any more whose codes are saved.
    grad.getBody().front().eraseArguments(
        [&](BlockArgument argument) { return dropped.contains(argument); });
  }

private:
  /// What the backward's `target` is in the forward.
  struct Crossing {
    Value source, target;
    bool codes; ///< the transposed codes, not the largest magnitude
  };

  void findCrossings();
  Value sourceOf(Value target);
  void saveMore();

  train::LayerOp layer;
  train::LayerGradOp grad;
  BodyQuantizer forward, backward;
  SmallVector<Crossing> crossings;
  llvm::DenseSet<Value> dropped;
};

/// The forward's value for one of the backward: saved by it, gathered from what
/// it saved, or a state. Null where the forward does not quantize it.
Value LayerQuantizer::sourceOf(Value target) {
  Value source;
  if (auto argument = dyn_cast<BlockArgument>(target)) {
    Value input = grad.getInputs()[argument.getArgNumber()];
    if (auto result = dyn_cast<OpResult>(input); result.getOwner() == layer)
      source = layer.getYield().getValues()[result.getResultNumber()];
  } else if (auto gather = target.getDefiningOp<AllGatherOp>();
             gather && gather.getInputs().size() == 1) {
    auto part = dyn_cast<BlockArgument>(gather.getInputs()[0]);
    Value saved = part ? sourceOf(part) : Value();
    if (!saved)
      return {};
    for (Operation *user : saved.getUsers())
      if (auto same = dyn_cast<AllGatherOp>(user);
          same && same.getInputs().size() == 1 &&
          same.getAxes() == gather.getAxes() &&
          same.getDim() == gather.getDim())
        return same.getResult(0);
    return {};
  } else if (target.getDefiningOp<train::ReadOp>()) {
    source = target;
  }
  return source;
}

void LayerQuantizer::findCrossings() {
  llvm::DenseSet<const void *> seen;
  for (Operation &op : grad.getBody().front())
    for (Use use : usesOf(&op)) {
      if (!seen.insert(keyOf(use.value)).second)
        continue;
      Value source = sourceOf(use.value);
      if (!source || !forward.uses(source))
        continue;
      bool onlyMultiplied =
          isa<BlockArgument>(use.value) && !use.gradient &&
          llvm::all_of(use.value.getUsers(), [&](Operation *user) {
            return isa<train::LinearGradWeightOp>(user);
          });
      crossings.push_back({source, use.value, onlyMultiplied});
      if (onlyMultiplied)
        dropped.insert(use.value);
    }
}

/// Gives both operations their new results and inputs.
void LayerQuantizer::saveMore() {
  if (crossings.empty())
    return;
  train::YieldOp yield = layer.getYield();
  SmallVector<Value> values, keptResults, inputs, keptInputs;
  llvm::DenseSet<Value> unsaved;
  for (auto [input, argument] :
       llvm::zip(grad.getInputs(), grad.getBody().front().getArguments()))
    if (dropped.contains(argument))
      unsaved.insert(input);
  for (auto [result, value] : llvm::zip(layer.getResults(), yield.getValues()))
    if (!unsaved.contains(result)) {
      values.push_back(value);
      keptResults.push_back(result);
    }
  size_t kept = values.size();
  for (const Crossing &crossing : crossings)
    if (crossing.codes) {
      train::CastFp8Op cast = forward.castOf(crossing.source);
      values.push_back(cast.getScale());
      values.push_back(cast.getTransposedCodes());
    } else {
      values.push_back(forward.amaxOf(crossing.source));
    }
  yield.getValuesMutable().assign(values);
  OpBuilder b(layer);
  auto wider = train::LayerOp::create(
      b, layer.getLoc(), TypeRange(ValueRange(values)), layer.getNameAttr(),
      layer.getInputs(), layer.getStageAttr());
  wider.getBody().takeBody(layer.getBody());

  Block &body = grad.getBody().front();
  for (auto [input, argument] :
       llvm::zip(grad.getInputs(), body.getArguments()))
    if (!dropped.contains(argument))
      inputs.push_back(input);
  llvm::append_range(inputs, wider.getResults().drop_front(kept));
  unsigned next = kept;
  auto arrive = [&] {
    Value value = wider.getResult(next++);
    return body.addArgument(value.getType(), grad.getLoc());
  };
  for (const Crossing &crossing : crossings)
    if (crossing.codes) {
      Value scale = arrive(), codes = arrive();
      backward.giveCodes(crossing.target, scale, codes);
    } else {
      backward.giveAmax(crossing.target, arrive());
    }
  b.setInsertionPoint(grad);
  auto fresh = train::LayerGradOp::create(
      b, grad.getLoc(), grad.getResultTypes(), grad.getNameAttr(), inputs,
      grad.getStageAttr());
  fresh.getBody().takeBody(grad.getBody());
  for (auto [old, result] : llvm::zip(grad.getResults(), fresh.getResults()))
    old.replaceAllUsesWith(result);
  grad.erase();
  grad = fresh;
  for (auto [old, result] : llvm::zip(keptResults, wider.getResults()))
    old.replaceAllUsesWith(result);
  layer.erase();
  layer = wider;
}

class QuantizePass : public reckon::dist::impl::QuantizeBase<QuantizePass> {
  void runOnOperation() override {
    train::ProgramOp program = getOperation();
    if (program.getPrecision() == "fp8" && program.getMicrobatch())
      quantize(program);
    program.walk([](Operation *op) { op->removeAttr(operandAxesAttrName); });
  }

  void quantize(train::ProgramOp program) {
    MeshOp mesh = meshOf(program);
    Block &body = program.getMicrobatch().getBody().front();
    llvm::StringMap<train::LayerGradOp> grads;
    for (auto grad : body.getOps<train::LayerGradOp>())
      grads[grad.getName()] = grad;
    for (auto layer : llvm::to_vector(body.getOps<train::LayerOp>()))
      if (train::LayerGradOp grad = grads.lookup(layer.getName());
          grad && train::isDecoderLayer(layer.getName()))
        LayerQuantizer(layer, grad, mesh).run();
  }
};

} // namespace
