//===- Export.cpp - the targets -------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/Export.h"

#include "frontends/import/megatron/Flags.h"

using namespace reckon;
using namespace reckon::exports;

const char *exports::toString(Target target) {
  switch (target) {
  case Target::Megatron:
    return "megatron";
  case Target::DeepSpeed:
    return "deepspeed";
  case Target::TorchTitan:
    return "torchtitan";
  }
  return "";
}

std::optional<Target> exports::parseTarget(std::string_view word) {
  for (Target target :
       {Target::Megatron, Target::DeepSpeed, Target::TorchTitan})
    if (word == toString(target))
      return target;
  return std::nullopt;
}

Representation exports::representationOf(Target target) {
  switch (target) {
  case Target::Megatron:
    return Representation::Megatron;
  case Target::DeepSpeed:
    return Representation::DeepSpeed;
  case Target::TorchTitan:
    return Representation::TorchTitan;
  }
  return Representation::Reckon;
}

std::string exports::targetVersion(Target target) {
  switch (target) {
  case Target::Megatron:
    return std::string("NVIDIA/Megatron-LM at commit ") +
           megatron::kMegatronCommit;
  case Target::DeepSpeed:
    return "DeepSpeed 0.19.8";
  case Target::TorchTitan:
    return "torchtitan 0.3.0";
  }
  return "";
}

model::Job ExportInput::job(Target target) const {
  model::Job job = model::makeJob(spec);
  job.representation = representationOf(target);
  return job;
}

void exports::narrowToTarget(Target target, Spec &spec) {
  ParallelismSpec &p = spec.parallelism;
  p.representation.value = representationOf(target);
  // Explanations name what the user wrote.
  p.representation.given = true;
  p.representation.loc = {std::string("--to ") + toString(target), 0, 0};
  spec.search.space.value = SearchSpace::All;
  if (target != Target::TorchTitan)
    return;
  auto only = [](auto &choice, auto value) {
    if (!choice.given) {
      choice.isAuto = false;
      choice.values = {value};
    }
  };
  only(p.expertTensorParallel, int64_t{1});
  if (!p.contextParallelMethod.given)
    std::erase(p.contextParallelMethod.values, ContextMethod::Ring);
}

Exported exports::exportTo(Target target, const ExportInput &input) {
  switch (target) {
  case Target::Megatron:
    return exportMegatron(input);
  case Target::DeepSpeed:
    return exportDeepSpeed(input);
  case Target::TorchTitan:
    return exportTorchTitan(input);
  }
  return {};
}
