//===- LearningRate.cpp - the learning rate of a step ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace reckon::exec {

double learningRate(const plan::OptimizerT &o, uint64_t step) {
  if (step <= o.warmup_steps)
    return o.lr * static_cast<double>(step) /
           static_cast<double>(o.warmup_steps);
  if (o.schedule == "constant")
    return o.lr;
  uint64_t horizon = std::max<uint64_t>(o.train_steps, o.warmup_steps + 1);
  uint64_t at = std::min(step, horizon);
  if (o.schedule == "wsd") {
    uint64_t decay = std::min(o.decay_steps, horizon - o.warmup_steps);
    if (decay == 0 || at <= horizon - decay)
      return o.lr;
    double x = static_cast<double>(at - (horizon - decay)) /
               static_cast<double>(decay);
    return o.lr + (o.min_lr - o.lr) * x;
  }
  double x = static_cast<double>(at - o.warmup_steps) /
             static_cast<double>(horizon - o.warmup_steps);
  if (o.schedule == "linear")
    return o.lr + (o.min_lr - o.lr) * x;
  return o.min_lr +
         (o.lr - o.min_lr) * (1 + std::cos(std::numbers::pi * x)) / 2;
}

Status checkSchedule(const plan::OptimizerT &o) {
  if (o.schedule == "constant" || o.schedule == "linear" ||
      o.schedule == "cosine" || o.schedule == "wsd")
    return Status::success();
  return makeError(ExitCode::Incompatible,
                   "expected a learning-rate schedule constant, linear, cosine "
                   "or wsd in the plan, got \"" +
                       o.schedule + "\": compile the plan again");
}

} // namespace reckon::exec
