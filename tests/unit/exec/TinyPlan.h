//===- TinyPlan.h - hand-made plans for tests of the runtime --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A model of two matrices: tokens -> embedding -> head -> cross entropy. Its
// plans are made by hand here, without the compiler, for data parallelism with
// and without ZeRO-1 and for two pipeline stages.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_EXEC_TINYPLAN_H
#define RECKON_TESTS_UNIT_EXEC_TINYPLAN_H

#include "runtime/base/Os.h"
#include "runtime/comm/Rendezvous.h"
#include "runtime/exec/Trainer.h"
#include "runtime/plan/PlanIO.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace reckon::test {

struct TinyOptions {
  int dp = 1;
  int pp = 1; // 1 or 2
  int microBatches = 2;
  int microBatchSize = 2;
  bool zero1 = false;
  bool messageEvents = true; // false: sends do not wait for what they send
};

inline constexpr int64_t kVocab = 128;
inline constexpr int64_t kHidden = 15; // odd, so that ZeRO pads
inline constexpr int64_t kSequence = 8;
inline constexpr double kRate = 0.05;
inline constexpr double kClip = 0.5;

/// One plan per stage.
std::vector<std::unique_ptr<plan::StagePlanT>> tinyPlan(TinyOptions options);
plan::Manifest tinyManifest(const plan::StagePlanT &plan);

/// The value of a Result that cannot have failed, moved out.
template <typename T> T take(Result<T> result) {
  if (!result)
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
  RECKON_CHECK(result.ok());
  return std::move(*result);
}

/// The text that the runs learn from.
std::string tinyText();

/// A folder that disappears at the end.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
  std::string path;
};

struct RankResult {
  Status status;
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<std::string> trace; // of the last step
};

/// Trains with one thread per rank for `steps` steps. `adjust` may change a
/// rank's options; `during` runs on the rank's thread after set-up instead of
/// the steps when it is given.
std::vector<RankResult> trainTiny(
    const TinyOptions &options, int steps, const TemporaryFolder &folder,
    const std::function<void(int rank, exec::TrainOptions &)> &adjust = {},
    const std::function<void(int rank, exec::Trainer &)> &during = {});

/// Losses and gradient norms of `steps` steps in double precision.
RankResult referenceTiny(int globalBatch, int steps,
                         std::vector<double> embedding,
                         std::vector<double> head);

/// The initial weights that the plan's Init gives.
std::vector<double> initialWeights(const std::string &name);

} // namespace reckon::test

#endif // RECKON_TESTS_UNIT_EXEC_TINYPLAN_H
