//===- Unroll.h - an action list as what its streams receive --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_UNROLL_H
#define RECKON_PASSES_PROVE_UNROLL_H

#include "passes/prove/Program.h"

namespace reckon::prove {

/// One entry of a stream's queue.
struct Item {
  enum Kind : uint8_t { Wait, Record, Work };
  Kind kind = Work;
  uint32_t stream = 0;
  uint32_t event = 0; ///< Wait, Record: of the list, then of every fragment
  unsigned step = 0;
  Place place;
};

/// Calls `visit` with every item in the order in which the host issues them
/// (that of exec::Interpreter::issueOne), for `steps` steps without a barrier
/// between them; stops at the first error.
template <typename Visitor>
Status unroll(const Stage &stage, unsigned steps, Visitor &&visit) {
  for (unsigned step = 0; step < steps; ++step)
    for (uint32_t number = 0; number < stage.list->actions.size(); ++number) {
      const plan::ActionT &action = *stage.list->actions[number];
      Item item;
      item.step = step;
      item.place.action = number;
      item.stream = action.stream;
      item.kind = Item::Wait;
      for (uint32_t event : action.waits) {
        item.event = event;
        RECKON_TRY(visit(item));
      }
      if (action.kind != plan::ActionKind::run) {
        item.kind = Item::Work;
        RECKON_TRY(visit(item));
      } else {
        const PreparedFragment &fragment = stage.fragments[action.fragment];
        for (const PreparedInstruction &instruction : fragment.instructions) {
          const plan::InstructionT &source = *instruction.source;
          ++item.place.instruction;
          item.kind = source.op == plan::Opcode::wait     ? Item::Wait
                      : source.op == plan::Opcode::record ? Item::Record
                                                          : Item::Work;
          item.stream = source.stream;
          item.event = fragment.firstEvent + source.event;
          RECKON_TRY(visit(item));
        }
      }
      item.place.instruction = -1;
      item.stream = action.stream;
      item.kind = Item::Record;
      for (uint32_t event : action.records) {
        item.event = event;
        RECKON_TRY(visit(item));
      }
    }
  return Status::success();
}

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_UNROLL_H
