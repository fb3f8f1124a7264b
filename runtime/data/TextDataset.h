//===- TextDataset.h - samples of a text file -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A text file of N bytes holds floor((N - 1) / S) windows of S + 1 bytes that
// start at multiples of S; a window's last byte is only a target, and is the
// next window's first token. Sample k of a run is a window of epoch
// k / windows, in that epoch's order.
//
// Which samples make a step depends on the step alone: micro-batch j of data
// parallel rank d at step s (from 0) is samples
//   s * Bg + j * (dp * b) + d * b + i,   i < b,
// so the set is the same for every dp, pp and micro-batch size.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DATA_TEXTDATASET_H
#define RECKON_RUNTIME_DATA_TEXTDATASET_H

#include "runtime/base/Os.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <memory>
#include <string>

namespace reckon::data {

/// Where token windows come from.
class SampleSource {
public:
  virtual ~SampleSource() = default;

  /// Windows of one epoch.
  virtual uint64_t windows() const = 0;

  /// Writes the tokens of sample k, S each; either pointer may be null.
  /// Target i is the token that follows token i. Allocates nothing.
  virtual void read(uint64_t sample, int32_t *tokens,
                    int32_t *targets) const = 0;
};

/// What a plan says about its text, and where to look for it.
struct TextLocation {
  std::string replacement;   ///< --data; wins when not empty
  std::string path;          ///< as written in the spec
  std::string base;          ///< folder it is relative to, from planDirectory
  std::string planDirectory; ///< where the plan lies now
};

/// The file to read. Environment, with every place that was tried.
Result<std::string> resolveText(FileSystem &files,
                                const TextLocation &location);

/// Opens a text file, mapped into memory, with the byte tokenizer. Errors:
/// Environment when it cannot be read, BadSpec when it is too short for one
/// window or has a byte that is no token of the vocabulary.
Result<std::unique_ptr<SampleSource>> openText(const std::string &path,
                                               int64_t sequenceLength,
                                               uint64_t vocabSize,
                                               uint64_t seed);

/// Global number of sample i of a micro-batch; `step` counts from 0.
uint64_t sampleIndex(uint64_t step, uint64_t globalBatch, uint64_t microbatch,
                     uint64_t dp, uint64_t dpRank, uint64_t microBatchSize,
                     uint64_t i);

} // namespace reckon::data

#endif // RECKON_RUNTIME_DATA_TEXTDATASET_H
