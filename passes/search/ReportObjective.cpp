//===- ReportObjective.cpp - the objective and the whole training ---------===//
//===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Analysis.h"
#include "passes/search/Goodput.h"
#include "passes/search/ReportFormat.h"
#include "passes/search/ReportParts.h"

#include <cmath>

using namespace reckon;
using namespace reckon::search;
using namespace reckon::search::text;
using Json = nlohmann::ordered_json;

/// With cents where they matter.
static std::string dollars(double value) {
  return value < 100 ? format("$%.2f", value)
                     : format("$%s", grouped(std::llround(value)).c_str());
}

std::string search::objectiveText(const ObjectiveValue &value) {
  if (std::isinf(value.value))
    return "never, no forward progress";
  std::string unit = value.unit;
  if (unit == "dollars")
    return dollars(value.value);
  return unit == "bytes" ? bytes(value.value) : duration(value.value);
}

std::string search::objectiveSection(const Candidate &best, const Spec &spec) {
  goodput::Inputs in = goodput::makeInputs(spec, planFacts(best));
  goodput::TrainingCost cost = goodput::trainingCost(in);
  ObjectiveValue value = objectiveValue(spec, best);
  std::string text =
      format("\nObjective %s: %s\n", value.name, objectiveText(value).c_str());
  text += format("  %s steps take %s, ", grouped(in.trainSteps).c_str(),
                 duration(cost.productiveSeconds).c_str());
  if (!cost.wallSeconds)
    return text + "but with failures and checkpoints there is no forward "
                  "progress; reckon goodput says why\n";
  text += format("%s expected with failures and checkpoints (goodput %.2f %%, "
                 "%s of stall every %s)",
                 duration(*cost.wallSeconds).c_str(),
                 100 * cost.productiveSeconds / *cost.wallSeconds,
                 duration(in.terms.delta).c_str(),
                 duration(*in.interval()).c_str());
  if (cost.dollars > 0)
    text += ", " + dollars(cost.dollars);
  return text + "\n";
}

Json search::objectiveJson(const Candidate &candidate, const Spec &spec) {
  ObjectiveValue value = objectiveValue(spec, candidate);
  return {{"name", value.name},
          {"value", std::isinf(value.value) ? Json() : Json(value.value)},
          {"unit", value.unit}};
}

Json search::trainingJson(const Candidate &candidate, const Spec &spec) {
  goodput::Inputs in = goodput::makeInputs(spec, planFacts(candidate));
  goodput::TrainingCost cost = goodput::trainingCost(in);
  Json json = {{"steps", in.trainSteps},
               {"productive_s", cost.productiveSeconds},
               {"forward_progress", cost.wallSeconds.has_value()},
               {"checkpoint_bytes_per_gpu", std::llround(in.bytesPerGpu)},
               {"checkpoint_stall_s", in.terms.delta}};
  if (cost.wallSeconds) {
    json["wall_s"] = *cost.wallSeconds;
    json["dollars"] = cost.dollars;
    json["goodput"] = cost.productiveSeconds / *cost.wallSeconds;
    json["checkpoint_interval_s"] = *in.interval();
  }
  return json;
}
