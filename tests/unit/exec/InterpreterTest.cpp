//===- InterpreterTest.cpp - streams, events, faults ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Interpreter.h"
#include "tests/unit/exec/TinyPlan.h"

#include "runtime/device/CpuDevice.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::test;

namespace {

class NoBatches : public exec::BatchSource {
  Status load(uint32_t, bool, std::span<int32_t>) override { return {}; }
};

/// A plan of one rank whose only fragment works on one lane of 64 doubles.
class OneFragment {
public:
  OneFragment() {
    plan.mesh = std::make_unique<MeshT>();
    plan.mesh->tp = plan.mesh->cp = plan.mesh->ep = plan.mesh->dp =
        plan.mesh->pp = 1;
    plan.version = kPlanFormat;
    plan.sequence_length = plan.micro_batch_size = plan.num_micro_batches =
        plan.global_batch_size = 1;
    plan.vocab_size = 1;
    plan.optimizer = std::make_unique<OptimizerT>();
    plan.data = std::make_unique<DataT>();
    for (int i = 0; i < 3; ++i)
      plan.streams.push_back(std::make_unique<StreamT>());
    plan.lanes.push_back(std::make_unique<LaneT>());
    plan.lanes[0]->bytes = plan.arena_bytes = 512;
    plan.fragments.push_back(std::make_unique<FragmentT>());
    plan.lists.push_back(std::make_unique<ActionListT>());
    plan.lists[0]->name = "step";
    addAction("only");
  }

  FragmentT &fragment() { return *plan.fragments[0]; }

  ActionT &addAction(const std::string &label) {
    auto action = std::make_unique<ActionT>();
    action->label = label;
    plan.lists[0]->actions.push_back(std::move(action));
    return *plan.lists[0]->actions.back();
  }

  InstructionT &add(Opcode op, uint32_t stream, uint32_t event = 0) {
    auto instruction = std::make_unique<InstructionT>();
    instruction->op = op;
    instruction->stream = stream;
    instruction->event = event;
    fragment().instructions.push_back(std::move(instruction));
    return *fragment().instructions.back();
  }

  std::unique_ptr<BufferT> doubles(int64_t first, int64_t count) {
    auto buffer = std::make_unique<BufferT>();
    buffer->region = Region::lane;
    buffer->dtype = DType::f64;
    buffer->shape = {count};
    buffer->offset = constantExpr(first * 8);
    return buffer;
  }

  void copy(uint32_t stream, int64_t from, int64_t to) {
    InstructionT &instruction = add(Opcode::copy, stream);
    instruction.inputs.push_back(doubles(from, 1));
    instruction.outputs.push_back(doubles(to, 1));
  }

  /// Runs the list; data() holds the lane afterwards.
  Status run(exec::ExecutorOptions options = {}, int times = 1) {
    Status valid = validateStagePlan(plan, "test");
    EXPECT_TRUE(valid.ok()) << valid.error().message;
    device = take(device::makeCpuDevice({.threads = 1, .isa = {}}));
    world = take(comm::makeLocalWorld(1, {}));
    auto *arena = static_cast<std::byte *>(*device->allocateArena(512));
    data = reinterpret_cast<double *>(arena);
    data[0] = 42;
    auto connections = exec::connectStage(plan, {}, *world[0]);
    EXPECT_TRUE(connections.ok());
    EXPECT_TRUE(world[0]->start().ok());
    program =
        take(exec::StageProgram::bind(plan, {}, *connections, *device, arena));
    NoBatches batches;
    interpreter = std::make_unique<exec::Interpreter>(
        *program, *world[0], *device, systemClock(), batches, options);
    Status status;
    for (int i = 0; i < times && status.ok(); ++i)
      status = interpreter->run(*program->list("step"));
    return status;
  }

  StagePlanT plan;
  std::unique_ptr<device::Device> device;
  std::vector<std::unique_ptr<comm::Communicator>> world;
  std::unique_ptr<exec::StageProgram> program;
  std::unique_ptr<exec::Interpreter> interpreter;
  double *data = nullptr;
};

} // namespace

/// A chain of copies over three streams is in order only through its events.
TEST(Interpreter, EventsOrderStreams) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    OneFragment test;
    test.fragment().events = 2;
    test.add(Opcode::wait, 2, 1); // nothing recorded yet: passes
    test.copy(0, 0, 1);
    test.add(Opcode::record, 0, 0);
    test.add(Opcode::wait, 1, 0);
    test.copy(1, 1, 2);
    test.add(Opcode::record, 1, 1);
    test.add(Opcode::wait, 2, 1);
    test.copy(2, 2, 3);
    exec::ExecutorOptions options;
    options.queueSeed = seed;
    ASSERT_TRUE(test.run(options).ok());
    EXPECT_EQ(test.data[3], 42) << seed;
  }
}

