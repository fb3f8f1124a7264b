//===- Executor.cpp - what runs the action lists of one rank --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Executor.h"

#include "runtime/device/StreamDevice.h"
#include "runtime/exec/Interpreter.h"
#include "runtime/exec/StreamExecutor.h"

namespace reckon::exec {

std::unique_ptr<Executor> makeExecutor(StageProgram &program,
                                       comm::Communicator &communicator,
                                       device::Device &device, Clock &clock,
                                       BatchSource &batches,
                                       ExecutorOptions options) {
  if (device::StreamDevice *streams = device.asStreams())
    return std::make_unique<StreamExecutor>(program, communicator, *streams,
                                            clock, batches, std::move(options));
  return std::make_unique<Interpreter>(program, communicator, device, clock,
                                       batches, std::move(options));
}

Error atInstruction(const Error &error, const plan::ActionT &action,
                    const plan::InstructionT &instruction) {
  bool kernel = instruction.op == plan::Opcode::launch;
  std::string what =
      kernel ? std::string("kernel ") + plan::EnumNameKernel(instruction.kernel)
             : plan::EnumNameOpcode(instruction.op);
  return makeError(error.code, "action " + action.label + ", " + what + " of " +
                                   instruction.layer + " (" +
                                   instruction.source + "): " + error.message);
}

} // namespace reckon::exec
