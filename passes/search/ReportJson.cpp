//===- ReportJson.cpp - reckon plan --format json -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Report.h"
#include "passes/search/ReportParts.h"

#include "passes/model/ModelShape.h"
#include "passes/model/time/ModelFlops.h"

#include <cmath>

using namespace reckon;
using namespace reckon::search;
using Json = nlohmann::ordered_json;

Json search::choiceJson(const model::Choice &choice) {
  Json json = {{"tensor_parallel", choice.tp},
               {"sequence_parallel", choice.sequenceParallel},
               {"context_parallel", choice.cp},
               {"context_parallel_method", toString(choice.contextMethod)},
               {"pipeline_parallel", choice.pp},
               {"virtual_pipeline", choice.v},
               {"pipeline_schedule", model::scheduleName(choice.schedule)},
               {"pipeline_layout", choice.layout},
               {"expert_parallel", choice.ep},
               {"expert_tensor_parallel", choice.etp},
               {"data_parallel", choice.dp},
               {"zero_stage", choice.zero},
               {"micro_batch_size", choice.microBatch},
               {"num_micro_batches", choice.numMicroBatches},
               {"recompute", toString(choice.recompute)}};
  if (!choice.recomputeLayers.empty())
    json["recompute_layers"] = choice.recomputeLayers;
  return json;
}

static Json memoryJson(const Candidate &candidate, int64_t limit) {
  Json stages = Json::array();
  for (size_t i = 0; i < candidate.stages.size(); ++i) {
    const model::StageMemory &m = candidate.stages[i];
    stages.push_back({{"stage", i},
                      {"parameters", m.parameters},
                      {"gradients", m.gradients},
                      {"optimizer", m.optimizer},
                      {"activations", m.activations},
                      {"logits", m.logits},
                      {"communication", m.communication},
                      {"workspace", m.workspace},
                      {"reserve", m.reserve},
                      {"total", m.total()}});
  }
  Json json = {{"peak_bytes", candidate.peakBytes()},
               {"limit_bytes", limit},
               {"peak_stage", candidate.peakStage},
               {"stages", stages},
               {"risk", nullptr}};
  // Static arenas fit or do not.
  if (const auto &risk = candidate.risk)
    json["risk"] = {
        {"predicted_over_limit", static_cast<double>(candidate.peakArena()) /
                                     static_cast<double>(limit)},
        {"from", risk->from},
        {"to", std::isinf(risk->to) ? Json() : Json(risk->to)},
        {"failed", risk->failed},
        {"runs", risk->runs},
        {"probability", risk->share()},
        {"least", risk->least()},
        {"most", risk->most()},
        {"source", risk->source}};
  return json;
}

static Json candidateJson(const Candidate &candidate, const Spec &spec) {
  const model::StepTime &time = candidate.time;
  Json losses = Json::array(), communication = Json::array();
  for (const model::MfuLoss &loss : time.losses)
    losses.push_back({{"item", loss.item},
                      {"points", loss.points},
                      {"step_s", loss.seconds},
                      {"dollars_per_30_days", loss.dollarsPer30Days}});
  for (const model::CommunicationTime &entry : time.communication)
    communication.push_back(
        {{"dimension", entry.dimension},
         {"collective", entry.collective},
         {"bytes_per_step", std::llround(entry.bytesPerStep)},
         {"link", entry.link},
         {"time_s", entry.seconds},
         {"exposed_s", entry.exposed}});
  Json json = {
      {"parallelism", choiceJson(candidate.choice)},
      {"memory", memoryJson(candidate, spec.constraints.memoryLimitBytes())},
      {"time",
       {{"step_s", time.step},
        {"ideal_s", time.ideal},
        {"compute_s", time.compute},
        {"bubble_s", time.bubble},
        {"exposed_communication_s", time.exposedCommunication},
        {"optimizer_s", time.optimizer},
        {"other_s", time.other}}},
      {"bubble_fraction", candidate.bubbleFraction},
      {"throughput",
       {{"tokens_per_s", time.tokensPerSecond},
        {"tokens_per_s_per_gpu", time.tokensPerSecondPerDevice},
        {"tflops_per_gpu", time.tflopsPerDevice},
        {"mfu", time.mfu},
        {"hfu", time.hfu}}},
      {"mfu_loss", losses},
      {"communication", communication},
      {"objective", objectiveJson(candidate, spec)},
      {"training", trainingJson(candidate, spec)},
      {"runnable", candidate.notRunnable.empty()}};
  if (!candidate.notRunnable.empty())
    json["not_runnable_because"] = candidate.notRunnable;
  return json;
}

