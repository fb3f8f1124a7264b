//===- CudaListing.h - plan.cu.txt: what a plan issues on CUDA ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The plan as a person who knows CUDA and NCCL would write it down. Nothing
// executes the text: the runtime makes these calls from the stage files, and
// the text is made from the same files.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_LISTING_CUDALISTING_H
#define RECKON_PASSES_LISTING_CUDALISTING_H

#include "runtime/plan/Manifest.h"

#include <optional>
#include <span>
#include <string>

namespace reckon::listing {

/// Its name within a plan directory.
inline constexpr const char *kCudaListing = "plan.cu.txt";

/// For each stage its streams, communicators, channels and arena; each
/// fragment's instructions as numbered calls in issue order, with the layer and
/// the YAML place on the right; each action list with its waits and records.
/// Depends on name, mesh and cluster of the manifest and on the stages alone,
/// and is valid for every rank of a stage: what differs between ranks is an
/// expression over their coordinates.
std::string cudaListing(const plan::Manifest &manifest,
                        std::span<const plan::StagePlanT *const> stages);

} // namespace reckon::listing

#endif // RECKON_PASSES_LISTING_CUDALISTING_H
