//===- CallTimes.cpp - how long each kernel call of a plan takes ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/CallTimes.h"

#include "runtime/base/Os.h"
#include "runtime/device/StreamDevice.h"
#include "runtime/device/kernels/Roofline.h"
#include "runtime/selftest/KernelCheck.h"

#include <algorithm>
#include <map>
#include <optional>

namespace reckon::selftest {

using device::DType;
using device::Kernel;
using device::Operand;

namespace {

constexpr int64_t kAlignment = 256;
/// Of made-up values, repeated over an operand: large enough not to stay in a
/// register file, small enough to make and copy quickly.
constexpr int64_t kPattern = 1 << 20;

int64_t bytesOf(const Operand &operand) {
  return operand.elements * device::dtypeBytes(operand.dtype);
}

std::vector<Operand>
operandsOf(const std::vector<std::unique_ptr<plan::BufferT>> &buffers) {
  std::vector<Operand> operands;
  for (const auto &buffer : buffers)
    operands.push_back(
        {static_cast<DType>(buffer->dtype), plan::elementCount(buffer->shape)});
  return operands;
}

/// The operands of one call in an arena.
class Bench {
public:
  Bench(device::Device &device, std::byte *arena)
      : device_(device), arena_(arena) {}

  static int64_t bytes(const PlannedCall &call) {
    int64_t total = 0;
    for (const auto *operands : {&call.inputs, &call.outputs})
      for (const Operand &operand : *operands)
        total += (bytesOf(operand) / kAlignment + 1) * kAlignment;
    return total;
  }

  Result<double> time(const PlannedCall &call, double seconds);

private:
  Status fill(const Operand &operand, std::byte *at);
  /// Seconds of `times` runs.
  Result<double> run(device::PreparedKernel &kernel,
                     std::span<void *const> operands, int64_t times);

