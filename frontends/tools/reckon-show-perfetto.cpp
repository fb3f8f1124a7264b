//===- reckon-show-perfetto.cpp - the predicted timeline ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/reckon-show-views.h"
#include "passes/model/Job.h"
#include "passes/prove/PlanDirectory.h"
#include "passes/timeline/Trace.h"

using namespace reckon;
using namespace reckon::show;

Result<std::string> show::perfetto(const LoadedPlan &plan,
                                   const std::string &directory,
                                   std::optional<unsigned> onlyStage,
                                   std::optional<int64_t> rank) {
  Result<Spec> spec = prove::recordedSpec(plan.manifest, directory);
  if (!spec)
    return spec.error();
  model::Job job = model::makeJob(*spec);
  job.calibration = plan.manifest.prediction.calibration;
  timeline::InstructionTime time(std::move(job));

  std::vector<const plan::StagePlanT *> stages;
  for (const auto &stage : plan.stages)
    stages.push_back(stage.get());
  Result<timeline::StepTimeline> times =
      timeline::stepTimeline(stages, plan.manifest.prediction, time);
  if (!times)
    return makeError(times.error().code,
                     directory + ": " + times.error().message);
  return timeline::traceJson(plan.manifest, *times, {onlyStage, rank});
}
