//===- Spec.h - what a person wrote, as plain structs ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The result of reading the YAML files: typed, with defaults filled in, checked
// against each other, and with the place that each value came from. No YAML
// library, no MLIR. Key names and meanings are in docs/spec.md.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_SPEC_H
#define RECKON_FRONTENDS_SPEC_SPEC_H

#include "frontends/spec/Accelerators.h"
#include "frontends/spec/Diagnostic.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// A value and the key that it came from. Without the key (`given` false) the
/// value is the default and `loc` the key of the section around it.
template <typename T> struct Field {
  T value{};
  SourceLoc loc;
  bool given = false;

  const T &operator*() const { return value; }
  const T *operator->() const { return &value; }
};

/// What the planner may choose from for one key. `isAuto` leaves the choice to
/// the planner. `values` are the allowed ones, none twice, in the order
/// written; a fixed value is a list of one. Where the whole domain is known
/// (zero_stage, pipeline_schedule, recompute, the switches and methods)
/// `values` is filled for auto too; it is empty for degrees, unless the rest of
/// the spec leaves one value only (expert_parallel of a dense model: 1).
template <typename T> struct Choice {
  bool isAuto = true;
  std::vector<T> values;
  SourceLoc loc;
  bool given = false;

  /// The user wrote exactly one value.
  bool fixed() const { return !isAuto && values.size() == 1; }
  T value() const { return values.front(); }
  /// Whether the planner may take `v`.
  bool allows(const T &v) const {
    return (isAuto && values.empty()) ||
           std::find(values.begin(), values.end(), v) != values.end();
  }
};

enum class RopeType { None, Llama3, Linear, Dynamic, Yarn, LongRope };

/// Rescaling of rotary frequencies, with the names and formulas of Hugging
/// Face's `rope_type`. It costs no memory and next to no time; only Llama3 can
/// be compiled.
struct RopeScalingSpec {
  Field<RopeType> type;
  Field<double> factor;
  Field<double> lowFreqFactor;  ///< only llama3
  Field<double> highFreqFactor; ///< only llama3
  Field<int64_t> originalMaxPositionEmbeddings;
  // Only yarn; 0 when not given.
  Field<double> betaFast;
  Field<double> betaSlow;
  Field<double> mscale;
  Field<double> mscaleAllDim;
  Field<double> attentionFactor;
};

/// The model; keys and defaults are those of a Hugging Face config.json.
struct ModelSpec {
  SourceLoc loc;
  Field<std::string> name;
  Field<std::string> architecture;
  Field<int64_t> vocabSize;
  Field<int64_t> hiddenSize;
  Field<int64_t> intermediateSize;
  Field<int64_t> numHiddenLayers;
  Field<int64_t> numAttentionHeads;
  Field<int64_t> numKeyValueHeads;
  Field<int64_t> headDim;
  Field<bool> tieWordEmbeddings;
  Field<double> ropeTheta;
  RopeScalingSpec ropeScaling;
  Field<double> rmsNormEps;
  Field<double> layerNormEpsilon; ///< only gpt2
  Field<double> initializerRange;
  /// Rows of gpt2's position embedding, by default the sequence length. For
  /// the others 0 when not given, and only a warning compares it with that.
  Field<int64_t> maxPositionEmbeddings;
  Field<std::string> hiddenAct;
  Field<bool> attentionBias;
  Field<bool> qkNorm;
  // MLA; all 0 without it.
  Field<int64_t> qLoraRank;
  Field<int64_t> kvLoraRank;
  Field<int64_t> qkNopeHeadDim;
  Field<int64_t> qkRopeHeadDim;
  Field<int64_t> vHeadDim;
  // Mixture of experts; 0 experts for a dense model.
  Field<int64_t> numExperts; ///< num_local_experts or n_routed_experts
  Field<int64_t> numExpertsPerTok;
  Field<int64_t> moeIntermediateSize;
  Field<int64_t> nSharedExperts;
  Field<int64_t> firstKDenseReplace;
  Field<double> routerAuxLossCoef;
  Field<double> routerZLossCoef;
  Field<int64_t> numNextnPredictLayers; ///< multi-token prediction
};

