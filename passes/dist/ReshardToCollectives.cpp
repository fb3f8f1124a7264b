//===- ReshardToCollectives.cpp - dist-reshard-to-collectives -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/dist/Passes.h"

namespace reckon::dist {
#define GEN_PASS_DEF_RESHARDTOCOLLECTIVES
#include "passes/dist/Passes.h.inc"
} // namespace reckon::dist

using namespace mlir;
using namespace reckon;
using namespace reckon::dist;

namespace {

/// What one dimension loses or gains between two shardings.
struct DimChange {
  int64_t dim;
  Axes axes;
};

/// The axes that `more` has behind those of `less`; empty when `less` is not a
/// prefix of it. Inner axes come last, so blocks stay contiguous.
Axes suffix(const Axes &less, const Axes &more) {
  if (less.size() >= more.size() ||
      !std::equal(less.begin(), less.end(), more.begin()))
    return {};
  return Axes(more.begin() + less.size(), more.end());
}

class Lowering {
public:
  Lowering(ReshardOp op, MeshOp mesh)
      : op(op), mesh(mesh), b(op), from(Sharding::of(op.getFrom())),
        to(Sharding::of(op.getTo())) {}

  LogicalResult run() {
    FailureOr<Value> value = build();
    if (failed(value))
      return op.emitOpError() << "no single collective takes " << from.str()
                              << " to " << to.str();
    op.getResult().replaceAllUsesWith(*value);
    op.erase();
    return success();
  }

private:
  StringAttr origin() {
    return to.origin.empty() ? StringAttr() : b.getStringAttr(to.origin);
  }
  ArrayAttr names(const Axes &axes) {
    llvm::SmallVector<StringRef> list(axes.begin(), axes.end());
    return b.getStrArrayAttr(list);
  }
  IntegerAttr number(int64_t value) { return b.getI64IntegerAttr(value); }
  IntegerAttr group(const Axes &axes) { return number(groupSize(mesh, axes)); }

  FailureOr<Value> build();

  ReshardOp op;
  MeshOp mesh;
  OpBuilder b;
  Sharding from, to;
};

FailureOr<Value> Lowering::build() {
  llvm::SmallVector<DimChange> lost, gained;
  for (size_t d = 0; d < from.dims.size(); ++d) {
    if (from.dims[d] == to.dims[d])
      continue;
    auto dim = static_cast<int64_t>(d);
    if (Axes axes = suffix(to.dims[d], from.dims[d]); !axes.empty())
      lost.push_back({dim, axes});
    else if (Axes axes = suffix(from.dims[d], to.dims[d]); !axes.empty())
      gained.push_back({dim, axes});
    else
      return failure();
  }
  if (!to.unreduced.empty())
    return failure();
  Value input = op.getInput();
  Type type = op.getResult().getType();
  Location loc = op.getLoc();
  bool sameDims = lost.empty() && gained.empty();
  const Axes &partial = from.unreduced;
  auto reduction = b.getStringAttr(from.reduction);

  if (!partial.empty() && from.flat.empty()) {
    // All that is partial is reduced, then each rank keeps its part;
    // dist-fuse-collectives makes one reduce-scatter of the two.
    bool kept = gained.size() == 1 && lost.empty();
    if (!(sameDims || (kept && to.flat.empty())))
      return failure();
    auto reduce = [&](Value value, const Axes &axes) -> Value {
      if (axes.empty())
        return value;
      return AllReduceOp::create(b, loc, value.getType(), value, names(axes),
                                 group(axes), reduction, origin())
          .getResult(0);
    };
    if (sameDims && to.flat.empty())
      return reduce(input, partial);
    // The axes that are sliced are reduced last, on their own: the sum then has
    // the same order with and without the fusion.
    const Axes &axes = kept ? gained[0].axes : to.flat;
    Axes first, last;
    for (const std::string &axis : partial)
      (llvm::is_contained(axes, axis) ? last : first).push_back(axis);
    Value whole = reduce(reduce(input, first), last);
    return SliceOp::create(b, loc, type, whole, names(axes), group(axes),
                           kept ? number(gained[0].dim) : IntegerAttr(),
                           origin())
        .getResult(0);
  }
  if (!from.flat.empty()) {
    if (!sameDims || !to.flat.empty())
      return failure();
    return AllGatherOp::create(b, loc, type, input, names(from.flat),
                               group(from.flat), IntegerAttr(), origin())
        .getResult(0);
  }
  if (!to.flat.empty()) {
    if (!sameDims)
      return failure();
    return SliceOp::create(b, loc, type, input, names(to.flat), group(to.flat),
                           IntegerAttr(), origin())
        .getResult(0);
  }
  if (lost.size() == 1 && gained.empty())
    return AllGatherOp::create(b, loc, type, input, names(lost[0].axes),
                               group(lost[0].axes), number(lost[0].dim),
                               origin())
        .getResult(0);
  if (gained.size() == 1 && lost.empty())
    return SliceOp::create(b, loc, type, input, names(gained[0].axes),
                           group(gained[0].axes), number(gained[0].dim),
                           origin())
        .getResult(0);
  if (lost.size() == 1 && gained.size() == 1 && lost[0].axes == gained[0].axes)
    return AllToAllOp::create(b, loc, type, input, names(lost[0].axes),
                              group(lost[0].axes), number(gained[0].dim),
                              number(lost[0].dim), origin())
        .getResult(0);
  return failure();
}

class ReshardToCollectivesPass
    : public reckon::dist::impl::ReshardToCollectivesBase<
          ReshardToCollectivesPass> {
  void runOnOperation() override {
    MeshOp mesh = meshOf(getOperation());
    if (!mesh) {
      getOperation().emitOpError("has no dist.mesh; run dist-apply-spec first");
      return signalPassFailure();
    }
    llvm::SmallVector<ReshardOp> reshards;
    getOperation().walk([&](ReshardOp op) { reshards.push_back(op); });
    for (ReshardOp op : reshards)
      if (failed(Lowering(op, mesh).run()))
        return signalPassFailure();
  }
};

} // namespace
