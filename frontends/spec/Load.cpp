//===- Load.cpp -----------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Load.h"

#include "frontends/spec/Calibration.h"
#include "frontends/spec/Compilable.h"
#include "frontends/spec/HfConfig.h"
#include "frontends/spec/Reader.h"
#include "frontends/spec/Yaml.h"

#include <algorithm>

namespace reckon {
namespace {

/// Sorts by file in the order given, then by place; what is not in a file
/// comes last, in its own order.
void sortByPlace(std::vector<Diagnostic> &found,
                 const std::vector<std::string> &files) {
  auto rank = [&](const Diagnostic &diagnostic) {
    return std::find(files.begin(), files.end(), diagnostic.loc.file) -
           files.begin();
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Diagnostic &a, const Diagnostic &b) {
                     if (rank(a) != rank(b))
                       return rank(a) < rank(b);
                     if (a.loc.file != b.loc.file)
                       return false;
                     return std::pair(a.loc.line, a.loc.column) <
                            std::pair(b.loc.line, b.loc.column);
                   });
}

/// Replaces model.hf_config by the keys of that file, under those that the spec
/// has itself. False when the file could not be read at all.
bool layHfConfig(Node &merged, FileSystem &fileSystem,
                 std::vector<Diagnostic> &found,
                 std::vector<Diagnostic> &warnings) {
  Entry *model = merged.find("model");
  Entry *config = model ? model->value.find("hf_config") : nullptr;
  if (!config || isNeutral(config->value))
    return true;
  SourceLoc loc = config->value.loc;
  if (!config->value.isScalar() || config->value.text.empty()) {
    found.push_back(errorAt(loc, "expected a path for model.hf_config, got " +
                                     config->value.describe() +
                                     "; name a config.json"));
    return true;
  }
  std::string file = resolvePath(loc, config->value.text);
  Result<std::string> text = fileSystem.read(file);
  if (!text.ok()) {
    found.push_back(errorAt(loc, "expected a readable model.hf_config, got: " +
                                     text.error().message +
                                     "; check the path, which is relative to "
                                     "the YAML file"));
    return false;
  }
  std::optional<HfModel> read = readHfConfig(file, *text, found);
  std::vector<Entry> &own = model->value.entries;
  own.erase(own.begin() + (config - own.data()));
  if (!read)
    return true;
  if (std::string remark = read->remark(); !remark.empty())
    warnings.push_back(warningAt(loc, file + ": " + remark));
  // Two names of one number: the spec's own goes first.
  std::vector<Entry> &theirs = read->model.entries;
  if (model->value.find("n_routed_experts"))
    theirs.erase(std::remove_if(theirs.begin(), theirs.end(),
                                [](const Entry &entry) {
                                  return entry.key == "num_local_experts";
                                }),
                 theirs.end());
  SourceLoc place = model->value.loc;
  mergeInto(read->model, std::move(model->value));
  model->value = std::move(read->model);
  model->value.loc = place;
  return true;
}

/// A screen or two; the first ones usually cause the rest.
constexpr size_t mostErrors = 100;

} // namespace

Result<Spec> loadSpec(const std::vector<std::string> &files,
                      const std::vector<std::string> &sets,
                      std::vector<Diagnostic> &errors, FileSystem &fileSystem) {
  std::vector<Diagnostic> found;
  ExitCode code = ExitCode::BadSpec;
  auto fail = [&]() -> Error {
    sortByPlace(found, files);
    size_t more = found.size() > mostErrors ? found.size() - mostErrors : 0;
    if (more)
      found.resize(mostErrors);
    std::string text = joinDiagnostics(found);
    if (more)
      text += "\nand " + std::to_string(more) + " more errors";
    errors.insert(errors.end(), found.begin(), found.end());
    return makeError(code, std::move(text));
  };

  if (files.empty() && sets.empty()) {
    found.push_back(
        errorAt(SourceLoc{"spec", 0, 0},
                "expected at least one YAML file, got none; name one"));
    return fail();
  }

  std::set<std::string> excused;
  Node merged;
  bool first = true, whole = true;
  auto lay = [&](std::optional<Node> tree) {
    if (tree)
      checkKeys(*tree, found, excused);
    // What is not a map has no keys to merge; it was reported.
    bool usable = tree && (tree->isMap() || tree->isNull());
    if (!usable) {
      whole = false;
      return;
    }
    SourceLoc loc = first ? tree->loc : merged.loc;
    if (first || tree->isMap())
      mergeInto(merged, std::move(*tree));
    merged.loc = loc;
    first = false;
  };
  for (const std::string &file : files) {
    Result<std::string> text = fileSystem.read(file);
    if (!text.ok()) {
      code = ExitCode::Environment;
      found.push_back(errorAt(SourceLoc{file, 0, 0},
                              text.error().message +
                                  "; check the path and its permissions"));
      whole = false;
      continue;
    }
    lay(parseYaml(file, *text, found));
  }
  for (const std::string &set : sets)
    lay(parseSet(set, found));
  // Without one of the files every key in it would seem to be missing.
  if (!whole)
    return fail();
  if (merged.isNull() || (merged.isMap() && merged.entries.empty())) {
    found.push_back(errorAt(
        merged.loc, "expected the sections model, cluster and training, got "
                    "an empty spec; see examples/ for ready ones"));
    return fail();
  }

  Spec spec;
  size_t before = found.size();
  if (!layHfConfig(merged, fileSystem, found, spec.warnings))
    code = ExitCode::Environment;
  // Keys that a broken config.json hides are not missing.
  if (found.size() > before)
    excused.insert("model");
  Reader reader(merged, std::move(excused), found, spec.warnings);
  spec.model = readModel(reader);
  spec.cluster = readCluster(reader);
  if (spec.cluster.calibration.given) {
    const std::string &path = *spec.cluster.calibration;
    Result<std::string> text = fileSystem.read(path);
    if (text.ok())
      spec.cluster.calibrated =
          parseCalibration(path, *text, spec.cluster.accelerator->name, found);
    else
      found.push_back(errorAt(spec.cluster.calibration.loc,
                              text.error().message +
                                  "; make it with reckon calibrate -o"));
  }
  spec.training = readTraining(reader);
  spec.parallelism = readParallelism(reader, spec.model);
  spec.constraints = readConstraints(reader, spec.cluster);
  spec.search = readSearch(reader);
  checkSpec(spec, reader);
  if (!found.empty())
    return fail();
  if (!spec.search.space.given && spec.cluster.accelerator->isCpu() &&
      notCompilable(spec).empty())
    spec.search.space.value = SearchSpace::Compilable;
  if (*spec.search.space == SearchSpace::Compilable)
    restrictToCompilable(spec);
  sortByPlace(spec.warnings, files);
  spec.canonical = canonicalYaml(merged);
  return spec;
}

} // namespace reckon
