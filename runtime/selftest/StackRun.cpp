//===- StackRun.cpp - memory and speed of a large stack -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/StackRun.h"

#include "runtime/comm/Rendezvous.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

namespace reckon::selftest {

namespace {

/// Left free beside arena and libraries.
constexpr int64_t kMargin = int64_t{1} << 30;
constexpr int64_t kWarmUp = 2;
constexpr int64_t kMostSteps = 8;

std::string lower(std::string text) {
  for (char &c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Follows the device's free memory: what each stage of a run takes.
class MemoryLog {
public:
  MemoryLog(const Target &target, device::Device &device)
      : target_(target), device_(device) {
    auto now = target_.memory(device_);
    if (!now)
      return;
    items_.push_back({"driver, context, other programs", now->context});
    items_.push_back(
        {"libraries, opened", now->total - now->free - now->context});
    free_ = now->free;
  }
  void take(const std::string &name, int64_t ofArena = 0) {
    auto now = target_.memory(device_);
    if (!now)
      return;
    items_.push_back({name, free_ - now->free - ofArena});
    free_ = now->free;
  }
  std::vector<MemoryItem> items() && { return std::move(items_); }

private:
  const Target &target_;
  device::Device &device_;
  std::vector<MemoryItem> items_;
  int64_t free_ = 0;
};

Speed speedOf(const LoadedPlan &plan, double seconds) {
  Speed speed;
  speed.stepSeconds = seconds;
  speed.tokensPerSecond = static_cast<double>(plan.tokensPerStep()) / seconds;
  double flops = speed.tokensPerSecond * plan.stage->model_flops_per_token;
  speed.tflops = 1e-12 * flops;
  speed.mfu = plan.stage->peak_flops > 0 ? flops / plan.stage->peak_flops : 0;
  return speed;
}

double at(const nlohmann::json &json, const char *section, const char *key) {
  auto found = json.find(section);
  if (found == json.end() || !found->is_object())
    return 0.0;
  auto value = found->find(key);
  return value != found->end() && value->is_number() ? value->get<double>() : 0;
}

/// The choice of `reckon plan --format json`, or null.
const nlohmann::json *candidateOf(const LoadedPlan &plan) {
  auto found = plan.prediction.find("candidates");
  return found != plan.prediction.end() && found->is_array() && !found->empty()
             ? &found->front()
             : nullptr;
}

std::optional<Speed> predictedSpeed(const LoadedPlan &plan) {
  const nlohmann::json *choice = candidateOf(plan);
  if (!choice)
    return std::nullopt;
  return Speed{at(*choice, "time", "step_s"),
               at(*choice, "throughput", "tokens_per_s"),
               at(*choice, "throughput", "tflops_per_gpu"),
               at(*choice, "throughput", "mfu")};
}

int64_t plannedReserve(const LoadedPlan &plan) {
  const nlohmann::json *choice = candidateOf(plan);
  if (!choice)
    return -1;
  auto stages =
      choice->value("/memory/stages"_json_pointer, nlohmann::json::array());
  return stages.empty() ? -1 : stages[0].value("reserve", int64_t{-1});
}

Peaks peaksOf(const LoadedPlan &plan) {
  if (!plan.accelerator.is_object())
    return {};
  auto column = [&](const char *name) {
    return plan.accelerator.value(name, 0.0);
  };
  return {1e12 * column("fp32_tflops"), 1e12 * column("bf16_dense_tflops"),
          1e12 * column("fp8_dense_tflops"), 1e9 * column("mem_bw_gbs")};
}

/// NCCL's own memory, which a run on one device does not need.
Status measureNccl(const Target &target, device::Device &device,
                   MemoryLog &memory) {
  if (!target.makeCommunicator || !target.memory(device))
    return Status::success();
  auto world = comm::makeLocalWorld(1, {});
  if (!world)
    return world.error();
  auto communicator = target.makeCommunicator(std::move((*world)[0]));
  RECKON_TRY(communicator->start());
  memory.take("NCCL, one rank");
  return communicator->finish();
}

Status train(exec::Trainer &trainer, double budget, MemoryLog &memory,
             StackOutcome &outcome, const LoadedPlan &plan) {
  std::vector<double> seconds;
  double start = systemClock().seconds();
  for (int64_t step = 1; step <= kWarmUp + kMostSteps; ++step) {
    double begin = systemClock().seconds();
    RECKON_TRY(trainer.step(step));
    double end = systemClock().seconds();
    if (step > kWarmUp)
      seconds.push_back(end - begin);
    if (!seconds.empty() && end - start > budget)
      break;
  }
  memory.take("libraries, used");
  std::sort(seconds.begin(), seconds.end());
  outcome.steps = static_cast<int64_t>(seconds.size());
  outcome.loss = trainer.loss();
  outcome.measured = speedOf(plan, seconds[seconds.size() / 2]);
  return Status::success();
}

Status run(const LoadedPlan &plan, const Target &target, const Scratch &scratch,
           double secondsForSteps, double secondsForKernels,
           StackOutcome &outcome) {
  {
    auto device = target.makeDevice();
    if (!device)
      return device.error();
    MemoryLog memory(target, **device);
    double start = systemClock().seconds();
    RECKON_TRY(withTrainer(
        plan, **device, scratch, plan.name, {}, [&](exec::Trainer &trainer) {
          outcome.setUpSeconds = systemClock().seconds() - start;
          outcome.allocatedBytes = (*device)->arenaBytes();
          memory.take("streams and kernels", outcome.allocatedBytes);
          return train(trainer, secondsForSteps, memory, outcome, plan);
        }));
    memory.take("given back", -outcome.allocatedBytes);
    RECKON_TRY(measureNccl(target, **device, memory));
    outcome.memory = std::move(memory).items();
  }
  auto device = openDevice(target);
  if (!device)
    return device.error();
  std::vector<PlannedCall> calls = plannedCalls(*plan.stage);
  auto times =
      timeCalls(**device, calls, peaksOf(plan),
                secondsForKernels / static_cast<double>(calls.size() + 1));
  if (!times)
    return times.error();
  outcome.calls = std::move(*times);
  return Status::success();
}

} // namespace

int64_t StackOutcome::besideArena() const {
  int64_t bytes = 0;
  for (const MemoryItem &item : memory)
    bytes += item.bytes;
  return bytes;
}

std::vector<const LoadedPlan *>
chooseStacks(const std::vector<LoadedPlan> &plans, const std::string &device,
             std::optional<device::DeviceMemory> memory) {
  auto isFor = [&](const LoadedPlan &plan) {
    const std::string &name = plan.manifest.cluster.accelerator;
    return lower(device).find(name.substr(0, name.find('-'))) !=
           std::string::npos;
  };
  bool known = std::any_of(plans.begin(), plans.end(), isFor);
  std::map<std::string, const LoadedPlan *> best;
  for (const LoadedPlan &plan : plans) {
    if (known && !isFor(plan))
      continue;
    auto bytes = static_cast<int64_t>(plan.stage->arena_bytes);
    if (memory && bytes + kMargin > memory->free)
      continue;
    const LoadedPlan *&chosen = best[plan.stage->precision];
    if (!chosen || plan.layers() > chosen->layers())
      chosen = &plan;
  }
  std::vector<const LoadedPlan *> stacks;
  for (const auto &[precision, plan] : best)
    stacks.push_back(plan);
  return stacks;
}

StackOutcome runStack(const LoadedPlan &plan, const Target &target,
                      const Scratch &scratch, double secondsForSteps,
                      double secondsForKernels) {
  StackOutcome outcome;
  outcome.name = plan.name;
  outcome.precision = plan.stage->precision;
  outcome.accelerator = plan.manifest.cluster.accelerator;
  outcome.layers = plan.layers();
  outcome.tokensPerStep = plan.tokensPerStep();
  outcome.plannedBytes = static_cast<int64_t>(plan.stage->arena_bytes);
  outcome.reserveBytes = plannedReserve(plan);
  outcome.predicted = predictedSpeed(plan);
  double start = systemClock().seconds();
  Status status =
      run(plan, target, scratch, secondsForSteps, secondsForKernels, outcome);
  outcome.seconds = systemClock().seconds() - start;
  if (!status)
    outcome.fault = "failed: " + status.error().message;
  else if (outcome.allocatedBytes != outcome.plannedBytes)
    outcome.fault = "allocated " + std::to_string(outcome.allocatedBytes) +
                    " bytes, the plan says " +
                    std::to_string(outcome.plannedBytes);
  else if (!std::isfinite(outcome.loss))
    outcome.fault = "the loss is not finite";
  else if (outcome.reserveBytes >= 0 &&
           outcome.besideArena() > outcome.reserveBytes)
    outcome.fault = "uses " + std::to_string(outcome.besideArena()) +
                    " bytes beside the arena, the plan reserves " +
                    std::to_string(outcome.reserveBytes) +
                    "; raise cluster.memory_reserve_gib";
  return outcome;
}

} // namespace reckon::selftest