TEST(Interpreter, AWaitIsForTheNewestRecordIssuedBeforeIt) {
  OneFragment test;
  test.fragment().events = 1;
  // The second record is issued after the wait, so the wait must not need it:
  // it comes only after the waiting stream's own work.
  test.add(Opcode::record, 0, 0);
  test.add(Opcode::wait, 1, 0);
  test.copy(1, 0, 5);
  test.add(Opcode::record, 1, 0);
  test.add(Opcode::wait, 0, 0);
  test.copy(0, 5, 6);
  ASSERT_TRUE(test.run({}, 3).ok());
  EXPECT_EQ(test.data[6], 42);
}

TEST(Interpreter, CompilerErrorInEventsIsAHangWithTheAction) {
  OneFragment test;
  // Stream 0 waits for an event that is recorded on stream 1 behind a wait for
  // an event of stream 0: a cycle over two actions' events.
  test.plan.lists[0]->events = 1;
  test.fragment().events = 2;
  test.add(Opcode::record, 1, 1);
  ActionT &action = *test.plan.lists[0]->actions[0];
  action.records = {0};
  ASSERT_TRUE(test.run().ok());
  // Now break the bound program: the event is issued but never completed.
  exec::BoundList *list = test.program->list("step");
  list->events[0].issued = 100;
  list->actions[0].waits = {&list->events[0]};
  list->itemsOfStream[0] += 1;
  Status status = test.interpreter->run(*list);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ExitCode::Hang);
  EXPECT_NE(status.error().message.find("stream 0 in only"), std::string::npos)
      << status.error().message;
}

TEST(Interpreter, CollectivesOfOneRankCopy) {
  OneFragment test;
  auto group = std::make_unique<GroupT>();
  group->name = "tp";
  group->axes = {Axis::tp};
  test.plan.groups.push_back(std::move(group));
  InstructionT &reduce = test.add(Opcode::all_reduce, 1);
  reduce.inputs.push_back(test.doubles(0, 1));
  reduce.outputs.push_back(test.doubles(1, 1));
  InstructionT &gather = test.add(Opcode::all_gather, 1);
  gather.inputs.push_back(test.doubles(1, 1));
  gather.outputs.push_back(test.doubles(2, 1));
  InstructionT &scatter = test.add(Opcode::reduce_scatter, 1);
  scatter.inputs.push_back(test.doubles(2, 1));
  scatter.outputs.push_back(test.doubles(3, 1));
  ASSERT_TRUE(test.run().ok());
  EXPECT_EQ(test.data[3], 42);
}

TEST(Interpreter, FaultComesBeforeItsInstruction) {
  for (int64_t at = 0; at < 3; ++at) {
    OneFragment test;
    test.fragment().events = 1;
    test.copy(0, 0, 1);
    test.add(Opcode::record, 0, 0); // not counted
    test.copy(0, 1, 2);
    test.copy(0, 2, 3);
    exec::ExecutorOptions options;
    options.faultAt = at;
    int done = -1;
    options.fault = [&] {
      done = 0;
      for (int i = 1; i <= 3; ++i)
        done += test.data[i] == 42;
    };
    ASSERT_TRUE(test.run(options).ok());
    EXPECT_EQ(done, at);
    EXPECT_EQ(test.program->list("step")->work, 3);
  }
}

TEST(Interpreter, ReportsAStepsTimes) {
  OneFragment test;
  for (int i = 0; i < 50; ++i)
    test.copy(0, 0, 1);
  ASSERT_TRUE(test.run().ok());
  EXPECT_GT(test.interpreter->times().compute, 0);
  EXPECT_EQ(test.interpreter->times().communication, 0);
}

TEST(Interpreter, KernelsHaveTheSameNumbersInPlanAndDevice) {
  for (Kernel kernel : EnumValuesKernel()) {
    const auto *signature =
        device::kernelSignature(static_cast<device::Kernel>(kernel));
    if (kernel == Kernel::none)
      continue;
    ASSERT_NE(signature, nullptr);
    EXPECT_EQ(signature->name, EnumNameKernel(kernel));
  }
  for (DType dtype : EnumValuesDType()) {
    EXPECT_EQ(device::dtypeName(static_cast<device::DType>(dtype)),
              EnumNameDType(dtype));
    // Codes of fp8 never travel: only their magnitudes do.
    bool travels = dtype != DType::f8e4m3 && dtype != DType::f8e5m2;
    EXPECT_EQ(comm::elementBytes(static_cast<comm::DType>(dtype)),
              travels ? static_cast<size_t>(dtypeSize(dtype)) : 0);
  }
}

TEST(Interpreter, ABadKernelCallNamesFragmentAndInstruction) {
  OneFragment test;
  InstructionT &instruction = test.add(Opcode::launch, 0);
  instruction.kernel = Kernel::linear;
  instruction.source = "model.yaml:3:5";
  auto device = take(device::makeCpuDevice({.threads = 1, .isa = {}}));
  auto *arena = static_cast<std::byte *>(*device->allocateArena(512));
  test.fragment().name = "forward";
  auto program = exec::StageProgram::bind(test.plan, {}, {}, *device, arena);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, ExitCode::Incompatible);
  EXPECT_EQ(program.error().message.find(
                "fragment forward, instruction 0 (model.yaml:3:5): "),
            0u)
      << program.error().message;
}