/// Texts that go into launch.sbatch as they are.
struct SlurmSpec {
  SourceLoc loc;
  Field<std::string> partition;
  Field<std::string> account;
  Field<std::string> qos;
  Field<std::string> time;
  Field<std::string> setup;                 ///< shell lines before srun
  Field<std::vector<std::string>> srunArgs; ///< one argument an entry
  Field<std::vector<std::string>> extra;    ///< one #SBATCH option an entry
};

/// How the job survives failures; what reckon goodput and the objective
/// time_to_train compute with. Seconds, and GB/s of 10^9 bytes.
struct ResilienceSpec {
  SourceLoc loc;
  Field<double> checkpointBandwidthGbs; ///< all machines together
  Field<double> copyBandwidthGbs;       ///< one device to its host
  Field<double> checkpointOverheadS;
  Field<double> checkpointStallS; ///< not given: derived from the plan
  Field<double> detectS;
  Field<double> restartS;
  Field<double> loadS; ///< not given: bytes over checkpointBandwidthGbs
};

struct ClusterSpec {
  SourceLoc loc;
  Field<Accelerator> accelerator;
  Field<int64_t> nodes;
  Field<int64_t> gpusPerNode;
  Field<double> interNodeBandwidthGbps; ///< Gbit/s per GPU, per direction
  Field<double> memoryReserveGib;
  Field<double> hostMemoryGib; ///< per node; 0 when not known
  Field<double> gpuMtbfHours;
  Field<double> pricePerGpuHour;
  /// Measured efficiencies: the path from the current folder, or empty.
  Field<std::string> calibration;
  /// Its constants by name, in its order; see Calibration.h.
  std::vector<std::pair<std::string, double>> calibrated;
  Field<std::string> efficiencyProfile;  ///< `reckon` when not given
  Field<std::string> bootstrapInterface; ///< empty when not given
  ResilienceSpec resilience;
  SlurmSpec slurm;

  int64_t worldSize() const { return *nodes * *gpusPerNode; }
};

enum class Precision { Fp32, Bf16, Fp8 };
enum class GradReduceDtype { Fp32, Bf16 };

struct OptimizerSpec {
  SourceLoc loc;
  Field<std::string> name; ///< adamw
  Field<double> lr;
  Field<double> beta1;
  Field<double> beta2;
  Field<double> eps;
  Field<double> weightDecay;
  Field<double> clipGrad; ///< largest global norm; 0 turns clipping off
};

enum class LrScheduleType { Constant, Linear, Cosine, Wsd };

/// With s = completed steps counted from 1, w = warmupSteps, T = trainSteps:
/// lr·s/w while s <= w; then by type, with x = (s − w)/(T − w):
/// constant lr; linear lr + (minLr − lr)·x;
/// cosine minLr + (lr − minLr)·(1 + cos πx)/2; wsd lr until T − decaySteps and
/// from there in a straight line to minLr at T. Past T the value at T.
struct LrScheduleSpec {
  SourceLoc loc;
  Field<LrScheduleType> type;
  Field<int64_t> warmupSteps;
  Field<int64_t> decaySteps; ///< only wsd
  Field<double> minLr;
};

struct DataSpec {
  SourceLoc loc;
  bool given = false;        ///< whether training.data is there at all
  Field<std::string> format; ///< text or megatron
  Field<std::string> path;   ///< as written
  /// Folder that a relative `path` starts from: the one of the YAML file that
  /// names it, empty for the current one.
  std::string folder;
  Field<std::string> tokenizer; ///< byte, or a path as written

  /// `path` as seen from the current folder.
  std::string resolvedPath() const;
};

struct CheckpointSpec {
  SourceLoc loc;
  bool given = false;
  Field<std::string> dir;
  Field<int64_t> interval; ///< steps; 0 for auto and for none
  Field<int64_t> keep;
  Field<bool> async;
};

struct TrainingSpec {
  SourceLoc loc;
  Field<int64_t> sequenceLength;
  Field<int64_t> globalBatchSize; ///< sequences per step
  Field<int64_t> trainSteps;
  Field<Precision> precision;
  Field<GradReduceDtype> gradReduceDtype;
  OptimizerSpec optimizer;
  LrScheduleSpec lrSchedule;
  Field<int64_t> seed;
  DataSpec data;
  CheckpointSpec checkpoint;
};

