//===- Optimizer.cpp - what a step does once ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Optimizer.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

bool model::shardsEveryMicroBatch(Representation representation,
                                  const Choice &choice) {
  // With a pipeline every framework keeps parameters whole through the step
  // and reduces once.
  if (choice.pp > 1)
    return false;
  return choice.zero == 3 ||
         (choice.zero == 2 && representation != Representation::Megatron);
}

DataTime model::dataTime(const Job &job, const Efficiency &e,
                         const Links &links, const Choice &choice,
                         const LocalParameters &parameters, double forward,
                         double backward) {
  DataTime time;
  bool eachMicroBatch = shardsEveryMicroBatch(job.representation, choice);
  if (eachMicroBatch &&
      (choice.zero == 3 || job.representation == Representation::TorchTitan))
    return time; // all of it is in the layers
  Group group{choice.dp * choice.cp, choice.tp};
  Group expertGroup{std::max<int64_t>(1, choice.edp()), choice.ep * choice.etp};
  double gradient = e.gradientBytes;
  if (gradient <= 0)
    gradient = job.gradReduce == GradReduceDtype::Bf16 ? 2 : 4;
  auto pass = [&](double bytesPerElement) {
    auto one = [&](const Group &g, double elements) {
      if (g.size <= 1 || elements <= 0)
        return 0.0;
      double bytes = bytesPerElement * elements;
      return links.pass(g, bytes, std::ceil(bytes / e.bucketBytes));
    };
    return one(group, parameters.dense) + one(expertGroup, parameters.experts);
  };
  auto sent = [&](double bytesPerElement) {
    auto one = [&](const Group &g, double elements) {
      auto n = static_cast<double>(g.size);
      return bytesPerElement * elements * (n - 1) / n;
    };
    return one(group, parameters.dense) + one(expertGroup, parameters.experts);
  };
  double width = job.precision == Precision::Fp32 ? 4 : 2;
  if (choice.zero == 0) {
    time.reduce = 2 * pass(gradient);
    time.reduceBytes = 2 * sent(gradient);
  } else {
    if (!eachMicroBatch) {
      time.reduce = pass(gradient);
      time.reduceBytes = sent(gradient);
    }
    time.gather = pass(width);
    time.gatherBytes = sent(width);
  }

  time.reduce *= e.factor;
  time.gather *= e.factor;

  auto v = static_cast<double>(choice.v);
  if ((choice.zero == 0 ? e.allReduceOverlap : e.dataOverlap) <= 0) {
    time.exposed = time.reduce + time.gather;
  } else {
    // Chunks finish one after the other: all but the last one's buckets have
    // the rest of the cool-down (and the warm-up for gathering) to hide in.
    double ramp =
        0.8 * static_cast<double>(std::min(choice.numMicroBatches, choice.pp)) *
        (v - 1) / v;
    auto exposed = [&](double seconds, double passes, double pass) {
      return std::max(e.dataAlways / v * seconds,
                      seconds - std::max(passes, ramp) * pass);
    };
    time.exposed = exposed(time.reduce, e.dataBackward, backward) +
                   exposed(time.gather, e.dataForward, forward);
  }
  return time;
}

double model::optimizerTime(const Kernels &kernels, const Choice &choice,
                            const LocalParameters &parameters) {
  const Efficiency &e = kernels.e;
  double shard = parameters.total();
  if (choice.zero > 0)
    shard = parameters.dense / static_cast<double>(choice.dp * choice.cp) +
            parameters.experts /
                static_cast<double>(std::max<int64_t>(1, choice.edp()));
  double local = choice.zero >= 3 ? shard : parameters.total();
  return e.factor * kernels.traffic(e.optimizerShardBytes * shard +
                                    e.optimizerLocalBytes * local);
}
