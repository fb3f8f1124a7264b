//===- OrderTest.cpp - races, deadlocks, disagreement, overlap ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/prove/PlanBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;
using testing::HasSubstr;

namespace {

std::string detail;

// --- Order ------------------------------------------------------------------

/// A kernel fills the lane, a collective on the other stream reads it, a kernel
/// overwrites it.
std::unique_ptr<PlanBuilder> producerAndReader(bool first, bool second) {
  auto b = std::make_unique<PlanBuilder>(mesh(2, 1, 1));
  uint32_t tp = b->group("tp", {Axis::tp});
  uint32_t f = b->fragment("forward");
  b->launch(f, Kernel::fill_zero).outputs.push_back(b->lane(0, 16));
  if (first) {
    b->record(f, 0);
    b->wait(f, 0, 1);
  }
  InstructionT &sum = b->collective(f, Opcode::all_reduce, tp, 1);
  sum.inputs.push_back(b->lane(0, 16));
  sum.outputs.push_back(b->lane(64, 16));
  if (second) {
    b->record(f, 1, 1);
    b->wait(f, 1);
  }
  b->launch(f, Kernel::fill_zero).outputs.push_back(b->lane(32, 16));
  b->run("0F0", f);
  return b;
}

TEST(Order, EventsOrderStreams) {
  auto b = producerAndReader(true, true);
  EXPECT_EQ(errorOf(checkOrder(*programOf({b.get()}), detail)), "");
}

TEST(Order, ReadBehindWriteNeedsAnEvent) {
  auto b = producerAndReader(false, true);
  std::string error = errorOf(checkOrder(*programOf({b.get()}), detail));
  EXPECT_THAT(error, HasSubstr("instruction 1: all_reduce sum over tp "
                               "(layers.0, tiny.yaml:3:5) reads bytes of lane "
                               "workspace on stream other"));
  EXPECT_THAT(error, HasSubstr("not ordered behind rank 0 (tp 0), action 0F0, "
                               "fragment forward, instruction 0: fill_zero"));
}

TEST(Order, WriteBehindReadNeedsAnEvent) {
  auto b = producerAndReader(true, false);
  EXPECT_THAT(errorOf(checkOrder(*programOf({b.get()}), detail)),
              HasSubstr("which reads them on stream other"));
}

TEST(Order, TheStepBeforeCounts) {
  // The other stream's last read in a step meets the next step's first write.
  PlanBuilder b;
  uint32_t f = b.fragment("f");
  b.launch(f, Kernel::fill_zero).outputs.push_back(b.lane(0, 16));
  b.record(f, 0);
  b.wait(f, 0, 1);
  InstructionT &copy = b.launch(f, Kernel::copy, 1);
  copy.inputs.push_back(b.lane(0, 16));
  copy.outputs.push_back(b.lane(64, 16));
  b.run("0F0", f);
  EXPECT_THAT(errorOf(checkOrder(*programOf({&b}), detail)),
              HasSubstr("of the step before"));
  b.record(f, 1, 1);
  b.wait(f, 1);
  EXPECT_EQ(errorOf(checkOrder(*programOf({&b}), detail)), "");
}

TEST(Order, AnEventHasOneStream) {
  PlanBuilder b;
  uint32_t f = b.fragment("f");
  b.record(f, 0, 0);
  b.record(f, 0, 1);
  b.run("0F0", f);
  EXPECT_THAT(errorOf(checkOrder(*programOf({&b}), detail)),
              HasSubstr("a wait cannot tell the two apart"));
}

TEST(Order, ACommunicatorKeepsItsOrder) {
  PlanBuilder b(mesh(2, 1, 1));
  uint32_t tp = b.group("tp", {Axis::tp});
  uint32_t f = b.fragment("f");
  for (uint32_t stream : {0u, 1u}) {
    InstructionT &sum = b.collective(f, Opcode::all_reduce, tp, stream);
    sum.inputs.push_back(b.lane(stream * 256, 16));
    sum.outputs.push_back(b.lane(stream * 256, 16));
  }
  b.run("0F0", f);
  EXPECT_THAT(errorOf(checkOrder(*programOf({&b}), detail)),
              HasSubstr("may overtake"));
}

// --- Deadlock ---------------------------------------------------------------

/// Stage 0 sends on channel 0 and receives on channel 1; stage 1 the reverse.
std::string exchange(bool sameOrder, uint32_t secondStream) {
  PlanBuilder a(mesh(1, 1, 2), 0), b(mesh(1, 1, 2), 1);
  for (PlanBuilder *side : {&a, &b}) {
    side->channel(0, 0, 1);
    side->channel(1, 1, 0);
  }
  a.message(ActionKind::send, "0SEND_F0", 0, 0);
  a.message(ActionKind::recv, "0RECV_B0", 1, secondStream);
  if (sameOrder) {
    b.message(ActionKind::recv, "1RECV_F0", 0, 0);
    b.message(ActionKind::send, "1SEND_B0", 1, secondStream);
  } else {
    b.message(ActionKind::send, "1SEND_B0", 1, 0);
    b.message(ActionKind::recv, "1RECV_F0", 0, secondStream);
  }
  auto program = programOf({&a, &b});
  EXPECT_EQ(errorOf(checkAgreement(*program, detail)), "");
  return errorOf(checkDeadlock(*program, detail));
}

TEST(Deadlock, OneStreamNeedsOneOrder) {
  EXPECT_EQ(exchange(true, 0), "");
  std::string error = exchange(false, 0);
  EXPECT_THAT(error, HasSubstr("the plan deadlocks"));
  EXPECT_THAT(error, HasSubstr("action 0RECV_B0"));
  EXPECT_THAT(error, HasSubstr("waits for rank 0 (pp 0), action 0SEND_F0"));
}

TEST(Deadlock, OwnStreamsNeedNone) { EXPECT_EQ(exchange(false, 1), ""); }

TEST(Deadlock, EventsCanCloseACycle) {
  PlanBuilder a(mesh(1, 1, 2), 0), b(mesh(1, 1, 2), 1);
  for (PlanBuilder *side : {&a, &b}) {
    side->channel(0, 0, 1);
    side->channel(1, 1, 0);
  }
  // Both sides receive before they send.
  a.message(ActionKind::recv, "0RECV_B0", 1, 0).records = {0};
  a.message(ActionKind::send, "0SEND_F0", 0, 1).waits = {0};
  b.message(ActionKind::recv, "1RECV_F0", 0, 0).records = {0};
  ActionT &send = b.message(ActionKind::send, "1SEND_B0", 1, 1);
  EXPECT_EQ(errorOf(checkDeadlock(*programOf({&a, &b}), detail)), "");
  send.waits = {0};
  EXPECT_THAT(errorOf(checkDeadlock(*programOf({&a, &b}), detail)),
              HasSubstr("deadlocks"));
}

/// Stage 0 receives on channel 1, then sends on 2 and on 0; stage 1 answers the
/// message of channel 0. The send on 2 has to wait for the receive.
std::string startsInOrder(bool lastFirst) {
  PlanBuilder a(mesh(1, 1, 2), 0), b(mesh(1, 1, 2), 1);
  for (PlanBuilder *side : {&a, &b}) {
    side->channel(0, 0, 1);
    side->channel(1, 1, 0);
    side->channel(2, 0, 1);
  }
  if (lastFirst)
    a.message(ActionKind::send, "0SEND_F1", 0, 1);
  a.message(ActionKind::recv, "0RECV_B0", 1, 0);
  a.message(ActionKind::send, "0SEND_F0", 2, 0);
  if (!lastFirst)
    a.message(ActionKind::send, "0SEND_F1", 0, 1);
  b.message(ActionKind::recv, "1RECV_F1", 0, 0);
  b.message(ActionKind::send, "1SEND_B0", 1, 0);
  b.message(ActionKind::recv, "1RECV_F0", 2, 0);
  return errorOf(checkDeadlock(*programOf({&a, &b}), detail));
}

TEST(Deadlock, OperationsStartInTheOrderOfIssue) {
  EXPECT_EQ(startsInOrder(true), "");
  std::string error = startsInOrder(false);
  EXPECT_THAT(error, HasSubstr("action 0SEND_F1 waits for the start of rank 0 "
                               "(pp 0), action 0SEND_F0"));
  EXPECT_THAT(error, HasSubstr("waits for rank 0 (pp 0), action 0RECV_B0, "
                               "which ends with rank 1 (pp 1), action "
                               "1SEND_B0"));
}

/// A message and a collective share a stream on each side.
std::string sharedStream(bool sameOrder) {
  PlanBuilder a(mesh(1, 1, 2), 0), b(mesh(1, 1, 2), 1);
  for (PlanBuilder *side : {&a, &b}) {
    bool sends = side == &a;
    side->channel(0, 0, 1);
    uint32_t world = side->group("world", {Axis::pp});
    uint32_t f = side->fragment("update");
    InstructionT &sum = side->collective(f, Opcode::all_reduce, world, 1);
    sum.inputs.push_back(side->lane(0, 4));
    sum.outputs.push_back(side->lane(0, 4));
    if (!sends && !sameOrder)
      side->run("1UPDATE", f);
    side->message(sends ? ActionKind::send : ActionKind::recv,
                  sends ? "0SEND_F0" : "1RECV_F0", 0, 1);
    if (sends || sameOrder)
      side->run(sends ? "0UPDATE" : "1UPDATE", f);
  }
  return errorOf(checkDeadlock(*programOf({&a, &b}), detail));
}

TEST(Deadlock, CollectivesAndMessagesOfAStreamNeedOneOrder) {
  EXPECT_EQ(sharedStream(true), "");
  std::string error = sharedStream(false);
  EXPECT_THAT(error, HasSubstr("all_reduce sum over world"));
  EXPECT_THAT(error, HasSubstr("action 1RECV_F0"));
}

/// The host has to issue `items` kernels on a stream that waits for a message
/// before it comes to the one that the other side waits for.
std::string issuedAhead(unsigned items) {
  PlanBuilder a(mesh(1, 1, 2), 0), b(mesh(1, 1, 2), 1);
  for (PlanBuilder *side : {&a, &b}) {
    side->channel(0, 0, 1);
    side->channel(1, 1, 0);
  }
  a.message(ActionKind::recv, "0RECV_B0", 1, 1);
  uint32_t f = a.fragment("f");
  for (unsigned i = 0; i < items; ++i)
    a.launch(f, Kernel::fill_zero, 1).outputs.push_back(a.lane(0, 16));
  a.run("0F0", f);
  a.message(ActionKind::send, "0SEND_F0", 0, 0);
  b.message(ActionKind::recv, "1RECV_F0", 0, 0);
  b.message(ActionKind::send, "1SEND_B0", 1, 0);
  return errorOf(checkDeadlock(*programOf({&a, &b}), detail));
}

TEST(Deadlock, AStreamHoldsSoManyItemsAndTheHostWaits) {
  // The start order alone does not forbid this: the receive starts.
  EXPECT_EQ(issuedAhead(999), "");
  EXPECT_THAT(issuedAhead(1000), HasSubstr("the plan deadlocks"));
}

// --- Agreement --------------------------------------------------------------

TEST(Agreement, MessagesHaveTwoSides) {
  PlanBuilder a(mesh(1, 1, 2), 0), b(mesh(1, 1, 2), 1);
  a.channel(0, 0, 1);
  b.channel(0, 0, 1);
  a.message(ActionKind::send, "0SEND_F0", 0, 0);
  EXPECT_THAT(errorOf(checkAgreement(*programOf({&a, &b}), detail)),
              HasSubstr("action 0SEND_F0, operation 0 of channel channel0"));
  b.message(ActionKind::recv, "1RECV_F0", 0, 0).buffers[0]->shape = {8};
  EXPECT_THAT(errorOf(checkAgreement(*programOf({&a, &b}), detail)),
              HasSubstr("is 16 x f32, but the other party, rank 1 (pp 1), "
                        "action 1RECV_F0, is 8 x f32"));
}

TEST(Agreement, StagesOfAGroupDoTheSame) {
  PlanBuilder a(mesh(1, 1, 2), 0), b(mesh(1, 1, 2), 1);
  for (PlanBuilder *side : {&a, &b}) {
    uint32_t world = side->group("world", {Axis::pp});
    uint32_t f = side->fragment("update");
    InstructionT &sum = side->collective(f, Opcode::all_reduce, world);
    sum.inputs.push_back(side->lane(0, 4));
    sum.outputs.push_back(side->lane(0, 4));
    side->run("update", f);
  }
  EXPECT_EQ(errorOf(checkAgreement(*programOf({&a, &b}), detail)), "");
  b.plan().fragments[0]->instructions[0]->reduction = Reduction::max;
  EXPECT_THAT(errorOf(checkAgreement(*programOf({&a, &b}), detail)),
              HasSubstr("is all_reduce sum of 4 x f32, but the other party"));
  b.list().actions.clear();
  EXPECT_THAT(errorOf(checkAgreement(*programOf({&a, &b}), detail)),
              HasSubstr("the collective is missing"));
}

TEST(Agreement, AGroupHasAllRanksOfItsStage) {
  PlanBuilder b(mesh(2, 1, 1));
  b.group("tp", {Axis::tp});
  auto filter = std::make_unique<AxisFilterT>();
  filter->axis = Axis::tp;
  filter->values = {0};
  b.plan().groups[0]->filters.push_back(std::move(filter));
  EXPECT_THAT(errorOf(checkAgreement(*programOf({&b}), detail)),
              HasSubstr("leaves out ranks of the stage with tp 1"));
}

// --- Arena and slots --------------------------------------------------------

TEST(Arena, RegionsLieApart) {
  PlanBuilder b;
  b.state("w", 512);
  b.slotClass("stash", 2);
  EXPECT_EQ(errorOf(checkArena(*programOf({&b}), detail)), "");
  b.plan().states[0]->offset += 256;
  EXPECT_THAT(errorOf(checkArena(*programOf({&b}), detail)),
              HasSubstr("slot class stash at byte 4608 overlaps state w"));
}

TEST(Arena, KernelsWorkInPlaceOnlyWhereTheyMay) {
  PlanBuilder b;
  uint32_t f = b.fragment("f");
  InstructionT &it = b.launch(f, Kernel::add);
  it.inputs.push_back(b.lane(0, 16));
  it.inputs.push_back(b.lane(64, 16));
  it.outputs.push_back(b.lane(64, 16));
  b.run("0F0", f);
  EXPECT_EQ(errorOf(checkArena(*programOf({&b}), detail)), "");
  it.outputs[0]->offset->base = 60;
  EXPECT_THAT(errorOf(checkArena(*programOf({&b}), detail)),
              HasSubstr("output 0 overwrites bytes of input 0"));
  it.outputs[0]->offset->base = 64;
  it.kernel = Kernel::linear;
  EXPECT_THAT(errorOf(checkArena(*programOf({&b}), detail)),
              HasSubstr("output 0 overwrites bytes of input 1"));
}

TEST(Arena, AGatherInPlaceTakesItsOwnBlock) {
  PlanBuilder b(mesh(1, 2, 1));
  uint32_t w = b.state("w", 128);
  uint32_t dp = b.group("dp", {Axis::dp});
  uint32_t f = b.fragment("f");
  InstructionT &it = b.collective(f, Opcode::all_gather, dp);
  it.inputs.push_back(b.state(w, 0, 16));
  it.inputs[0]->offset->terms.push_back(Term(Axis::dp, 64));
  it.outputs.push_back(b.state(w, 0, 32));
  b.run("update", f);
  EXPECT_EQ(errorOf(checkArena(*programOf({&b}), detail)), "");
  it.inputs[0]->offset->terms.clear();
  EXPECT_THAT(errorOf(checkArena(*programOf({&b}), detail)),
              HasSubstr("in a way that the operation does not allow"));
}

TEST(Slots, AreUsedInTurn) {
  PlanBuilder b;
  uint32_t cls = b.slotClass("stash", 1);
  uint32_t f = b.fragment("forward", {cls});
  b.run("0F0", f, {acquire(cls, 0)});
  b.run("0B0", f, {release(cls, 0)});
  EXPECT_EQ(errorOf(checkSlots(*programOf({&b}), detail)), "");
  b.run("0B1", f, {release(cls, 0)});
  EXPECT_THAT(errorOf(checkSlots(*programOf({&b}), detail)),
              HasSubstr("uses slot 0 of class stash, which nothing has"));
  b.list().actions[2]->bindings[0]->acquire = true;
  b.list().actions[2]->bindings[0]->release = false;
  EXPECT_THAT(errorOf(checkSlots(*programOf({&b}), detail)),
              HasSubstr("that nothing releases in this step"));
}

TEST(Slots, AreAsManyAsAreInFlight) {
  PlanBuilder b;
  uint32_t cls = b.slotClass("stash", 2);
  uint32_t f = b.fragment("forward", {cls});
  b.run("0F0", f, {both(cls, 0)});
  b.run("0F1", f, {both(cls, 1)});
  EXPECT_THAT(errorOf(checkSlots(*programOf({&b}), detail)),
              HasSubstr("class stash has 2 slots, but 1 are in flight"));
}

} // namespace
