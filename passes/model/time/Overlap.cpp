//===- Overlap.cpp - parameter gathering and the host behind the compute --===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// ZeRO-3 and FSDP gather a layer's parameters before its forward and again
// before its backward and scatter its gradients after it, each micro-batch:
// the longer of compute and communication counts, and a share of the shorter,
// because the communication's kernels take multiprocessors and bandwidth.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Layer.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

double LayerModel::hostSeconds(const LayerKey &key, bool moe) const {
  // With a capacity the shapes are known before the routing is.
  bool waits = moe && job_.moeCapacityFactor <= 0;
  double host = waits ? e_.hostExpert : e_.hostLayer;
  if (key.tp > 1) {
    auto t = static_cast<double>(key.tp);
    host += e_.hostTensor * t / links_.perDomain({key.tp, 1});
    if (key.pipeline)
      host = std::max(host, e_.hostTensorPipeline * (2 + t));
  }
  return host;
}

void LayerModel::finish(LayerTime &time, const LayerKey &key, double parameters,
                        double expertParameters, bool moe) const {
  time.weightGrad.memory +=
      kernels_.traffic(e_.accumulateBytes * (parameters + expertParameters));

  if (key.shardDp > 0) {
    int64_t all = key.shardDp * key.cp;
    Group group{all, key.tp};
    int64_t replicas = std::max<int64_t>(1, key.tp * all / (key.ep * key.etp));
    Group expertGroup{replicas, key.ep * key.etp};
    auto pass = [&](double bytes) {
      return links_.pass(group, bytes * parameters) +
             links_.pass(expertGroup, bytes * expertParameters);
    };
    double gradient = e_.gradientBytes;
    if (gradient <= 0)
      gradient = job_.gradReduce == GradReduceDtype::Bf16 ? 2 : 4;
    double gather = pass(2), reduce = pass(gradient);
    auto beside = [&](double compute, double communication) {
      return std::max(0.0, communication - compute) +
             e_.shardContention * std::min(compute, communication);
    };
    double forward = time.forwardSeconds();
    if (key.gatherForward)
      time.shardForward = {gather, beside(forward, gather)};
    double moved = reduce + (key.gatherBackward ? gather : 0);
    for (size_t i = 0; i < 3; ++i) {
      double backward = time.backwardSeconds(static_cast<Recompute>(i));
      time.shardBackward[i] = {moved, beside(backward, moved)};
    }
  }

  double host = hostSeconds(key, moe);
  double forward = time.forwardSeconds();
  time.hostForward = std::max(0.0, host / 3 - forward);
  for (size_t i = 0; i < 3; ++i) {
    double again = i == static_cast<size_t>(Recompute::Full) ? host / 3 : 0;
    double backward = time.backwardSeconds(static_cast<Recompute>(i));
    time.hostBackward[i] = std::max(0.0, host * 2 / 3 + again - backward);
  }
}
