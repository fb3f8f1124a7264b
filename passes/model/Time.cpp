//===- Time.cpp - a rough prediction of the step time ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Time.h"

#include "passes/model/Flops.h"
#include "passes/model/ParameterTable.h"
#include "passes/model/StageModel.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

namespace {

// One number for all devices. The best shapes reach 0.80 of the data sheet's
// matmul peak (H100: 794 of 989 TFLOP/s, published measurements); sustained
// clocks and average shapes leave 0.87 of that.
constexpr double kMatmulEfficiency = 0.80 * 0.87;
// Fused attention against the matmul peak, long sequences.
constexpr double kAttentionForward = 0.65 * 0.87;
constexpr double kAttentionBackward = 0.55 * 0.87;
constexpr double kAttentionHalfSequence = 1024;
constexpr double kMemoryEfficiency = 0.82;
constexpr double kKernelLatency = 2e-6;
constexpr double kElementwiseBackward = 1.6; ///< bytes against the forward's
constexpr double kLossBytesPerLogit = 14;
constexpr double kIntraEfficiency = 0.80, kInterEfficiency = 0.85;
constexpr double kIntraLatency = 8e-6, kInterLatency = 15e-6;
constexpr double kHopLatency = 2e-6;
constexpr double kHostSeconds = 8e-3;       ///< a step
constexpr double kJitterPerDoubling = 5e-3; ///< beyond 8 devices

/// Times of one pass of one layer or of the head.
struct PassTime {
  double kernels = 0; ///< matmul and attention
  double memory = 0;  ///< memory-bound ops
  double compute() const { return kernels + memory; }
  PassTime &operator+=(const PassTime &other) {
    kernels += other.kernels;
    memory += other.memory;
    return *this;
  }
};

/// What one stage does for one micro-batch.
struct StageWork {
  PassTime forward, backward, recompute;
  double tensorForward = 0, tensorBackward = 0; ///< TP collectives, s
  double modelFlops = 0;                        ///< of this rank
  double compute() const {
    return forward.compute() + backward.compute() + recompute.compute();
  }
  double total() const { return compute() + tensorForward + tensorBackward; }
};

class TimeModel {
public:
  TimeModel(const ModelDims &dims, const model::Choice &choice,
            const ClusterSpeeds &cluster)
      : dims_(dims), choice_(choice), cluster_(cluster),
        tokens_(static_cast<double>(choice.microBatch * dims.sequence)),
        width_(choice.precision == Precision::Bf16 ? 2 : 4),
        t_(static_cast<double>(choice.tp)), layer_(layerParameters(dims, 0)),
        embedding_{embeddingParameter(dims)}, head_(headParameters(dims)) {}

  StepTime run(int64_t globalBatch);

private:
  double bandwidth(bool within) const {
    return within ? cluster_.intraBandwidth * kIntraEfficiency
                  : cluster_.interBandwidth * kInterEfficiency;
  }

  /// A ring of `size` ranks moving `passes` times (size-1)/size of `bytes`.
  double ring(double bytes, double size, double passes, bool within,
              double links = 1) const {
    if (size <= 1)
      return 0;
    double speed = bandwidth(within) * links;
    if (!within)
      speed = std::min(speed, bandwidth(true));
    return (within ? kIntraLatency : kInterLatency) + kHopLatency * (size - 1) +
           passes * bytes * (size - 1) / size / speed;
  }

  double matmul(double m, double n, double k) const {
    double flops = 2 * m * n * k;
    double bytes = width_ * (m * k + k * n + m * n);
    return std::max(flops / (cluster_.peakFlops * kMatmulEfficiency),
                    bytes / (cluster_.memoryBandwidth * kMemoryEfficiency)) +
           kKernelLatency;
  }

