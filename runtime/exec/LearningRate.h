//===- LearningRate.h - the learning rate of a step -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_LEARNINGRATE_H
#define RECKON_RUNTIME_EXEC_LEARNINGRATE_H

#include "runtime/base/Status.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>

namespace reckon::exec {

/// The learning rate of step s, counted from 1, with w warm-up steps and a
/// horizon of T steps: lr * s / w while s <= w; then with x = (s - w) / (T - w)
///   constant  lr
///   linear    lr + (min_lr - lr) * x
///   cosine    min_lr + (lr - min_lr) * (1 + cos(pi * x)) / 2
///   wsd       lr until T - decay_steps, from there linearly to min_lr at T
/// Past T the value at T.
double learningRate(const plan::OptimizerT &optimizer, uint64_t step);

/// Refuses a schedule that learningRate does not know (Incompatible).
Status checkSchedule(const plan::OptimizerT &optimizer);

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_LEARNINGRATE_H