enum class PipelineSchedule {
  GPipe,
  OneFOneB,
  Interleaved, ///< 1F1B with several chunks a rank, Megatron's order
  Bfs,         ///< looped breadth-first
  ZbH1,
  ZbH2,
  ZbV,
  DualPipeV,
  Synthesized, ///< made by the solver
  Csv          ///< read from ParallelismSpec::scheduleFile
};
enum class Recompute { None, Selective, Full };
enum class ContextMethod { None, Ring, AllGather, AllToAll };
/// Whose memory, traffic and limits are accounted for.
enum class Representation { Reckon, Megatron, DeepSpeed, TorchTitan };
enum class Objective { StepTime, TimeToTrain, Cost, Memory };
/// Which choices the planner may take: all that it can account for, or those
/// that `reckon compile` can lower.
enum class SearchSpace { All, Compilable };

/// The choices that are left to the planner.
struct ParallelismSpec {
  SourceLoc loc;
  Choice<int64_t> tensorParallel;
  Choice<bool> sequenceParallel;
  Choice<int64_t> contextParallel;
  Choice<ContextMethod> contextParallelMethod;
  Choice<int64_t> pipelineParallel;
  Choice<int64_t> virtualPipeline;
  Choice<PipelineSchedule> pipelineSchedule;
  /// Of `csv:FILE`, as a path from the current folder; else empty.
  std::string scheduleFile;
  /// Decoder layers of each virtual stage, pp * v entries in the order of the
  /// forward; empty for auto. Only the first entry (which also holds the
  /// embedding) and the last one (the loss) may be 0. Given, pipelineParallel
  /// and virtualPipeline are narrowed to what its length allows.
  Field<std::vector<int64_t>> pipelineLayout;
  Choice<int64_t> expertParallel;
  Choice<int64_t> expertTensorParallel;
  /// auto: world / (tp·cp·pp).
  Choice<int64_t> dataParallel;
  Choice<int64_t> zeroStage;
  Choice<int64_t> microBatchSize;
  Choice<Recompute> recompute;
  /// Of `{layers: n}`: so many layers of each virtual stage (or all that it
  /// has) are fully recomputed; `recompute` is then fixed to Full.
  std::optional<int64_t> recomputeLayers;
  /// 0: dropless; given (`none`), buffers hold the worst case; not given,
  /// accounted with an expected imbalance. Else at least 1.
  Field<double> moeCapacityFactor;
  Field<Representation> representation;
};

struct ConstraintsSpec {
  SourceLoc loc;
  /// Bounds total − reserve of a rank. Not given: the accelerator's memory
  /// minus the reserve, which is then the value.
  Field<double> memoryLimitGib;
  Field<double> maxBubble; ///< idle time over ideal time
  Field<std::optional<double>> hostMemoryLimitGib;

  int64_t memoryLimitBytes() const {
    return static_cast<int64_t>(*memoryLimitGib * 1073741824.0);
  }
};

struct SearchSpec {
  SourceLoc loc;
  Field<Objective> objective;
  /// Default: Compilable on `cpu` while all that is fixed can be compiled,
  /// else All. Compilable also narrows the choices that are left open.
  Field<SearchSpace> space;
  Field<double> timeLimitS;
  Field<int64_t> top;
};

/// Everything a compile needs to know from the user.
struct Spec {
  ModelSpec model;
  ClusterSpec cluster;
  TrainingSpec training;
  ParallelismSpec parallelism;
  ConstraintsSpec constraints;
  SearchSpec search;
  std::vector<Diagnostic> warnings;
  /// The merged spec as one YAML text: keys in the order of docs/spec.md,
  /// values as written, nothing of the machine or of the files it came from.
  /// Reading it gives the same spec and the same text.
  std::string canonical;
};

/// The YAML spellings, for reports.
const char *toString(RopeType type);
const char *toString(Precision precision);
const char *toString(GradReduceDtype dtype);
const char *toString(LrScheduleType type);
const char *toString(PipelineSchedule schedule);
const char *toString(Recompute recompute);
const char *toString(ContextMethod method);
const char *toString(Representation representation);
const char *toString(Objective objective);
const char *toString(SearchSpace space);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_SPEC_H
