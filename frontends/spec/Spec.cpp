//===- Spec.cpp -----------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Spec.h"

namespace reckon {

std::string DataSpec::resolvedPath() const {
  if (folder.empty() || path->empty() || path->front() == '/')
    return *path;
  return (folder.back() == '/' ? folder : folder + "/") + *path;
}

const char *toString(RopeType type) {
  switch (type) {
  case RopeType::None:
    return "none";
  case RopeType::Llama3:
    return "llama3";
  case RopeType::Linear:
    return "linear";
  case RopeType::Dynamic:
    return "dynamic";
  case RopeType::Yarn:
    return "yarn";
  case RopeType::LongRope:
    return "longrope";
  }
  return "";
}

const char *toString(Precision precision) {
  switch (precision) {
  case Precision::Fp32:
    return "fp32";
  case Precision::Bf16:
    return "bf16";
  case Precision::Fp8:
    return "fp8";
  }
  return "";
}

const char *toString(GradReduceDtype dtype) {
  return dtype == GradReduceDtype::Fp32 ? "fp32" : "bf16";
}

const char *toString(LrScheduleType type) {
  switch (type) {
  case LrScheduleType::Constant:
    return "constant";
  case LrScheduleType::Linear:
    return "linear";
  case LrScheduleType::Cosine:
    return "cosine";
  case LrScheduleType::Wsd:
    return "wsd";
  }
  return "";
}

const char *toString(PipelineSchedule schedule) {
  switch (schedule) {
  case PipelineSchedule::GPipe:
    return "gpipe";
  case PipelineSchedule::OneFOneB:
    return "1f1b";
  case PipelineSchedule::Interleaved:
    return "interleaved_1f1b";
  case PipelineSchedule::Bfs:
    return "bfs";
  case PipelineSchedule::ZbH1:
    return "zb_h1";
  case PipelineSchedule::ZbH2:
    return "zb_h2";
  case PipelineSchedule::ZbV:
    return "zbv";
  case PipelineSchedule::DualPipeV:
    return "dualpipe_v";
  case PipelineSchedule::Synthesized:
    return "synthesized";
  case PipelineSchedule::Csv:
    return "csv:FILE";
  }
  return "";
}

const char *toString(Recompute recompute) {
  switch (recompute) {
  case Recompute::None:
    return "none";
  case Recompute::Selective:
    return "selective";
  case Recompute::Full:
    return "full";
  }
  return "";
}

const char *toString(ContextMethod method) {
  switch (method) {
  case ContextMethod::None:
    return "none";
  case ContextMethod::Ring:
    return "ring";
  case ContextMethod::AllGather:
    return "all_gather";
  case ContextMethod::AllToAll:
    return "all_to_all";
  }
  return "";
}

const char *toString(Representation representation) {
  switch (representation) {
  case Representation::Reckon:
    return "reckon";
  case Representation::Megatron:
    return "megatron";
  case Representation::DeepSpeed:
    return "deepspeed";
  case Representation::TorchTitan:
    return "torchtitan";
  }
  return "";
}

const char *toString(Objective objective) {
  switch (objective) {
  case Objective::StepTime:
    return "step_time";
  case Objective::TimeToTrain:
    return "time_to_train";
  case Objective::Cost:
    return "cost";
  case Objective::Memory:
    return "memory";
  }
  return "";
}

const char *toString(SearchSpace space) {
  return space == SearchSpace::All ? "all" : "compilable";
}

} // namespace reckon
