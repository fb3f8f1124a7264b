//===- BufferClasses.cpp - which values of a fragment share a buffer ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/BufferClasses.h"

#include "dialect/Dist/Dist.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reckon;
using namespace reckon::planir;

int64_t reckon::planir::tensorBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * (type.getElementTypeBitWidth() / 8);
}

train::AccumulateOp reckon::planir::fusedAccumulate(Operation *op) {
  if (!isa<train::LinearGradWeightOp, train::RmsNormGradWeightOp,
           train::EmbeddingGradOp, train::LinearFp8Op>(op) ||
      !op->getResult(0).hasOneUse())
    return nullptr;
  return dyn_cast<train::AccumulateOp>(*op->getResult(0).user_begin());
}

/// Operands whose buffer result number `result` may take over, best first.
static SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned result) {
  return llvm::TypeSwitch<Operation *, SmallVector<unsigned>>(op)
      .Case<dist::AllReduceOp>(
          [&](auto) { return SmallVector<unsigned>{result}; })
      .Case<train::AddOp>([](auto) { return SmallVector<unsigned>{1, 0}; })
      .Case<train::RopeOp, train::SwigluGradOp, train::RmsNormGradInputOp,
            train::CrossEntropyGradOp>([&](auto) {
        return result == 0 ? SmallVector<unsigned>{0} : SmallVector<unsigned>{};
      })
      .Default([](Operation *) { return SmallVector<unsigned>{}; });
}

BufferClasses::BufferClasses(pipe::FragmentOp fragment) {
  for (auto [number, value] : llvm::enumerate(fragment.getReturn().getValues()))
    returned.try_emplace(value, static_cast<int>(number));
  for (Operation &op : fragment.getBody()->without_terminator())
    addOp(&op);
}

std::optional<unsigned> BufferClasses::lookup(Value value) const {
  auto it = index.find(value);
  return it == index.end() ? std::nullopt : std::optional(it->second);
}

bool BufferClasses::deadAfter(Value value, Operation *op) const {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == op || user->isBeforeInBlock(op);
  });
}

std::optional<unsigned>
BufferClasses::reuse(Operation *op, unsigned result,
                     const llvm::DenseSet<unsigned> &taken) const {
  for (unsigned number : inPlaceOperands(op, result)) {
    Value operand = op->getOperand(number);
    auto buffer = lookup(operand);
    if (!buffer || returned.contains(operand) || !deadAfter(operand, op) ||
        tensorBytes(operand) != tensorBytes(op->getResult(result)))
      continue;
    // One place in a slot holds one returned value.
    if (buffers[*buffer].returned >= 0 || taken.contains(*buffer))
      continue;
    return buffer;
  }
  return std::nullopt;
}

void BufferClasses::addOp(Operation *op) {
  if (isa<train::ReadOp, train::AdamwOp>(op)) {
    for (Value result : op->getResults())
      states.insert(result);
    return;
  }
  if (fusedAccumulate(op))
    return;
  // A collective on states leaves its result in the state.
  if (isa<dist::AllReduceOp, dist::ReduceScatterOp, dist::AllGatherOp,
          dist::SliceOp>(op) &&
      llvm::all_of(op->getOperands(),
                   [&](Value value) { return isState(value); })) {
    for (Value result : op->getResults())
      states.insert(result);
    return;
  }
  llvm::DenseSet<unsigned> taken;
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    auto buffer = reuse(op, number, taken);
    if (!buffer) {
      buffer = buffers.size();
      buffers.push_back({result});
    }
    taken.insert(*buffer);
    index[result] = *buffer;
    if (auto it = returned.find(result); it != returned.end())
      buffers[*buffer].returned = it->second;
    buffers[*buffer].logits |=
        llvm::any_of(result.getUsers(), [&, result = result](Operation *user) {
          return isa<train::CrossEntropyMaxOp>(user);
        });
  }
}
