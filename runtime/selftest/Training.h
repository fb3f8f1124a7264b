//===- Training.h - running whole plans in this process -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_TRAINING_H
#define RECKON_RUNTIME_SELFTEST_TRAINING_H

#include "runtime/exec/Trainer.h"
#include "runtime/plan/Manifest.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace reckon::selftest {

/// A plan of one rank, read from its directory.
struct LoadedPlan {
  std::string name; ///< of the directory
  std::string directory;
  plan::Manifest manifest;
  std::unique_ptr<plan::StagePlanT> stage;
  /// What `reckon plan --format json` said when it was compiled, if that lies
  /// beside it as prediction.json; else null.
  nlohmann::json prediction;
  /// The row of its accelerator in the catalogue, by column, if that lies
  /// beside it as accelerator.json; else null.
  nlohmann::json accelerator;

  std::string recompute() const;
  int64_t layers() const;
  int64_t tokensPerStep() const;
};

/// The plans in the folders below `directory`, by name. Environment when there
/// is none, Incompatible for one of several ranks.
Result<std::vector<LoadedPlan>> loadPlans(const std::string &directory);

/// A temporary folder with a text to train on; removed at the end.
class Scratch {
public:
  static Result<std::unique_ptr<Scratch>> create();
  ~Scratch();
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  std::string path(const std::string &name) const { return path_ + "/" + name; }
  std::string text() const { return path("text.txt"); }
  /// Removes everything but the text.
  void clear() const;
  /// Where a run's progress lines go.
  std::FILE *sink() const { return sink_; }

private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::FILE *sink_ = nullptr;
};

/// Sets up a trainer of `plan` on `device`, calls body(trainer) and takes it
/// down. The run's files go to the folder `name` of the scratch.
Status withTrainer(const LoadedPlan &plan, device::Device &device,
                   const Scratch &scratch, const std::string &name,
                   exec::TrainOptions options,
                   const std::function<Status(exec::Trainer &)> &body);

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_TRAINING_H
