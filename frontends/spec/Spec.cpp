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
  return type == RopeType::Llama3 ? "llama3" : "none";
}

const char *toString(Precision precision) {
  return precision == Precision::Fp32 ? "fp32" : "bf16";
}

const char *toString(GradReduceDtype) { return "fp32"; }

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
  return schedule == PipelineSchedule::GPipe ? "gpipe" : "1f1b";
}

const char *toString(Recompute recompute) {
  return recompute == Recompute::None ? "none" : "full";
}

} // namespace reckon
