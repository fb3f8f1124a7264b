//===- PlanSchedule.cpp - the schedule of a plan, proved ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/PlanSchedule.h"

#include "passes/model/schedule/Given.h"
#include "passes/search/Search.h"
#include "runtime/base/Os.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;
using model::PipelineOrders;
using model::ScheduleKind;
using Json = nlohmann::ordered_json;

static Result<PipelineOrders> readOrders(const model::Choice &choice,
                                         const std::string &file) {
  Result<std::string> text = systemFiles().read(file);
  if (!text.ok())
    return text.error();
  Result<PipelineOrders> orders = model::readScheduleCsv(*text, file);
  if (!orders.ok())
    return orders;
  auto sizes = [](int64_t p, int64_t v, int64_t m) {
    return std::to_string(p) + " ranks, " + std::to_string(v) +
           " chunks a rank and " + std::to_string(m) + " micro-batches";
  };
  if (orders->p != choice.pp || orders->v != choice.v ||
      orders->m != choice.numMicroBatches)
    return makeError(
        ExitCode::BadSpec,
        file + ": expected a schedule of " +
            sizes(choice.pp, choice.v, choice.numMicroBatches) + ", got " +
            sizes(orders->p, orders->v, orders->m) +
            "; change pipeline_parallel, virtual_pipeline or the batch");
  return orders;
}

PlannedSchedule
search::planSchedule(const model::Choice &choice,
                     std::span<const model::StageDurations> durations,
                     double maxBubble, const std::string &cacheFolder,
                     const std::string &csvFile) {
  PlannedSchedule planned;
  CertifyQuery &query = planned.query;
  query.shape = model::shapeOf(choice);
  query.maxBubble = maxBubble;
  auto refuse = [&](const std::string &reason) {
    planned.certificate.shape = query.shape;
    planned.certificate.reason = reason;
    return planned;
  };
  switch (choice.schedule) {
  case ScheduleKind::Synthesized: {
    if (choice.v != 1)
      return refuse("a synthesized schedule needs 1 chunk a rank, got " +
                    std::to_string(choice.v));
    SynthesisQuery synthesis;
    synthesis.p = choice.pp;
    synthesis.m = choice.numMicroBatches;
    synthesis.durations.assign(durations.begin(), durations.end());
    synthesis.slots.assign(choice.pp,
                           std::min(choice.pp, choice.numMicroBatches));
    Synthesis made = synthesize(synthesis, cacheFolder);
    return planSynthesized(choice, std::move(synthesis), std::move(made),
                           maxBubble);
  }
  case ScheduleKind::Csv: {
    const model::GivenSchedule *given = model::givenOf(choice);
    Result<PipelineOrders> orders = given
                                        ? Result<PipelineOrders>(given->orders)
                                        : readOrders(choice, csvFile);
    if (!orders.ok())
      return refuse(orders.error().message);
    for (const auto &rank : orders->ranks)
      query.slots.push_back(model::inFlight(rank, orders->v).peak);
    planned.orders = *orders;
    query.orders = std::move(*orders);
    break;
  }
  default:
    if (std::string why = model::whyNotSchedule(query.shape); !why.empty())
      return refuse(std::string(model::scheduleName(choice.schedule)) + " " +
                    why);
    for (int64_t rank = 0; rank < choice.pp; ++rank)
      query.slots.push_back(model::inFlight(query.shape, rank).peak);
  }
  planned.certificate = certify(query);
  return planned;
}

PlannedSchedule search::planSynthesized(const model::Choice &choice,
                                        SynthesisQuery synthesisQuery,
                                        Synthesis synthesis, double maxBubble) {
  PlannedSchedule planned;
  CertifyQuery &query = planned.query;
  query.shape = model::shapeOf(choice);
  query.maxBubble = maxBubble;
  query.slots = synthesisQuery.slots;
  query.orders = synthesis.orders;
  planned.certificate = certify(query);
  if (!planned.certificate.proved) {
    CertifyQuery other = query;
    other.shape.kind = ScheduleKind::ZbH1;
    other.orders.reset();
    // All that needs one chunk a rank is defined for any sizes.
    const Certificate &certificate = certify(other);
    if (certificate.proved) {
      planned.certificate = certificate;
      planned.query = std::move(other);
    }
  }
  planned.orders = synthesis.orders;
  planned.synthesisQuery = std::move(synthesisQuery);
  planned.synthesis = std::move(synthesis);
  return planned;
}

Proved search::provedSchedule(const PlannedSchedule &planned) {
  const Certificate &certificate = planned.certificate;
  Proved proved;
  proved.what = "schedule";
  proved.method =
      certificate.clauses ? "z3 QF_FD, " + certificate.method : "none";
  proved.unit = "s";
  proved.optimal = certificate.proved;
  proved.text = describe(certificate);
  if (const auto &synthesis = planned.synthesis) {
    proved.optimal = proved.optimal && synthesis->optimal();
    proved.bound = static_cast<double>(synthesis->bound) * synthesis->unit;
    proved.gap = static_cast<double>(synthesis->value) /
                     static_cast<double>(synthesis->bound) -
                 1;
    std::string table = describe(*planned.synthesisQuery, *synthesis);
    proved.text += "; " + table.substr(0, table.find('\n'));
  }
  return proved;
}

Json search::scheduleJson(const PlannedSchedule &planned) {
  const Certificate &c = planned.certificate;
  Json json = {{"proved", c.proved},
               {"text", describe(c)},
               {"method", c.method},
               {"slots", c.slots},
               {"bubble", c.bubble},
               {"max_bubble", planned.query.maxBubble},
               {"instance_micro_batches", c.instance},
               {"block_micro_batches", c.blockMicroBatches},
               {"block_runs", c.blockRuns},
               {"variables", c.variables},
               {"clauses", c.clauses},
               {"solver_steps", c.steps}};
  if (const auto &made = planned.synthesis) {
    Json named = Json::array();
    for (const NamedResult &each : made->named)
      named.push_back({{"schedule", model::scheduleName(each.kind)},
                       {"fits", each.fits},
                       {"units", each.value},
                       {"makespan_s", each.makespan}});
    json["synthesized"] = {
        {"units", made->value},       {"bound", made->bound},
        {"optimal", made->optimal()}, {"unit_s", made->unit},
        {"method", made->method},     {"makespan_s", made->makespan},
        {"bubble", made->bubble},     {"named", named}};
  }
  return json;
}

Status search::dumpScheduleSmt(const PlannedSchedule &planned,
                               const std::string &folder) {
  RECKON_TRY(systemFiles().createDirectories(folder));
  auto write = [&](const std::string &name, const std::string &text) {
    return text.empty() ? Status()
                        : systemFiles().write(folder + "/" + name, text);
  };
  if (planned.certificate.clauses)
    RECKON_TRY(write("schedule.smt2", certifySmtLib(planned.query)));
  // Of a repeated block the questions were about a shorter step.
  if (planned.synthesis &&
      planned.synthesis->instance == planned.synthesisQuery->m)
    for (int64_t value :
         {planned.synthesis->value, planned.synthesis->value - 1})
      RECKON_TRY(write("synthesis-" + std::to_string(value) + ".smt2",
                       synthesisSmtLib(*planned.synthesisQuery, value)));
  return Status::success();
}