  /// The matmuls of the parameters, `times` each, split over TP.
  double matmuls(const std::vector<Parameter> &parameters, int times) const {
    double seconds = 0;
    for (const Parameter &p : parameters)
      if (p.matmul)
        seconds +=
            times * matmul(tokens_,
                           static_cast<double>(p.localElements(choice_.tp)) /
                               static_cast<double>(dims_.hidden),
                           static_cast<double>(dims_.hidden));
    return seconds;
  }

  double attention(double scale, double efficiency) const {
    auto s = static_cast<double>(dims_.sequence);
    double flops = scale * attentionForwardFlops(dims_) * tokens_ / t_;
    return flops / (cluster_.peakFlops * efficiency * s /
                    (s + kAttentionHalfSequence)) +
           kKernelLatency;
  }

  double memoryTime(double bytes) const {
    return bytes / (cluster_.memoryBandwidth * kMemoryEfficiency);
  }

  double elementwiseBytes() const {
    auto h = static_cast<double>(dims_.hidden);
    auto q = static_cast<double>(dims_.qWidth() + dims_.kvWidth());
    auto f = static_cast<double>(dims_.ffn);
    double norms = choice_.sequenceParallel ? t_ : 1; // split over tokens
    return tokens_ * width_ / 2 * (20 * h / norms + 4 * q / t_ + 6 * f / t_);
  }

  double tensorAllReduce(double bytes) const {
    return ring(bytes, t_, 2, cluster_.withinNode(1, choice_.tp));
  }

  StageWork stageWork(int64_t stage) const;
  void addCommunication(StepTime &time, double transfer,
                        const std::vector<StageWork> &work,
                        int64_t busiest) const;

  /// Most elements that a rank holds, or updates when ZeRO shards them.
  double mostElements(bool sharded) const;

