//===- ReportJson.cpp - the self-test's report for programs ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/SelfTest.h"

#include <nlohmann/json.hpp>

namespace reckon::selftest {

using Json = nlohmann::ordered_json;

namespace {

/// Infinities and NaN, which JSON has not, become null when it is written.
Json speedJson(const Speed &speed) {
  return {{"step_s", speed.stepSeconds},
          {"tokens_per_s", speed.tokensPerSecond},
          {"tflops", speed.tflops},
          {"mfu", speed.mfu}};
}

Json kernelJson(const KernelOutcome &outcome) {
  return {{"kernel", device::kernelSignature(outcome.kernel)->name},
          {"dtype", device::dtypeName(outcome.dtype)},
          {"sizes", outcome.sizes},
          {"error", outcome.error},
          {"passed", outcome.passed()},
          {"fault", outcome.fault}};
}

Json planJson(const PlanOutcome &outcome) {
  PlanTolerance limit = planTolerance(outcome.precision);
  return {{"name", outcome.name},
          {"precision", outcome.precision},
          {"recompute", outcome.recompute},
          {"arena_bytes", outcome.allocatedBytes},
          {"planned_bytes", outcome.plannedBytes},
          {"losses", outcome.losses},
          {"expected_losses", outcome.expected},
          {"loss_error", outcome.loss},
          {"loss_tolerance", limit.loss},
          {"gradient_error", outcome.gradient},
          {"gradient_tolerance", limit.gradient},
          {"worst_gradient", outcome.tensor},
          {"seconds", outcome.seconds},
          {"passed", outcome.passed()},
          {"fault", outcome.fault}};
}

Json stackJson(const StackOutcome &outcome) {
  Json memory = Json::array(), calls = Json::array();
  for (const MemoryItem &item : outcome.memory)
    memory.push_back({{"name", item.name}, {"bytes", item.bytes}});
  for (const CallTime &time : outcome.calls)
    calls.push_back(
        {{"kernel", device::kernelSignature(time.call.kernel)->name},
         {"call", time.call.text()},
         {"per_step", time.call.perStep},
         {"s", time.seconds},
         {"roofline_s", time.roofline > 0 ? Json(time.roofline) : Json()}});
  return {
      {"name", outcome.name},
      {"precision", outcome.precision},
      {"accelerator", outcome.accelerator},
      {"layers", outcome.layers},
      {"tokens_per_step", outcome.tokensPerStep},
      {"arena_bytes", outcome.allocatedBytes},
      {"planned_bytes", outcome.plannedBytes},
      {"beside_arena", memory},
      {"beside_arena_bytes", outcome.besideArena()},
      {"reserve_bytes",
       outcome.reserveBytes >= 0 ? Json(outcome.reserveBytes) : Json()},
      {"set_up_s", outcome.setUpSeconds},
      {"steps", outcome.steps},
      {"loss", outcome.loss},
      {"measured", speedJson(outcome.measured)},
      {"predicted", outcome.predicted ? speedJson(*outcome.predicted) : Json()},
      {"kernels", calls},
      {"seconds", outcome.seconds},
      {"passed", outcome.passed()},
      {"fault", outcome.fault}};
}

template <typename Outcome>
Json list(const std::vector<Outcome> &outcomes, Json (*one)(const Outcome &)) {
  Json all = Json::array();
  for (const Outcome &outcome : outcomes)
    all.push_back(one(outcome));
  return all;
}

} // namespace

std::string reportJson(const Report &report, const std::string &version) {
  Json json = {{"schema", "reckon.selftest/1"},
               {"reckon", version},
               {"target", report.target},
               {"device", report.device},
               {"reference", report.reference},
               {"sizes", report.sizes == Sizes::Full ? "full" : "small"},
               {"seed", report.seed},
               {"passed", report.passed()},
               {"not_run", report.notRun},
               {"seconds",
                {{"kernels", report.kernelSeconds},
                 {"plans", report.planSeconds},
                 {"stacks", report.stackSeconds}}},
               {"kernels", list(report.kernels, kernelJson)},
               {"plans", list(report.plans, planJson)},
               {"stacks", list(report.stacks, stackJson)}};
  // A sentence of a driver may hold anything.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace reckon::selftest
