//===- Efficiency.h - how close to its nominal speed a machine runs -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every constant of the time model is data: efficiency.csv in this folder,
// compiled into the library, each with where it comes from. A job takes the
// global values, then those of its chip's generation, of the chip, of the
// framework's family and of its release, then the one fitted factor of
// (chip, precision, family), then what a calibration file measured.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_EFFICIENCY_H
#define RECKON_PASSES_MODEL_TIME_EFFICIENCY_H

#include "passes/model/Job.h"
#include "runtime/base/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace reckon::model {

/// One line of the table.
struct EfficiencyRow {
  std::string scope; ///< global, generation, chip, family, release, factor
  /// Whom it is about; empty for global. A release is the beginning of a
  /// profile, with `@ampere` and the like for one generation only.
  std::string key;
  std::string constant;
  double value = 0;
  /// P published measurement, G one global number, F read off the rows of one
  /// family, A assumption, M measured here.
  char tag = 'A';
  std::string date, source;
};

/// Reads the table. Errors name its line (ExitCode::Internal for ours).
Result<std::vector<EfficiencyRow>> parseEfficiency(std::string_view csv);

/// The built-in table, in the file's order.
const std::vector<EfficiencyRow> &efficiencyTable();

/// All constants of one job. Seconds, bytes and 1e12 FLOP/s; efficiencies are
/// fractions. Zero-initialised: the table's global rows give every one.
struct Efficiency {
  // Arithmetic.
  double matmulBf16Tflops = 0; ///< best shape; 0: matmulFraction of the peak
  double matmulFp8Tflops = 0;
  double matmulFraction = 0; ///< of the peak where no ceiling is known
  double eta = 0;            ///< sustained share of the best-shape rate
  double multiprocessors = 0;
  double power = 0;           ///< of the chip's usual power limit, in speed
  double matmulRamp = 0;      ///< columns of K that start and end a tile
  double matmulMemory = 0;    ///< share of memory bandwidth in a matmul
  double kernelLatency = 0;   ///< seconds a kernel
  double splitLatency = 0;    ///< seconds a split-K reduction
  double misaligned = 0;      ///< slow-down of N or K not a multiple of 8
  double attentionKernel = 0; ///< 0 unfused, else FlashAttention generation
  double flash1Forward = 0, flash1Backward = 0; ///< share of the bf16 peak
  double flash2Forward = 0, flash2Backward = 0;
  double flash3Forward = 0, flash3Backward = 0;
  double attentionHalf = 0;       ///< sequence at which half of it is reached
  double smallHead = 0;           ///< share for heads of 64 and less
  double unfusedForwardBytes = 0; ///< per score
  double unfusedBackwardBytes = 0;
  // Switches of a family: what its software does, not how fast it is.
  double fusion = 0; ///< memory-bound operations: 2 compiled or fused, 1 partly
                     ///< (dropout apart), 0 eager
  double fusedNorm = 0;       ///< 1: norms are one kernel each
  double fusedLoss = 0;       ///< 1: one kernel from logits to their gradient
  double fusedAccumulate = 0; ///< 1: weight gradients add into the fp32 sum
  double tensorOverlap = 0;   ///< 1: collectives split among matmuls
  double plainOverlap = 0; ///< 1: backward all-reduces beside weight gradients
  double fsdp = 0;         ///< generation of FSDP: 1, 2
  double eagerHost = 0;    ///< 1: kernels launched one by one from Python
  // Memory-bound operations; bytes per token at 2 bytes an element.
  double memory = 0; ///< share of memory bandwidth
  double normBytes = 0, rotaryBytes = 0, gatedBytes = 0, geluBytes = 0;
  double elementwiseBackward = 0; ///< against the forward
  double elementwise = 0;         ///< traffic against fused kernels'; by fusion
  double elementwisePartly = 0, elementwiseEager = 0;
  double normEager = 0;  ///< traffic of norms made of small kernels
  double logitBytes = 0; ///< loss, per logit, forward and backward
  double logitEager = 0;
  double castBytes = 0;       ///< fp8, per element of a matmul's input
  double accumulateBytes = 0; ///< per parameter and micro-batch
  double accumulateEager = 0;
  double weightGradBytes = 0; ///< per element that a weight gradient writes
  // Recomputation.
  double selectiveMatmul = 0;      ///< share of the matmuls run again
  double selectiveElementwise = 0; ///< share of memory-bound operations
  // Collectives.
  double intra = 0, inter = 0;               ///< share of the link
  double intraLatency = 0, interLatency = 0; ///< seconds a collective
  double intraHop = 0, interHop = 0;         ///< seconds a rank, a node
  double interScale = 0;     ///< of the nominal inter-node bandwidth
  double tensorInter = 0;    ///< share of the node's links, TP across nodes
  double tensorInterHop = 0; ///< seconds a rank, TP across nodes
  // Overlap: exposed shares and what hides behind what.
  double tensorForward = 0, tensorBackward = 0; ///< with sequence parallelism
  double tensorSplit = 0; ///< exposed share of split collectives
  double plainSplit = 0;  ///< exposed share of overlapped backward all-reduces
  double tensorPlainForward = 0, tensorPlainBackward = 0; ///< without
  double contextExposed = 0; ///< share of what attention could hide
  double expertExposed = 0;
  double shardContention = 0; ///< FSDP: share of the shorter that is added
  double shardContention1 = 0, shardContention2 = 0; ///< by generation
  double pipelineSplit = 0;    ///< 1: messages are split over TP ranks
  double pipelineHidden = 0;   ///< share hidden in steady state, plain 1F1B
  double dataOverlap = 0;      ///< 1: reductions run behind the backward
  double allReduceOverlap = 0; ///< the same without ZeRO
  double dataBackward = 0, dataForward = 0; ///< stage passes that hide them
  double dataAlways = 0;                    ///< share always exposed
  double gradientBytes = 0;                 ///< on the wire; 0: as the job says
  double bucketBytes = 0;
  // Experts.
  double permuteBytes = 0;  ///< per token, expert and h
  double imbalance = 0;     ///< heaviest rank against the mean
  double expertLatency = 0; ///< seconds an all-to-all
  double expertInter = 0;   ///< share of the inter-node link
  double groupedMatmul = 0; ///< share of the matmul rate
  // The rest.
  double optimizerShardBytes = 0, optimizerLocalBytes = 0;
  double stepOverhead = 0; ///< seconds a step
  double hostLayer = 0;    ///< seconds to launch one layer, forward + backward
  double hostGraph = 0, hostEager = 0;
  /// More for a layer with tensor parallelism, per domain that its group
  /// spans, and beside a pipeline, per rank (and two): eager hosts only.
  double hostTensor = 0, hostTensorPipeline = 0;
  double hostExpert = 0; ///< the same with experts: routing without a capacity
                         ///< waits for token counts
  double hostMicroBatch = 0; ///< seconds a micro-batch
  double jitter = 0;         ///< share per doubling beyond 8 devices
  /// The one fitted constant of (chip, precision, family): all times but
  /// stepOverhead are multiplied by it.
  double factor = 0;

  // Which rows were used.
  std::string family;   ///< empty: no profile, or one that nobody measured
  bool known = false;   ///< the profile's family is in the table
  bool fitted = false;  ///< a factor of (chip, precision, family) was used
  double errorBand = 0; ///< 90th percentile of the family's residuals
  std::vector<const EfficiencyRow *> rows; ///< all that applied, last wins
};

/// The family of a profile: the longest `family` key that begins it at a word
/// boundary. Empty if there is none.
std::string profileFamily(std::string_view profile,
                          const std::vector<EfficiencyRow> &table);

Efficiency efficiencyFor(const Job &job,
                         const std::vector<EfficiencyRow> &table);

/// Whether the table may have a constant of that name.
bool isEfficiencyConstant(std::string_view name);

/// The factor rows' key: `h100-sxm/bf16/NeMo`.
std::string factorKey(const Job &job, std::string_view family);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_EFFICIENCY_H