  const ModelDims &dims_;
  const model::Choice &choice_;
  const ClusterSpeeds &cluster_;
  double tokens_, width_, t_;
  std::vector<Parameter> layer_, embedding_, head_;
};

double TimeModel::mostElements(bool sharded) const {
  auto sum = [&](const std::vector<Parameter> &parameters) {
    int64_t elements = 0;
    for (const Parameter &parameter : parameters) {
      int64_t local = parameter.localElements(choice_.tp);
      elements += sharded ? shardElements(local, choice_.dp) : local;
    }
    return elements;
  };
  int64_t layer = sum(layer_), most = 0;
  for (int64_t stage = 0; stage < choice_.pp; ++stage) {
    int64_t elements = choice_.layout[stage] * layer;
    if (stage == 0)
      elements += sum(embedding_);
    if (stage == choice_.pp - 1)
      elements += sum(head_);
    most = std::max(most, elements);
  }
  return static_cast<double>(most);
}

StageWork TimeModel::stageWork(int64_t stage) const {
  StageShape shape = stageShape(choice_, stage);
  auto n = static_cast<double>(shape.layers);
  auto h = static_cast<double>(dims_.hidden);
  double hiddenBytes = tokens_ * h * width_;
  double reduce = tensorAllReduce(hiddenBytes);

  StageWork work;
  work.forward.kernels =
      n * (matmuls(layer_, 1) + attention(1, kAttentionForward));
  work.forward.memory = n * memoryTime(elementwiseBytes());
  work.backward.kernels =
      n * (matmuls(layer_, 2) + attention(2.5, kAttentionBackward));
  work.backward.memory =
      n * memoryTime(kElementwiseBackward * elementwiseBytes());
  work.tensorForward = n * 2 * reduce;
  work.tensorBackward = n * 2 * reduce;
  work.modelFlops = 3 * n * layerForwardFlops(dims_) * tokens_ / t_;
  if (shape.recompute == Recompute::Full) {
    auto f = static_cast<double>(dims_.ffn);
    work.recompute.kernels =
        work.forward.kernels - n * matmul(tokens_, h, f / t_);
    work.recompute.memory = work.forward.memory;
    work.tensorBackward += n * reduce; // the attention's output
  }
  // Under sequence parallelism an all-reduce is a reduce-scatter and a gather;
  // the backward gathers both norms again, or the recomputed forward does.
  if (choice_.sequenceParallel)
    work.tensorBackward +=
        n * reduce * (shape.recompute == Recompute::Full ? 0.5 : 1);
  if (shape.first) {
    work.forward.memory += memoryTime(2 * hiddenBytes);
    work.backward.memory += memoryTime(3 * hiddenBytes);
    work.tensorForward += reduce;
  }
  if (shape.last) {
    // Forward and backward of the head run in the backward fragment.
    double logits = tokens_ * static_cast<double>(dims_.vocab) / t_;
    work.backward.kernels += matmuls(head_, 3);
    work.backward.memory +=
        memoryTime(kLossBytesPerLogit * logits * width_ / 2);
    work.tensorBackward +=
        reduce + tensorAllReduce(tokens_ * 4) + tensorAllReduce(tokens_ * 8);
    work.modelFlops += 3 * headForwardFlops(dims_) * tokens_ / t_;
  }
  return work;
}

StepTime TimeModel::run(int64_t globalBatch) {
  int64_t p = choice_.pp;
  auto m = static_cast<double>(choice_.numMicroBatches);
  std::vector<StageWork> work;
  StepTime time;
  for (int64_t stage = 0; stage < p; ++stage) {
    work.push_back(stageWork(stage));
    const StageWork &w = work.back();
    time.stages.push_back(
        {w.forward.compute() + w.tensorForward,
         w.backward.compute() + w.recompute.compute() + w.tensorBackward});
  }
  auto busiest = std::max_element(work.begin(), work.end(),
                                  [](const StageWork &a, const StageWork &b) {
                                    return a.total() < b.total();
                                  }) -
                 work.begin();
  const StageWork &most = work[busiest];

  bool messagesWithin = cluster_.withinNode(1, choice_.world());
  double transfer = p == 1 ? 0
                           : (messagesWithin ? kIntraLatency : kInterLatency) +
                                 tokens_ * static_cast<double>(dims_.hidden) *
                                     width_ / bandwidth(messagesWithin);
  double still =
      scheduleMakespan(choice_.schedule, choice_.numMicroBatches, time.stages);
  double moving = scheduleMakespan(choice_.schedule, choice_.numMicroBatches,
                                   time.stages, transfer);
  time.compute = m * most.compute();
  time.bubble = still - m * most.total();
  double tensorExposed = m * (most.tensorForward + most.tensorBackward);
  double pipelineExposed = moving - still;

  // Gradients, norm, AdamW and gathering run after the last backward.
  addCommunication(time, transfer, work, busiest);
  double dataExposed = 0;
  for (CommunicationTime &entry : time.communication) {
    if (entry.dimension == "tensor")
      entry.exposed = entry.seconds;
    if (entry.dimension == "pipeline")
      entry.exposed = pipelineExposed;
    if (entry.dimension == "data") {
      entry.exposed = entry.seconds;
      dataExposed += entry.seconds;
    }
  }
  time.exposedCommunication = tensorExposed + pipelineExposed + dataExposed;

  // Norm: read the gradient. AdamW: read gradient, weight, two moments; write
  // weight, two moments and, below fp32, the compute weight.
  time.optimizer = memoryTime(mostElements(choice_.zero > 0) *
                              (4 + 28 + (width_ == 2 ? 2 : 0)));

  double busy = time.compute + time.bubble + time.exposedCommunication;
  double doublings =
      std::max(0.0, std::log2(static_cast<double>(cluster_.devices()) / 8.0));
  time.other = kHostSeconds + kJitterPerDoubling * doublings * busy;
  time.step = busy + time.optimizer + time.other;

  double tokens =
      static_cast<double>(globalBatch) * static_cast<double>(dims_.sequence);
  TokenFlops flops = tokenFlops(dims_, choice_.recompute);
  auto devices = static_cast<double>(cluster_.devices());
  time.ideal = flops.model * tokens / (devices * cluster_.peakFlops);
  time.tokensPerSecond = tokens / time.step;
  time.tokensPerSecondPerDevice = time.tokensPerSecond / devices;
  time.tflopsPerDevice = flops.model * time.tokensPerSecondPerDevice / 1e12;
  time.mfu = time.ideal / time.step;
  time.hfu = time.mfu * flops.hardware / flops.model;

  double busiestIdeal = m * most.modelFlops / cluster_.peakFlops;
  auto lose = [&](const char *item, double seconds) {
    double share = seconds / time.step;
    time.losses.push_back(
        {item, 100 * share, seconds,
         share * devices * cluster_.pricePerDeviceHour * 30 * 24});
  };
  lose("kernel_efficiency",
       m * (most.forward.kernels + most.backward.kernels) - busiestIdeal);
  lose("memory_bound_operations",
       m * (most.forward.memory + most.backward.memory) + time.optimizer);
  lose("tensor_communication", tensorExposed);
  lose("pipeline_bubble", time.bubble);
  lose("data_and_pipeline_communication", dataExposed + pipelineExposed);
  lose("recompute", m * most.recompute.compute());
  lose("imbalance_and_host", busiestIdeal - time.ideal + time.other);
  return time;
}

void TimeModel::addCommunication(StepTime &time, double transfer,
                                 const std::vector<StageWork> &work,
                                 int64_t busiest) const {
  auto m = static_cast<double>(choice_.numMicroBatches);
  double hiddenBytes = tokens_ * static_cast<double>(dims_.hidden) * width_;
  if (choice_.tp > 1) {
    bool within = cluster_.withinNode(1, choice_.tp);
    const StageWork &most = work[busiest];
    StageShape shape = stageShape(choice_, busiest);
    bool full = shape.recompute == Recompute::Full;
    double again = choice_.sequenceParallel ? full ? 0.5 : 1 : 0;
    double n = static_cast<double>(shape.layers) * ((full ? 5 : 4) + again);
    double bytes = (n + shape.first + shape.last) * hiddenBytes;
    if (shape.last)
      bytes += tokens_ * 12;
    time.communication.push_back(
        {"tensor",
         choice_.sequenceParallel ? "reduce_scatter, all_gather" : "all_reduce",
         within ? "intra_node" : "inter_node", m * bytes * 2 * (t_ - 1) / t_,
         m * (most.tensorForward + most.tensorBackward)});
  }
  if (choice_.pp > 1) {
    bool within = cluster_.withinNode(1, choice_.world());
    double messages = m * (choice_.pp > 2 ? 2 : 1);
    time.communication.push_back({"pipeline", "send_recv",
                                  within ? "intra_node" : "inter_node",
                                  messages * hiddenBytes, messages * transfer});
  }
  if (choice_.dp > 1) {
    auto d = static_cast<double>(choice_.dp);
    bool within = cluster_.withinNode(choice_.tp, choice_.dp);
    // Ranks of the group on one node share that node's links.
    double links = static_cast<double>(std::clamp<int64_t>(
        cluster_.devicesPerNode / choice_.tp, 1, choice_.dp));
    double elements = mostElements(false);
    const char *link = within ? "intra_node" : "inter_node";
    auto add = [&](const char *name, double bytes, double passes) {
      time.communication.push_back({"data", name, link,
                                    passes * bytes * (d - 1) / d,
                                    ring(bytes, d, passes, within, links)});
    };
    if (choice_.zero == 0) {
      add("all_reduce", 4 * elements, 2);
    } else {
      add("reduce_scatter", 4 * elements, 1);
      add("all_gather", width_ * elements, 1);
    }
  }
}

} // namespace

StepTime model::stepTime(const ModelDims &dims, const model::Choice &choice,
                         const ClusterSpeeds &cluster, int64_t globalBatch) {
  return TimeModel(dims, choice, cluster).run(globalBatch);
}
