//===- SplitUpdate.cpp - who owns which state, and the update per stage ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/pipe/SplitUpdate.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace reckon::pipe {

SmallVector<StringRef> referencedSymbols(Operation *op) {
  SmallVector<StringRef> names;
  for (NamedAttribute attribute : op->getAttrDictionary())
    attribute.getValue().walk([&](FlatSymbolRefAttr reference) {
      names.push_back(reference.getValue());
    });
  return names;
}

//===----------------------------------------------------------------------===//
// StateOwners
//===----------------------------------------------------------------------===//

void StateOwners::use(Operation *op, size_t stage) {
  for (StringRef name : referencedSymbols(op))
    owners.try_emplace(name, stages).first->second.set(stage);
}

bool StateOwners::holds(StringRef state, size_t stage) const {
  auto it = owners.find(state);
  return it != owners.end() && it->second.test(stage);
}

LogicalResult StateOwners::complete(train::ProgramOp program) {
  for (auto state : program.getBody().getOps<train::StateOp>()) {
    auto &own = owners.try_emplace(state.getSymName(), stages).first->second;
    if (state.getRole() == train::StateRole::Scalars ||
        state.getRole() == train::StateRole::Metrics)
      own.set();
    if (state.getRole() == train::StateRole::Parameter && own.count() > 1)
      return state.emitOpError("is used by stages ")
             << own.find_first() << " and " << own.find_next(own.find_first())
             << ", expected one; sharing a parameter between stages is not "
                "supported, choose a layout that keeps its layers together";
  }
  for (auto state : program.getBody().getOps<train::StateOp>())
    if (auto parameter = state.getParameter())
      if (auto own = owners.find(*parameter); own != owners.end())
        owners[state.getSymName()] |= own->second;
  return success();
}

//===----------------------------------------------------------------------===//
// splitUpdate
//===----------------------------------------------------------------------===//

/// The op restricted to the operands at `kept`: for ops that work on each
/// operand alone, with one result per operand or none.
static FailureOr<Operation *> restrict(Operation *op, ArrayRef<unsigned> kept,
                                       OpBuilder &builder,
                                       const IRMapping &mapping) {
  bool perOperand = op->getNumResults() == op->getNumOperands();
  if (!perOperand && op->getNumResults() != 0) {
    op->emitOpError("works on states of several stages and has not one result "
                    "per operand, so it cannot be split between them");
    return failure();
  }
  OperationState state(op->getLoc(), op->getName());
  for (unsigned number : kept) {
    state.operands.push_back(mapping.lookup(op->getOperand(number)));
    if (perOperand)
      state.types.push_back(op->getResult(number).getType());
  }
  for (NamedAttribute attribute : op->getAttrDictionary()) {
    // One entry per operand.
    auto entries = dyn_cast<ArrayAttr>(attribute.getValue());
    if (attribute.getName() == "replica_axes" && entries &&
        entries.size() == op->getNumOperands()) {
      SmallVector<Attribute> part;
      for (unsigned number : kept)
        part.push_back(entries[number]);
      attribute.setValue(builder.getArrayAttr(part));
    }
    state.attributes.push_back(attribute);
  }
  return builder.create(state);
}

LogicalResult splitUpdate(train::UpdateOp update, const StateOwners &owners,
                          ArrayRef<FragmentOp> fragments) {
  SmallVector<IRMapping> mappings(fragments.size());
  for (Operation &op : update.getBody().front().without_terminator()) {
    SmallVector<StringRef> symbols = referencedSymbols(&op);
    for (auto [stage, fragment] : llvm::enumerate(fragments)) {
      if (!llvm::all_of(symbols, [&, stage = stage](StringRef name) {
            return owners.holds(name, stage);
          }))
        continue;
      IRMapping &mapping = mappings[stage];
      SmallVector<unsigned> kept;
      for (OpOperand &operand : op.getOpOperands())
        if (mapping.contains(operand.get()))
          kept.push_back(operand.getOperandNumber());
      OpBuilder builder = OpBuilder::atBlockEnd(FragmentOp(fragment).getBody());
      if (kept.size() == op.getNumOperands()) {
        builder.clone(op, mapping);
        continue;
      }
      if (kept.empty())
        continue;
      FailureOr<Operation *> part = restrict(&op, kept, builder, mapping);
      if (failed(part))
        return failure();
      if ((*part)->getNumResults() > 0)
        for (auto [number, result] : llvm::zip(kept, (*part)->getResults()))
          mapping.map(op.getResult(number), result);
    }
  }
  return success();
}

} // namespace reckon::pipe
