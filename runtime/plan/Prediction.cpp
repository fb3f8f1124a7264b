//===- Prediction.cpp - what the planner expects of a step ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Prediction.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace reckon::plan {

using Json = nlohmann::json;

namespace {

/// Keys of the prediction's numbers in the file.
struct PredictionKey {
  const char *name;
  double Prediction::*value;
};
constexpr PredictionKey kPredictionKeys[] = {
    {"step_s", &Prediction::step},
    {"pipeline_s", &Prediction::pipeline},
    {"update_s", &Prediction::update},
    {"overhead_s", &Prediction::overhead},
    {"message_s", &Prediction::message},
    {"tokens_per_s", &Prediction::tokensPerSecond},
    {"tflops_per_gpu", &Prediction::tflopsPerDevice},
    {"mfu", &Prediction::mfu},
};

/// Nine digits: what one machine's libm computes and another's differ in less.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return std::strtod(text, nullptr);
}

} // namespace

Json predictionJson(const Prediction &prediction) {
  Json json = Json::object(), stages = Json::array(),
       calibration = Json::object();
  for (const PredictionKey &key : kPredictionKeys)
    json[key.name] = rounded(prediction.*key.value);
  for (const PredictedStage &stage : prediction.stages)
    stages.push_back({{"forward_s", rounded(stage.forward)},
                      {"backward_s", rounded(stage.backward)}});
  json["stages"] = std::move(stages);
  // Constants are somebody's input, so they keep their digits.
  for (const auto &[name, value] : prediction.calibration)
    calibration[name] = value;
  if (!calibration.empty())
    json["calibration"] = std::move(calibration);
  return json;
}

std::string readPrediction(const Json &json, size_t stages,
                           Prediction &prediction) {
  auto seconds = [](const Json &where, const char *key, double &value) {
    auto it = where.find(key);
    if (it == where.end() || !it->is_number())
      return false;
    value = it->get<double>();
    return std::isfinite(value) && value >= 0;
  };
  if (!json.is_object())
    return "no object under \"prediction\"";
  for (const PredictionKey &key : kPredictionKeys)
    if (!seconds(json, key.name, prediction.*key.value))
      return std::string("no number under \"prediction.") + key.name + "\"";
  auto list = json.find("stages");
  if (list == json.end() || !list->is_array() || list->size() != stages)
    return "no list of all stages under \"prediction.stages\"";
  for (const Json &entry : *list) {
    PredictedStage stage;
    if (!entry.is_object() || !seconds(entry, "forward_s", stage.forward) ||
        !seconds(entry, "backward_s", stage.backward))
      return "no times of a stage under \"prediction.stages\"";
    prediction.stages.push_back(stage);
  }
  auto constants = json.find("calibration");
  if (constants == json.end())
    return "";
  if (!constants->is_object())
    return "no object under \"prediction.calibration\"";
  for (const auto &[name, value] : constants->items()) {
    if (!value.is_number())
      return "no number under \"prediction.calibration." + name + "\"";
    prediction.calibration.emplace_back(name, value.get<double>());
  }
  return "";
}

} // namespace reckon::plan
