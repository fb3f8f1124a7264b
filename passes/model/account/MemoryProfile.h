//===- MemoryProfile.h - how a framework uses memory ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The numbers in which frameworks differ: bytes per parameter, what a layer
// saves, buffers, allocator. They are data: memory_profiles.csv, one number a
// line with its source, date and tag. Tags: S, follows from the framework's
// source or its own description; P, a published measurement; F, fitted, at most
// one per framework family; A, an assumption.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_MEMORYPROFILE_H
#define RECKON_PASSES_MODEL_ACCOUNT_MEMORYPROFILE_H

#include "frontends/spec/Spec.h"
#include "runtime/base/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace reckon::model {

/// All bytes are per element or per token and hidden unit (h) unless said.
struct MemoryProfile {
  std::string name; ///< of the entry that was found
  // States with ZeRO 0 to 2. `sharded` ones are divided by the group that
  // shards from ZeRO-1 on, gradients from ZeRO-2 on.
  double weight = 0;        ///< compute weights
  double gradient = 0;      ///< gradients and their accumulator
  double gradientShard = 0; ///< copy of the own shard's gradients
  double optimizer = 0;     ///< main weights and moments
  // Another release of the framework, told by its pipelines: layers do not
  // divide by the stages, but with embedding and head as layers they do. 0: no
  // such release.
  double unitGradient = 0;
  double unitGradientShard = 0;
  // States with ZeRO-3, all divided.
  double shardedWeight = 0;
  double shardedGradient = 0;
  double shardedOptimizer = 0;
  double gatheredUnits = 0;  ///< layers whose whole weights live at once
  double unreducedUnits = 0; ///< layers whose whole gradient lives at once
  double unreducedBytes = 0; ///< of one element of it
  /// 1: weights stay gathered and gradients whole during a pipeline's step.
  double pipelineKeepsUnits = 0;
  // What a layer saves.
  double norms = 0; ///< inputs and outputs of the norms
  /// Whole inputs of column matmuls that sequence parallelism gathered and
  /// that are kept for the backward.
  double gatheredNorms = 0;
  double dropout = 0;       ///< masks, only of models with biases (GPT-2)
  double scores = 0;        ///< per attention score; 0: fused attention
  double gatedMlp = 0;      ///< per token and inner unit, SwiGLU
  double plainMlp = 0;      ///< the same, GELU
  double selectiveKeep = 0; ///< share of a layer kept by selective recompute;
                            ///< 0: all but the scores
  double liveLayers = 0; ///< whole layers beside the saved inputs while one is
                         ///< recomputed: its values and their gradients
  double pipelineBuffers = 0; ///< of a micro-batch in flight beside its stash
  double logits = 0;          ///< per logit
  /// Only fp8: of an element of a matmul's saved input, and of the copies of
  /// an element of the layers' weights.
  double fp8Inputs = 0;
  double fp8Weights = 0;
  double wholeLogits = 0;  ///< the same, not divided by tensor parallelism
  double moeImbalance = 0; ///< rows of the fullest rank over the mean
  // Buffers and the allocator.
  double gatheredCopies = 0; ///< whole activations that sequence parallelism
                             ///< gathers and that live at once
  double bucketBytes = 0;    ///< of communication buckets outside the states
  double fixedGib = 0;       ///< what no formula explains
  double allocator = 0;      ///< bytes taken over bytes asked for
  double stateAllocator = 0; ///< the same of the states
  // How layers are spread when the spec leaves it open: 0 evenly, 1 by
  // parameters, the head's included.
  double layout = 0;
  /// Rows of the vocabulary are padded to this many times tp.
  double vocabularyMultiple = 0;
};

/// Entries are looked up by the exact name, then by the longest entry that the
/// name begins with, then by the representation's own entry. What an entry
/// leaves out comes from its `base`, at last from `global`.
MemoryProfile memoryProfile(std::string_view efficiencyProfile,
                            Representation representation);

/// The same from a table in the form of memory_profiles.csv.
Result<MemoryProfile> memoryProfile(std::string_view efficiencyProfile,
                                    Representation representation,
                                    std::string_view csv);

/// memory_profiles.csv as it was when this was built.
std::string_view memoryProfileTable();

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_MEMORYPROFILE_H
