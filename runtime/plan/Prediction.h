//===- Prediction.h - what the planner expects of a step ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_PLAN_PREDICTION_H
#define RECKON_RUNTIME_PLAN_PREDICTION_H

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace reckon::plan {

/// One micro-batch of a pipeline stage, seconds.
struct PredictedStage {
  double forward = 0;
  double backward = 0; ///< with recomputation
};

/// What the planner predicted of a step, in seconds on the planned cluster,
/// exposed communication included; nothing reads a clock for it. All 0 when
/// the plan was not made by the planner.
struct Prediction {
  double step = 0;     ///< pipeline + update + overhead
  double pipeline = 0; ///< from the first forward to the last backward
  double update = 0;   ///< exposed reductions, the optimizer, the gather
  double overhead = 0; ///< host and jitter beside them
  double message = 0;  ///< one between two stages
  double tokensPerSecond = 0;
  double tflopsPerDevice = 0; ///< 1e12 model FLOP/s of one accelerator
  double mfu = 0;             ///< fraction of 1
  std::vector<PredictedStage> stages;
  /// Measured constants that replaced the built-in ones, by name.
  std::vector<std::pair<std::string, double>> calibration;

  bool known() const { return step > 0; }
};

/// "prediction" of manifest.json.
nlohmann::json predictionJson(const Prediction &prediction);

/// Fills `prediction`; the end of a sentence that says what is damaged, or
/// empty. `stages`: how many the plan has.
std::string readPrediction(const nlohmann::json &json, size_t stages,
                           Prediction &prediction);

} // namespace reckon::plan

#endif // RECKON_RUNTIME_PLAN_PREDICTION_H