  device::Device &device_;
  std::byte *arena_;
  std::vector<std::byte> pattern_;
  std::optional<std::pair<uint32_t, uint32_t>> events_; ///< start, end
};

/// Numbers of ordinary size, words that every table has, nothing negative where
/// a root may be taken.
Status Bench::fill(const Operand &operand, std::byte *at) {
  Operand part = operand;
  part.elements = std::min(operand.elements, kPattern);
  pattern_.resize(static_cast<size_t>(bytesOf(part)));
  Content content = normal();
  if (operand.dtype == DType::I32)
    content = tokens(0, 256);
  else if (operand.dtype == DType::F32 || operand.dtype == DType::F64)
    content = positive(1);
  else if (operand.dtype != DType::BF16)
    content = zero();
  fillOperand(part, content, 1, pattern_.data());
  for (int64_t done = 0; done < bytesOf(operand); done += bytesOf(part))
    RECKON_TRY(
        device_.copyToDevice(at + done, pattern_.data(),
                             std::min(bytesOf(part), bytesOf(operand) - done)));
  return Status::success();
}

Result<double> Bench::run(device::PreparedKernel &kernel,
                          std::span<void *const> operands, int64_t times) {
  device::StreamDevice *streams = device_.asStreams();
  if (streams && !events_) {
    auto from = streams->makeEvent(true), to = streams->makeEvent(true);
    if (!from || !to)
      return from ? to.error() : from.error();
    events_ = {*from, *to};
  }
  double start = systemClock().seconds();
  if (streams)
    RECKON_TRY(streams->record(events_->first, 0));
  for (int64_t i = 0; i < times; ++i)
    RECKON_TRY(kernel.run(operands));
  if (streams)
    RECKON_TRY(streams->record(events_->second, 0));
  RECKON_TRY(device_.synchronize());
  if (streams)
    return streams->secondsBetween(events_->first, events_->second);
  return systemClock().seconds() - start;
}

Result<double> Bench::time(const PlannedCall &call, double seconds) {
  std::vector<void *> operands;
  std::byte *at = arena_;
  for (const auto *list : {&call.inputs, &call.outputs})
    for (const Operand &operand : *list) {
      RECKON_TRY(fill(operand, at));
      operands.push_back(at);
      at += (bytesOf(operand) / kAlignment + 1) * kAlignment;
    }
  auto kernel = device_.prepare(call.kernel, call.call());
  if (!kernel)
    return kernel.error();
  // The first run loads code and chooses algorithms; the second tells how many
  // fit into the time.
  RECKON_TRY(run(**kernel, operands, 1));
  auto once = run(**kernel, operands, 1);
  if (!once)
    return once;
  auto times = static_cast<int64_t>(seconds / 2 / std::max(*once, 1e-6));
  times = std::clamp<int64_t>(times, 1, 200);
  double best = *once;
  for (int i = 0; i < 2; ++i) {
    auto all = run(**kernel, operands, times);
    if (!all)
      return all;
    best = std::min(best, *all / static_cast<double>(times));
  }
  return best;
}

/// 0 where the peaks are not known.
double roofline(const PlannedCall &call, const Peaks &peaks) {
  auto work = device::kernelWork(call.kernel, call.call());
  DType dtype = call.storage();
  double product = dtype == DType::BF16             ? peaks.bf16
                   : device::dtypeBytes(dtype) == 1 ? peaks.f8
                                                    : peaks.f32;
  if (!work || peaks.bandwidth <= 0 || peaks.f32 <= 0 || product <= 0)
    return 0.0;
  return device::rooflineSeconds(*work, {peaks.bandwidth, product, peaks.f32});
}

} // namespace

DType PlannedCall::storage() const {
  // Whatever it is next to: statistics and gradients are f32, tokens i32.
  auto rank = [](DType dtype) {
    int64_t bytes = device::dtypeBytes(dtype);
    return dtype == DType::I32 ? int64_t{16} : bytes;
  };
  DType dtype = outputs[0].dtype;
  for (const auto *list : {&inputs, &outputs})
    for (const Operand &operand : *list)
      if (rank(operand.dtype) < rank(dtype))
        dtype = operand.dtype;
  return dtype;
}

std::string PlannedCall::text() const {
  const Operand &shown = inputs.empty() ? outputs[0] : inputs[0];
  std::string text = std::string(device::kernelSignature(kernel)->name) + " " +
                     std::string(device::dtypeName(storage())) + " [" +
                     std::to_string(shown.elements) + "]";
  for (size_t i = 0; i < args.size(); ++i)
    text += (i ? "," : " ") + std::to_string(args[i]);
  return text;
}

std::vector<PlannedCall> plannedCalls(const plan::StagePlanT &plan) {
  std::vector<int64_t> runs(plan.fragments.size());
  for (const auto &list : plan.lists)
    if (list->name == "step")
      for (const auto &action : list->actions)
        if (action->kind == plan::ActionKind::run)
          ++runs[action->fragment];
  std::vector<PlannedCall> calls;
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < plan.fragments.size(); ++i)
    for (const auto &instruction : plan.fragments[i]->instructions) {
      if (instruction->op != plan::Opcode::launch || runs[i] == 0)
        continue;
      PlannedCall call;
      call.kernel = static_cast<Kernel>(instruction->kernel);
      call.inputs = operandsOf(instruction->inputs);
      call.outputs = operandsOf(instruction->outputs);
      for (const auto &argument : instruction->args)
        call.args.push_back(plan::evalExpr(argument, plan::Coord{}));
      call.floats = instruction->floats;
      std::string key = call.text();
      for (const auto *list : {&call.inputs, &call.outputs})
        for (const Operand &operand : *list)
          key += "/" + std::string(device::dtypeName(operand.dtype)) +
                 std::to_string(operand.elements);
      auto [place, isNew] = known.try_emplace(key, calls.size());
      if (isNew)
        calls.push_back(std::move(call));
      calls[place->second].perStep += runs[i];
    }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const PlannedCall &a, const PlannedCall &b) {
                     return a.kernel < b.kernel;
                   });
  return calls;
}

Result<std::vector<CallTime>> timeCalls(device::Device &device,
                                        const std::vector<PlannedCall> &calls,
                                        const Peaks &peaks,
                                        double secondsEach) {
  int64_t bytes = 0;
  for (const PlannedCall &call : calls)
    bytes = std::max(bytes, Bench::bytes(call));
  auto arena = device.allocateArena(bytes);
  if (!arena)
    return arena.error();
  Bench bench(device, static_cast<std::byte *>(*arena));
  std::vector<CallTime> times;
  Status status;
  for (const PlannedCall &call : calls) {
    auto seconds = bench.time(call, secondsEach);
    if (!seconds) {
      status = makeError(seconds.error().code,
                         call.text() + ": " + seconds.error().message);
      break;
    }
    times.push_back({call, *seconds, roofline(call, peaks)});
  }
  device.freeArena();
  RECKON_TRY(status);
  return times;
}

} // namespace reckon::selftest
