//===- Trainer.h - the steps of one rank ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The part of a run that every rank does once it has met the others: set up
// its states and program, run the steps, write down what happened.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_TRAINER_H
#define RECKON_RUNTIME_EXEC_TRAINER_H

#include "runtime/base/Os.h"
#include "runtime/base/Status.h"
#include "runtime/exec/Dump.h"
#include "runtime/exec/Executor.h"
#include "runtime/fault/Fault.h"
#include "runtime/observe/JsonLine.h"
#include "runtime/observe/LiveLine.h"
#include "runtime/observe/RunFiles.h"
#include "runtime/plan/Manifest.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon::exec {

struct TrainOptions {
  std::string planDirectory;
  std::string runDirectory;
  std::string data;             ///< --data
  std::string initWeights;      ///< --init-weights
  std::optional<int64_t> steps; ///< --steps; else the plan's train_steps
  std::vector<DumpRequest> dumps;
  std::optional<fault::Fault> fault;
  std::optional<uint64_t> queueSeed;
  bool trace = false;
  bool profile = false; ///< profile-00000.jsonl: time by kernel of each step
  std::optional<double> hangLimit;   ///< seconds, instead of the executor's
  std::vector<std::string> logLines; ///< for the rank's log
  const std::atomic<bool> *stop = nullptr;
  std::FILE *out = stdout;
  bool terminal = false;
};

/// One rank's training.
class Trainer {
public:
  Trainer(const plan::Manifest &manifest, const plan::StagePlanT &plan,
          comm::Communicator &communicator, device::Device &device,
          FileSystem &files, Clock &clock, TrainOptions options);
  ~Trainer();

  /// Groups, channels, arena, initial states, kernels, data and files. All
  /// ranks call it and all get the error of the lowest rank that failed;
  /// failedRank() tells whose it was.
  Status setUp();

  /// Runs the steps. Ends with Interrupted when the stop flag is set.
  Status run();

  /// Runs one step (counted from 1); setUp() first. Allocates nothing.
  Status step(int64_t number);

  /// Tells the other ranks why this one stops.
  void abort(const Error &error);

  /// Writes down how the run ended.
  void recordEnd(const Status &status);

  int failedRank() const { return failedRank_; }
  int64_t completed() const { return completed_; } ///< steps
  double loss() const { return loss_; }
  double gradNorm() const { return gradNorm_; }
  const Executor &executor() const { return *executor_; }

private:
  class Batches;

  Status openFiles();
  Status setUpLocal();
  int64_t freeBytes() const;
  void logReserve();
  Status announce();
  Status metricsLine(int64_t number, double seconds);
  Status traceLines(int64_t number);
  Status profileLine(int64_t number, double seconds);
  Status dumpsAfter(int64_t number);
  const plan::StateT *stateOf(plan::Role role) const;

  const plan::Manifest &manifest_;
  const plan::StagePlanT &plan_;
  comm::Communicator &communicator_;
  device::Device &device_;
  FileSystem &files_;
  Clock &clock_;
  TrainOptions options_;
  plan::Coord coord_;
  int failedRank_ = -1;

  std::byte *arena_ = nullptr;
  int64_t communicationBytes_ = 0; ///< taken by the communicator's start
  Connections connections_;
  std::unique_ptr<StageProgram> program_;
  std::unique_ptr<Batches> batches_;
  std::unique_ptr<Executor> executor_;
  BoundList *list_ = nullptr;
  const plan::StateT *scalars_ = nullptr;
  const plan::StateT *metrics_ = nullptr;

  int64_t completed_ = 0;
  double loss_ = 0;
  double gradNorm_ = 0;
  double rate_ = 0;

  observe::RankLog log_;
  observe::LineFile metricsFile_;
  observe::LineFile eventsFile_;
  observe::LineFile traceFile_;
  observe::LineFile profileFile_;
  observe::JsonLine line_;
  std::unique_ptr<observe::LiveLine> live_;
};

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_TRAINER_H
