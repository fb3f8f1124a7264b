//===- Executor.h - what runs the action lists of one rank ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Two implementations: the Interpreter drives the plan's streams itself, for
// devices that run a kernel when they are told to (the processor); the
// StreamExecutor issues everything to a device that has streams.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_EXECUTOR_H
#define RECKON_RUNTIME_EXEC_EXECUTOR_H

#include "runtime/base/Os.h"
#include "runtime/exec/StageProgram.h"

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace reckon::exec {

/// Writes one half of a micro-batch's samples into host memory.
class BatchSource {
public:
  virtual ~BatchSource() = default;
  virtual Status load(uint32_t microbatch, bool targets,
                      std::span<int32_t> out) = 0;
};

/// How often a kernel ran in a step, and how long in all.
struct KernelTime {
  int64_t calls = 0;
  int64_t nanoseconds = 0;
};

/// Where the time of a step went, in nanoseconds of this rank's thread.
struct StepTimes {
  int64_t compute = 0;       ///< in kernels and copies
  int64_t communication = 0; ///< nothing to run, a collective under way
  int64_t idle = 0;          ///< nothing to run but messages of other stages
  /// By kernel number; copy instructions count as the copy kernel. Their sum is
  /// compute.
  std::array<KernelTime, device::kernelCount> kernels = {};
};

struct ExecutorOptions {
  /// Chooses the next ready queue pseudo-randomly: different orders that the
  /// streams and events allow.
  std::optional<uint64_t> queueSeed;
  /// Called before the item of this number (of those that do work) of a step.
  std::optional<int64_t> faultAt;
  std::function<void()> fault;
  /// Set by a signal handler: stop as soon as possible (Interrupted).
  const std::atomic<bool> *stop = nullptr;
  /// Keep the order in which actions completed.
  bool trace = false;
  /// Time every kernel. The CPU device does so in any case; elsewhere it costs
  /// speed, for fragments then run without graphs.
  bool timeKernels = false;
  /// A stream device is hung when nothing completed for so many seconds.
  double hangLimit = 300;
};

class Executor {
public:
  explicit Executor(ExecutorOptions options) : options_(std::move(options)) {}
  virtual ~Executor() = default;

  /// Runs a list to its end; what it computed is then on the device.
  virtual Status run(BoundList &list) = 0;

  const StepTimes &times() const { return times_; }
  /// Actions of the last run in the order in which they completed.
  const std::vector<const plan::ActionT *> &trace() const { return trace_; }
  ExecutorOptions &options() { return options_; }

protected:
  ExecutorOptions options_;
  StepTimes times_;
  std::vector<const plan::ActionT *> trace_;
};

/// The executor that suits the device.
std::unique_ptr<Executor> makeExecutor(StageProgram &program,
                                       comm::Communicator &communicator,
                                       device::Device &device, Clock &clock,
                                       BatchSource &batches,
                                       ExecutorOptions options);

/// An error of an instruction, with the instruction's place in the plan.
Error atInstruction(const Error &error, const plan::ActionT &action,
                    const plan::InstructionT &instruction);

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_EXECUTOR_H
