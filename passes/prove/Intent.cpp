//===- Intent.cpp - what a plan is meant to compute -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Intent.h"

using namespace reckon;
using namespace reckon::prove;

Intent prove::intentOf(const Spec &spec) {
  const ModelSpec &model = spec.model;
  const TrainingSpec &training = spec.training;
  Intent intent;
  intent.dims = model::modelDims(spec);
  intent.name = *model.name;
  intent.rmsNormEps = *model.rmsNormEps;
  intent.rope = {*model.ropeTheta, 1, 1, 1, 0};
  if (const RopeScalingSpec &scaling = model.ropeScaling;
      *scaling.type == RopeType::Llama3)
    intent.rope = {*model.ropeTheta, *scaling.factor, *scaling.lowFreqFactor,
                   *scaling.highFreqFactor,
                   static_cast<double>(*scaling.originalMaxPositionEmbeddings)};
  intent.bf16 = *training.precision != Precision::Fp32;
  intent.fp8 = *training.precision == Precision::Fp8;
  intent.globalBatch = *training.globalBatchSize;
  intent.seed = *training.seed;
  const OptimizerSpec &adamw = training.optimizer;
  intent.lr = *adamw.lr;
  intent.beta1 = *adamw.beta1;
  intent.beta2 = *adamw.beta2;
  intent.eps = *adamw.eps;
  intent.weightDecay = *adamw.weightDecay;
  intent.clipGrad = *adamw.clipGrad;
  intent.minLr = *training.lrSchedule.minLr;
  intent.schedule = toString(*training.lrSchedule.type);
  intent.warmupSteps = *training.lrSchedule.warmupSteps;
  intent.decaySteps = *training.lrSchedule.decaySteps;
  intent.trainSteps = *training.trainSteps;
  intent.dataFormat = *training.data.format;
  intent.dataPath = *training.data.path;
  intent.tokenizer = *training.data.tokenizer;
  return intent;
}