static Json proofJson(const Proof &proof) {
  Json parts = Json::array();
  for (const Proved &part : proof.parts)
    parts.push_back({{"what", part.what},
                     {"method", part.method},
                     {"optimal", part.optimal},
                     {"bound", part.bound},
                     {"gap", part.gap},
                     {"unit", part.unit},
                     {"text", part.text}});
  return {{"sentence", proof.sentence()},
          {"gap", proof.gap},
          {"bound", proof.bound},
          {"space", proof.space},
          {"parts", parts}};
}

static Json comparedJson(const std::vector<Compared> &all, const Spec &spec) {
  Json list = Json::array();
  for (const Compared &each : all) {
    Json json =
        each.candidate ? candidateJson(*each.candidate, spec) : Json::object();
    json["name"] = each.name;
    if (!each.problem.empty())
      json["problem"] = each.problem;
    list.push_back(json);
  }
  return list;
}

static Json rejectedJson(const RejectedCounts &out) {
  return {{"memory", out.memory},
          {"bubble", out.bubble},
          {"divisibility", out.divisibility},
          {"host_memory", out.hostMemory},
          {"any_limit", out.limits},
          {"representation", out.representation},
          {"compilable", out.compilable},
          {"bound", out.bound}};
}

static Json infeasibleJson(const Infeasible &infeasible, const Spec &spec) {
  Json nearest = Json::array();
  for (const NearestChange &change : infeasible.nearest) {
    Json settings = Json::object();
    for (const Setting &setting : change.settings) {
      // Numbers as numbers, names as strings.
      Json value = Json::parse(setting.value, nullptr, false);
      if (value.is_discarded())
        value = setting.value;
      settings[setting.key] = value;
    }
    nearest.push_back({{"change", settings},
                       {"candidate", candidateJson(change.candidate, spec)}});
  }
  Json json = {{"conflict", infeasible.conflict},
               {"shortfall_bytes", infeasible.shortfallBytes},
               {"nearest", nearest},
               {"checked", infeasible.checked}};
  if (!infeasible.reasons.empty())
    json["reasons"] = infeasible.reasons;
  return json;
}

std::string search::reportJson(const ReportInput &input) {
  const Spec &spec = input.spec;
  const SearchResult &result = input.result;
  int64_t limit = spec.constraints.memoryLimitBytes();
  model::ModelShape shape = model::modelShape(spec);
  double flops =
      model::modelFlops(shape, model::AttentionFlops::Causal).total();
  // What recomputation adds is in the choice's HFU.
  double hardware = flops;
  if (!result.candidates.empty() && result.candidates.front().time.mfu > 0)
    hardware *=
        result.candidates.front().time.hfu / result.candidates.front().time.mfu;

  Json candidates = Json::array();
  for (const Candidate &candidate : result.candidates)
    candidates.push_back(candidateJson(candidate, spec));
  Json json = {
      {"schema", "reckon.plan/1"},
      {"model",
       {{"name", *spec.model.name},
        {"parameters", shape.parameters()},
        {"active_parameters", shape.activeParameters()},
        {"flops_per_token",
         {{"model", flops},
          {"hardware", hardware},
          {"convention", model::describe(model::AttentionFlops::Causal)}}}}},
      {"cluster",
       {{"accelerator", spec.cluster.accelerator->name},
        {"gpus", spec.cluster.worldSize()},
        {"gpus_per_node", *spec.cluster.gpusPerNode}}},
      {"candidates", candidates},
      {"search",
       {{"space", result.space},
        {"assignment_space", result.assignmentSpace},
        {"assigned", result.assignments},
        {"evaluated", result.evaluated},
        {"feasible", result.feasible},
        {"seconds", input.seconds},
        {"optimal", result.proof.optimal},
        {"proof", proofJson(result.proof)},
        {"rejected", rejectedJson(result.rejected)}}},
      {"limits",
       {{"memory_bytes", limit}, {"max_bubble", *spec.constraints.maxBubble}}},
      {"infeasible", nullptr}};
  if (result.runnable)
    json["compilable"] = candidateJson(*result.runnable, spec);
  if (result.refined)
    json["refined"] = candidateJson(result.refined->candidate, spec);
  if (!result.compared.empty())
    json["compared"] = comparedJson(result.compared, spec);
  if (result.schedule)
    json["schedule"] = scheduleJson(*result.schedule);
  if (result.infeasible)
    json["infeasible"] = infeasibleJson(*result.infeasible, spec);
  json["neighbours"] = neighboursJson(input.neighbours);
  if (!input.pareto.empty())
    json["pareto"] = paretoJson(input.pareto);
  if (input.whyNot)
    json["why_not"] = whyNotJson(*input.whyNot, result);
  return json.dump(2) + "\n";
}
