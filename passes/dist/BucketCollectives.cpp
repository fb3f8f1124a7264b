//===- BucketCollectives.cpp - dist-bucket-collectives --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/dist/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"

namespace reckon::dist {
#define GEN_PASS_DEF_BUCKETCOLLECTIVES
#include "passes/dist/Passes.h.inc"
} // namespace reckon::dist

using namespace mlir;
using namespace reckon;
using namespace reckon::dist;

namespace {

/// "model.layers.3.mlp.up_proj.weight" belongs to "model.layers.3"; other
/// parameters are buckets of their own.
std::string bucketName(StringRef state) {
  StringRef rest = state;
  if (!rest.consume_front("model.layers."))
    return state.str();
  return ("model.layers." + rest.take_until([](char c) { return c == '.'; }))
      .str();
}

bool isCollective(Operation *op) {
  return isa_and_nonnull<AllReduceOp, ReduceScatterOp, AllGatherOp>(op);
}

/// The state that a collective of the update reads from, perhaps through
/// another collective, or is written to.
std::string bucketOf(Operation *op) {
  Operation *source = op->getOperand(0).getDefiningOp();
  while (isCollective(source))
    source = source->getOperand(0).getDefiningOp();
  if (auto read = dyn_cast_or_null<train::ReadOp>(source))
    return bucketName(read.getState());
  for (Operation *user : op->getResult(0).getUsers())
    if (auto write = dyn_cast<train::WriteOp>(user))
      return bucketName(write.getState());
  return "";
}

/// Merges `members` (same kind, same attributes) into one operation behind the
/// last of them, and moves what reads their results behind it.
void merge(llvm::SmallVector<Operation *> members) {
  llvm::sort(members, [](Operation *a, Operation *b) {
    return a->isBeforeInBlock(b);
  });
  Operation *last = members.back();
  llvm::SmallVector<Value> inputs;
  llvm::SmallVector<Type> types;
  for (Operation *op : members) {
    inputs.push_back(op->getOperand(0));
    types.push_back(op->getResult(0).getType());
  }
  OpBuilder b(last->getContext());
  b.setInsertionPointAfter(last);
  OperationState state(last->getLoc(), last->getName(), inputs, types,
                       last->getAttrs());
  Operation *bucket = b.create(state);
  Operation *end = bucket;
  for (auto [i, op] : llvm::enumerate(members)) {
    llvm::SmallVector<Operation *> users(op->getResult(0).getUsers());
    op->getResult(0).replaceAllUsesWith(bucket->getResult(i));
    for (Operation *user : users)
      if (user->isBeforeInBlock(bucket)) {
        user->moveAfter(end);
        end = user;
      }
    op->erase();
  }
}

class BucketCollectivesPass
    : public reckon::dist::impl::BucketCollectivesBase<BucketCollectivesPass> {
  void runOnOperation() override {
    train::UpdateOp update = getOperation().getUpdate();
    if (!update)
      return;
    llvm::MapVector<StringAttr, llvm::SmallVector<Operation *>> buckets;
    for (Operation &op : update.getBody().front()) {
      if (!isCollective(&op))
        continue;
      std::string name = bucketOf(&op);
      if (name.empty())
        continue;
      // One message has one kind and one group.
      std::string axes;
      llvm::raw_string_ostream(axes) << op.getAttr("axes");
      buckets[StringAttr::get(&getContext(), op.getName().getStringRef() +
                                                 axes + name)]
          .push_back(&op);
    }
    for (auto &[key, members] : buckets)
      if (members.size() > 1)
        merge(members);
  }
};

} // namespace
