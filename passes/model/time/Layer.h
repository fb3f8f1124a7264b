//===- Layer.h - time of one layer, of the embedding and of the head ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_LAYER_H
#define RECKON_PASSES_MODEL_TIME_LAYER_H

#include "passes/model/time/Collectives.h"
#include "passes/model/time/Kernels.h"
#include "passes/model/time/TensorPasses.h"

#include <array>

namespace reckon::model {

/// What the time of a layer depends on beside the job.
struct LayerKey {
  int64_t tp = 1, cp = 1, ep = 1, etp = 1, microBatch = 1;
  /// dp when parameters are gathered every micro-batch (ZeRO-3, FSDP), else 0.
  int64_t shardDp = 0;
  ContextMethod method = ContextMethod::None;
  bool sequenceParallel = false;
  bool pipeline = false;      ///< pp > 1
  bool gatherForward = true;  ///< false: only gradients are sharded (ZeRO-2)
  bool gatherBackward = true; ///< false: kept from the forward
  bool operator==(const LayerKey &) const = default;
};

/// Seconds of communication of one micro-batch: all of it, and what lengthens
/// the step.
struct Exposure {
  double total = 0;
  double exposed = 0;
  Exposure &operator+=(const Exposure &other) {
    total += other.total;
    exposed += other.exposed;
    return *this;
  }
  friend Exposure operator*(double scale, const Exposure &e) {
    return {scale * e.total, scale * e.exposed};
  }
};

/// One unit (a layer, the embedding, the head) on one rank, one micro-batch.
/// Indices of the arrays are Recompute values: what the backward costs when
/// the unit recomputes nothing, some or all of its forward.
struct LayerTime {
  Work forward;
  Work inputGrad;  ///< backward: gradient of the input
  Work weightGrad; ///< backward: gradients of the weights
  std::array<Work, 3> recompute{};
  Exposure tensorForward;
  std::array<Exposure, 3> tensorBackward{};
  /// Hidden states that they move, in wholes.
  double tensorPassesForward = 0;
  std::array<double, 3> tensorPassesBackward{};
  Exposure contextForward, contextBackward;
  Exposure expertForward, expertBackward;
  Exposure shardForward; ///< parameter gathering of ZeRO-3 and FSDP
  std::array<Exposure, 3> shardBackward{};
  /// Waiting for the host to launch kernels.
  double hostForward = 0;
  std::array<double, 3> hostBackward{};

  double forwardSeconds() const {
    return forward.total() + tensorForward.exposed + contextForward.exposed +
           expertForward.exposed + shardForward.exposed + hostForward;
  }
  /// Backward, recomputation included.
  double backwardSeconds(Recompute r) const {
    auto i = static_cast<size_t>(r);
    return inputGrad.total() + weightGrad.total() + recompute[i].total() +
           tensorBackward[i].exposed + contextBackward.exposed +
           expertBackward.exposed + shardBackward[i].exposed + hostBackward[i];
  }
  /// The part of it that a zero-bubble schedule may delay.
  double weightSeconds() const { return weightGrad.total(); }
  /// Every time multiplied by `factor`.
  void scale(double factor);
};

/// Seconds of the two passes of a part of a layer, nothing recomputed.
struct PassSeconds {
  double forward = 0;
  double backward = 0;
  double total() const { return forward + backward; }
  PassSeconds &operator+=(const PassSeconds &other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
  friend PassSeconds operator+(PassSeconds a, const PassSeconds &b) {
    return a += b;
  }
};

/// What a bound adds up: the units of one LayerKey in parts that hang on few of
/// its fields, neither scaled nor waiting for parameters or the host.
struct UnitParts {
  PassSeconds dense, expert; ///< layers without their routed experts
  PassSeconds embedding, head;
  PassSeconds mtp; ///< what a module adds to a layer
};

/// Everything of one LayerKey.
struct UnitTimes {
  LayerTime dense, expert; ///< decoder layers; `expert` only for MoE models
  LayerTime embedding, head, mtp;
};

class LayerModel {
public:
  LayerModel(const Job &job, const Efficiency &efficiency)
      : job_(job), e_(efficiency), kernels_(job, efficiency),
        links_(job, efficiency) {}

  UnitTimes units(const LayerKey &key) const;
  /// Hangs on tp, cp, microBatch, sequenceParallel and method.
  UnitParts parts(const LayerKey &key) const;
  /// Hangs on tokens(key), ep and etp.
  PassSeconds routedExperts(const LayerKey &key) const;
  /// Tokens of a micro-batch that a rank routes.
  double tokens(const LayerKey &key) const;
  /// What the host needs to launch the kernels of one layer, a third of it in
  /// the forward. Overlap.cpp.
  double hostSeconds(const LayerKey &key, bool moe) const;
  const Links &links() const { return links_; }
  const Kernels &kernels() const { return kernels_; }

private:
  struct Shape; ///< sizes on one rank

  LayerTime layer(const LayerKey &key, bool moe, bool routed) const;
  LayerTime embedding(const LayerKey &key) const;
  LayerTime head(const LayerKey &key) const;
  LayerTime mtp(const LayerKey &key, const LayerTime &layer,
                const LayerTime &head) const;

  /// Forward matmul and its two gradients.
  void linear(LayerTime &time, double m, double n, double k,
              bool fp8 = true) const;
  void attention(LayerTime &time, const Shape &shape) const;
  void denseMlp(LayerTime &time, const Shape &shape, double width) const;
  void experts(LayerTime &time, const LayerKey &key, const Shape &shape) const;
  void elementwise(LayerTime &time, const Shape &shape, bool moe) const;
  void tensor(LayerTime &time, const LayerKey &key, const Shape &shape,
              const TensorPasses &passes) const;
  void gatherKeys(LayerTime &time, const LayerKey &key,
                  const Shape &shape) const;
  void context(LayerTime &time, const LayerKey &key, const Shape &shape) const;
  void recomputation(LayerTime &time, const Work &attentionCore) const;
  /// Overlap.cpp: what parameter gathering and the host add. Runs last.
  void finish(LayerTime &time, const LayerKey &key, double parameters,
              double expertParameters, bool moe) const;
  Shape shape(const LayerKey &key) const;

  const Job &job_;
  const Efficiency &e_;
  Kernels kernels_;
  Links links_;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_LAYER_H
