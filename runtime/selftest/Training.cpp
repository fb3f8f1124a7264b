//===- Training.cpp - running whole plans in this process -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/Training.h"

#include "runtime/comm/Rendezvous.h"
#include "runtime/plan/PlanIO.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace reckon::selftest {

namespace {

/// A JSON file of the plan's folder that need not be there.
Status readBeside(const LoadedPlan &plan, const char *name,
                  nlohmann::json &json) {
  std::string file = plan.directory + "/" + name;
  if (!systemFiles().exists(file))
    return Status::success();
  auto text = systemFiles().read(file);
  if (!text)
    return text.error();
  json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded())
    return makeError(ExitCode::Corrupt,
                     file + ": expected JSON, got something else; build the "
                            "target selftest-plans again");
  return Status::success();
}

Result<LoadedPlan> loadPlan(const std::string &directory,
                            const std::string &name) {
  LoadedPlan loaded;
  loaded.name = name;
  loaded.directory = directory + "/" + name;
  auto manifest = plan::readPlanManifest(systemFiles(), loaded.directory);
  if (!manifest)
    return manifest.error();
  loaded.manifest = std::move(*manifest);
  if (int64_t world = plan::worldSize(loaded.manifest.mesh); world != 1)
    return makeError(ExitCode::Incompatible,
                     loaded.directory + ": expected a plan of 1 rank, got " +
                         std::to_string(world) +
                         "; name a folder of the self-test's plans");
  auto stage =
      plan::readPlanStage(systemFiles(), loaded.directory, loaded.manifest, 0);
  if (!stage)
    return stage.error();
  loaded.stage = std::move(*stage);
  RECKON_TRY(readBeside(loaded, "prediction.json", loaded.prediction));
  RECKON_TRY(readBeside(loaded, "accelerator.json", loaded.accelerator));
  return loaded;
}

/// Words in an order that does not repeat: something to learn, and something
/// left to learn.
std::string trainingText() {
  static constexpr const char *words[] = {
      "reckon", "first", "then",    "try",   "a",      "plan", "of",
      "states", "bytes", "streams", "every", "kernel", "is",   "checked"};
  std::string text;
  uint64_t state = 1;
  while (text.size() < (1 << 20)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += words[(state >> 33) % std::size(words)];
    text += state >> 60 == 0 ? ".\n" : " ";
  }
  return text;
}

} // namespace

std::string LoadedPlan::recompute() const {
  auto found = manifest.choice.find("recompute");
  if (found == manifest.choice.end())
    return "none";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

int64_t LoadedPlan::layers() const {
  int64_t layers = 0;
  auto layout = manifest.choice.find("pipeline_layout");
  if (layout != manifest.choice.end() && layout->is_array())
    for (const auto &chunk : *layout)
      layers += chunk.get<int64_t>();
  return layers;
}

int64_t LoadedPlan::tokensPerStep() const {
  return int64_t{stage->global_batch_size} * stage->sequence_length;
}

Result<std::vector<LoadedPlan>> loadPlans(const std::string &directory) {
  std::vector<LoadedPlan> plans;
  auto names = systemFiles().list(directory);
  if (!names)
    return names.error();
  std::sort(names->begin(), names->end());
  for (const std::string &name : *names) {
    if (!systemFiles().exists(directory + "/" + name + "/manifest.json"))
      continue;
    auto loaded = loadPlan(directory, name);
    if (!loaded)
      return loaded.error();
    plans.push_back(std::move(*loaded));
  }
  if (plans.empty())
    return makeError(ExitCode::Environment,
                     directory + ": expected folders of plans, got none; "
                                 "build the target selftest-plans");
  return plans;
}

Result<std::unique_ptr<Scratch>> Scratch::create() {
  std::error_code ignored;
  std::string path =
      (std::filesystem::temp_directory_path(ignored) / "reckon-selftest-XXXXXX")
          .string();
  if (!mkdtemp(path.data()))
    return makeError(ExitCode::Environment,
                     path + ": cannot make a folder (" + std::strerror(errno) +
                         "): set TMPDIR to one that can be written");
  std::unique_ptr<Scratch> made(new Scratch(path));
  RECKON_TRY(systemFiles().write(made->text(), trainingText()));
  made->sink_ = std::fopen("/dev/null", "we");
  if (!made->sink_)
    return makeError(ExitCode::Environment,
                     std::string("/dev/null: cannot open (") +
                         std::strerror(errno) +
                         "): look at this machine's "
                         "/dev");
  return made;
}

Scratch::~Scratch() {
  if (sink_)
    std::fclose(sink_);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void Scratch::clear() const {
  std::error_code ignored;
  for (const auto &entry : std::filesystem::directory_iterator(path_, ignored))
    if (entry.is_directory(ignored))
      std::filesystem::remove_all(entry.path(), ignored);
}

Status withTrainer(const LoadedPlan &plan, device::Device &device,
                   const Scratch &scratch, const std::string &name,
                   exec::TrainOptions options,
                   const std::function<Status(exec::Trainer &)> &body) {
  auto world = comm::makeLocalWorld(1, {});
  if (!world)
    return world.error();
  options.planDirectory = plan.directory;
  options.runDirectory = scratch.path(name);
  options.data = scratch.text();
  options.out = scratch.sink();
  exec::Trainer trainer(plan.manifest, *plan.stage, *(*world)[0], device,
                        systemFiles(), systemClock(), std::move(options));
  RECKON_TRY(trainer.setUp());
  return body(trainer);
}

} // namespace reckon::selftest
