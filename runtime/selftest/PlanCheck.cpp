//===- PlanCheck.cpp - whole training steps against the CPU's -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/PlanCheck.h"

#include "runtime/exec/Safetensors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

namespace reckon::selftest {

namespace {

/// What a run leaves behind.
struct Run {
  std::vector<double> losses;
  std::string gradients; ///< file, after step 1
  std::string weights;   ///< file, after the last step
  int64_t arenaBytes = 0;
};

Result<Run> train(const LoadedPlan &plan, device::Device &device,
                  const Scratch &scratch, const std::string &name) {
  Run run;
  std::string folder = scratch.path(name);
  run.gradients = folder + "/first/gradients.safetensors";
  run.weights = folder + "/last/weights.safetensors";
  exec::TrainOptions options;
  options.steps = kPlanSteps;
  options.dumps = {{1, false, true, folder + "/first"},
                   {kPlanSteps, true, false, folder + "/last"}};
  Status status = withTrainer(plan, device, scratch, name, options,
                              [&](exec::Trainer &trainer) {
                                run.arenaBytes = device.arenaBytes();
                                return trainer.run();
                              });
  if (!status)
    return status.error();
  auto text = systemFiles().read(folder + "/metrics.jsonl");
  if (!text)
    return text.error();
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    auto metrics = nlohmann::json::parse(line, nullptr, false);
    auto loss = metrics.find("loss"); // null when it is not finite
    run.losses.push_back(loss != metrics.end() && loss->is_number()
                             ? loss->get<double>()
                             : std::nan(""));
  }
  return run;
}

Result<std::map<std::string, std::vector<float>>>
readTensors(const std::string &path) {
  auto file = exec::SafetensorsFile::open(path);
  if (!file)
    return file.error();
  std::map<std::string, std::vector<float>> tensors;
  for (const auto &[name, entry] : (*file)->tensors()) {
    std::vector<float> &values = tensors[name];
    values.resize(static_cast<size_t>(plan::elementCount(entry.shape)));
    (*file)->read(entry, 0, static_cast<int64_t>(values.size()), values.data());
  }
  return tensors;
}

double squares(const std::vector<float> &values) {
  double sum = 0.0;
  for (float value : values)
    sum += double(value) * value;
  return sum;
}

/// The largest relative difference of any tensor, NaN counting as infinite.
Status compareGradients(const std::string &gotFile, const std::string &wantFile,
                        PlanOutcome &outcome) {
  auto got = readTensors(gotFile), want = readTensors(wantFile);
  if (!got || !want)
    return got ? want.error() : got.error();
  double global = 0.0;
  for (const auto &[name, values] : *want)
    global += squares(values);
  outcome.gradient = -1.0;
  for (const auto &[name, reference] : *want) {
    const std::vector<float> &values = (*got)[name];
    if (values.size() != reference.size())
      return makeError(ExitCode::Internal,
                       name + ": expected " + std::to_string(reference.size()) +
                           " elements of gradient, got " +
                           std::to_string(values.size()) + ": report this");
    double difference = 0.0;
    for (size_t i = 0; i < values.size(); ++i) {
      double d = double(values[i]) - reference[i];
      difference += d * d;
    }
    double error =
        std::sqrt(difference) / std::max({std::sqrt(squares(reference)),
                                          1e-3 * std::sqrt(global), 1e-300});
    if (std::isnan(error))
      error = INFINITY;
    if (error > outcome.gradient) {
      outcome.gradient = error;
      outcome.tensor = name;
    }
  }
  if (outcome.gradient < 0.0)
    return makeError(ExitCode::Internal,
                     "expected gradients, got none: report this");
  return Status::success();
}

Result<bool> sameBytes(const std::string &a, const std::string &b) {
  auto first = systemFiles().read(a), second = systemFiles().read(b);
  if (!first || !second)
    return first ? second.error() : first.error();
  return *first == *second;
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

Status check(const LoadedPlan &plan, device::Device &reference,
             const Target &target, const Scratch &scratch,
             PlanOutcome &outcome) {
  auto want = train(plan, reference, scratch, plan.name + "-cpu");
  if (!want)
    return want.error();
  Result<Run> runs[] = {Run{}, Run{}};
  for (int i : {0, 1}) {
    auto device = target.makeDevice();
    if (!device)
      return device.error();
    runs[i] =
        train(plan, **device, scratch, plan.name + "-run" + std::to_string(i));
    if (!runs[i])
      return runs[i].error();
  }
  outcome.losses = runs[0]->losses;
  outcome.expected = want->losses;
  outcome.allocatedBytes = runs[0]->arenaBytes;
  if (outcome.losses.size() != kPlanSteps ||
      outcome.expected.size() != kPlanSteps)
    return makeError(ExitCode::Internal, "expected " +
                                             std::to_string(kPlanSteps) +
                                             " losses: report this");
  for (int64_t i = 0; i < kPlanSteps; ++i) {
    double error = std::abs(outcome.losses[i] - outcome.expected[i]) /
                   std::abs(outcome.expected[i]);
    outcome.loss = std::max(outcome.loss, std::isnan(error) ? INFINITY : error);
  }
  RECKON_TRY(compareGradients(runs[0]->gradients, want->gradients, outcome));

  PlanTolerance limit = planTolerance(outcome.precision);
  if (outcome.allocatedBytes != outcome.plannedBytes)
    outcome.fault = "allocated " + std::to_string(outcome.allocatedBytes) +
                    " bytes, the plan says " +
                    std::to_string(outcome.plannedBytes);
  else if (!(outcome.gradient <= limit.gradient))
    outcome.fault = "gradient of " + outcome.tensor + " differs by " +
                    number(outcome.gradient) + ", at most " +
                    number(limit.gradient) + " is expected";
  else if (!(outcome.loss <= limit.loss))
    outcome.fault = "a loss differs by " + number(outcome.loss) + ", at most " +
                    number(limit.loss) + " is expected";
  if (!outcome.fault.empty())
    return Status::success();
  auto weights = sameBytes(runs[0]->weights, runs[1]->weights);
  auto gradients = sameBytes(runs[0]->gradients, runs[1]->gradients);
  if (!weights || !gradients)
    return weights ? gradients.error() : weights.error();
  if (!*weights || !*gradients || runs[0]->losses != runs[1]->losses)
    outcome.fault = "not deterministic: two runs differ";
  return Status::success();
}

} // namespace

PlanTolerance planTolerance(const std::string &precision) {
  if (precision == "bf16")
    return {2e-2, 2e-3};
  if (precision == "fp8")
    return {2e-1, 2e-2};
  return {1e-5, 1e-5};
}

PlanOutcome checkPlan(const LoadedPlan &plan, device::Device &reference,
                      const Target &target, const Scratch &scratch) {
  PlanOutcome outcome;
  outcome.name = plan.name;
  outcome.precision = plan.stage->precision;
  outcome.recompute = plan.recompute();
  outcome.plannedBytes = static_cast<int64_t>(plan.stage->arena_bytes);
  double start = systemClock().seconds();
  if (Status status = check(plan, reference, target, scratch, outcome); !status)
    outcome.fault = "failed: " + status.error().message;
  outcome.seconds = systemClock().seconds() - start;
  scratch.clear();
  return outcome;
}

} // namespace reckon::selftest
