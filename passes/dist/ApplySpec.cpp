//===- ApplySpec.cpp - dist-apply-spec ------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/dist/Passes.h"

namespace reckon::dist {
#define GEN_PASS_DEF_APPLYSPEC
#include "passes/dist/Passes.h.inc"

MeshOp meshOf(train::ProgramOp program) {
  auto meshes = program.getBody().getOps<MeshOp>();
  return meshes.empty() ? MeshOp() : *meshes.begin();
}

Sharding shardingOf(train::StateOp state) {
  if (auto attr = state->getAttrOfType<ShardingAttr>(shardingAttrName))
    return Sharding::of(attr);
  return Sharding::replicated(state.getTensorType().getRank());
}

Axes wideAxes(MeshOp mesh) {
  Axes axes;
  for (auto [axis, size] : llvm::zip(mesh.getAxes(), mesh.getSizes()))
    if (size > 1)
      axes.push_back(cast<mlir::StringAttr>(axis).str());
  return axes;
}
} // namespace reckon::dist

using namespace mlir;
using namespace reckon;
using namespace reckon::dist;

namespace {

class ApplySpecPass
    : public reckon::dist::impl::ApplySpecBase<ApplySpecPass> {
  /// Builds `dist.mesh @world` from the program's configuration.
  FailureOr<MeshOp> buildMesh(train::ProgramOp program) {
    auto config = program.getConfig();
    auto degrees =
        config ? config->getAs<DictionaryAttr>("mesh") : DictionaryAttr();
    if (!degrees)
      return program.emitOpError("needs config.mesh to be sharded");
    static constexpr std::pair<StringLiteral, StringLiteral> axes[] = {
        {"tp", "tensor_parallel"},  {"cp", ""}, {"ep", ""},
        {"dp", "data_parallel"},    {"pp", "pipeline_parallel"}};
    auto places = config->getAs<DictionaryAttr>("origins");
    llvm::SmallVector<StringRef> names;
    llvm::SmallVector<int64_t> sizes;
    NamedAttrList origins;
    for (auto [axis, key] : axes) {
      auto size = degrees.getAs<IntegerAttr>(axis);
      names.push_back(axis);
      sizes.push_back(size ? size.getInt() : 1);
      if (auto place = places && !key.empty() ? places.getAs<StringAttr>(key)
                                              : StringAttr())
        origins.append(axis, place);
    }
    OpBuilder b(&program.getBody().front(), program.getBody().front().begin());
    return MeshOp::create(b, program.getLoc(), b.getStringAttr("world"),
                          b.getStrArrayAttr(names),
                          b.getDenseI64ArrayAttr(sizes),
                          origins.getDictionary(&getContext()));
  }

  void runOnOperation() override {
    train::ProgramOp program = getOperation();
    FailureOr<MeshOp> built = buildMesh(program);
    if (failed(built))
      return signalPassFailure();
    MeshOp mesh = *built;
    auto zero = program.getConfig()->getAs<IntegerAttr>("zero_stage");
    bool flat = zero && zero.getInt() == 1 && mesh.getAxisSize("dp") > 1;
    if (zero && zero.getInt() > 1) {
      program.emitOpError() << "supports ZeRO stages 0 and 1, got "
                            << zero.getInt();
      return signalPassFailure();
    }

    auto sequence = program.getConfig()->getAs<BoolAttr>("sequence_parallel");
    bool sequenceParallel = sequence && sequence.getValue();

    llvm::StringMap<std::optional<int64_t>> splits;
    for (auto state : program.getBody().getOps<train::StateOp>())
      if (state.getRole() == train::StateRole::Parameter)
        splits[state.getSymName()] = state.getTensorParallelDim();
    for (auto state : program.getBody().getOps<train::StateOp>()) {
      Sharding sharding =
          Sharding::replicated(state.getTensorType().getRank());
      StringRef owner = state.getParameter().value_or(state.getSymName());
      std::optional<int64_t> split = splits.lookup(owner);
      if (split && mesh.getAxisSize("tp") > 1) {
        if (*split >= state.getTensorType().getRank()) {
          state.emitOpError() << "has no dimension " << *split << " to split";
          return signalPassFailure();
        }
        sharding.dims[*split] = {"tp"};
        sharding.origin = mesh.getOrigin("tp").str();
      }
      switch (state.getRole()) {
      case train::StateRole::Gradient:
        if (mesh.getAxisSize("dp") > 1)
          sharding.unreduced = {"dp"};
        // Under sequence parallelism the weights that tensor parallelism does
        // not split (norms) see a part of the tokens on each of its ranks.
        if (sequenceParallel && !split && mesh.getAxisSize("tp") > 1)
          sharding.unreduced.push_back("tp");
        break;
      case train::StateRole::MainWeight:
      case train::StateRole::Momentum:
      case train::StateRole::Variance:
        if (flat)
          sharding.flat = {"dp"};
        break;
      default:
        break;
      }
      state->setAttr(shardingAttrName, sharding.attr(&getContext()));
    }
  }
};

} // namespace
