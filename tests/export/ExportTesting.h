//===- ExportTesting.h - specs and goldens of the export tests ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_EXPORT_EXPORTTESTING_H
#define RECKON_TESTS_EXPORT_EXPORTTESTING_H

#include "frontends/export/Export.h"
#include "frontends/spec/Load.h"

#include <gtest/gtest.h>

namespace reckon::testing_export {

inline std::string folder() { return RECKON_SOURCE_DIR "/tests/export/"; }

/// specs/NAME.yaml on the 64 devices of specs/cluster.yaml.
inline Spec load(const std::string &name,
                 const std::vector<std::string> &sets = {}) {
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(
      {folder() + "specs/" + name + ".yaml", folder() + "specs/cluster.yaml"},
      sets, errors);
  EXPECT_TRUE(spec.ok()) << joinDiagnostics(errors);
  return spec.ok() ? *spec : Spec{};
}

/// The only choice of a spec that fixes every key.
inline model::Choice onlyChoice(const Spec &spec) {
  const ParallelismSpec &p = spec.parallelism;
  auto fixed = [](const auto &key, auto otherwise) {
    return key.values.empty() ? otherwise : key.values.front();
  };
  model::Choice c;
  c.tp = fixed(p.tensorParallel, int64_t{1});
  c.sequenceParallel = c.tp > 1 && fixed(p.sequenceParallel, false);
  c.cp = fixed(p.contextParallel, int64_t{1});
  if (c.cp > 1)
    c.contextMethod = fixed(p.contextParallelMethod, ContextMethod::Ring);
  c.pp = fixed(p.pipelineParallel, int64_t{1});
  c.v = fixed(p.virtualPipeline, int64_t{1});
  c.dp = spec.cluster.worldSize() / (c.tp * c.cp * c.pp);
  c.ep = fixed(p.expertParallel, int64_t{1});
  c.etp = fixed(p.expertTensorParallel, int64_t{1});
  c.zero = fixed(p.zeroStage, int64_t{0});
  c.microBatch = fixed(p.microBatchSize, int64_t{1});
  c.numMicroBatches = *spec.training.globalBatchSize / (c.dp * c.microBatch);
  c.recompute = fixed(p.recompute, Recompute::None);
  c.schedule = fixed(p.pipelineSchedule, PipelineSchedule::OneFOneB);
  c.layout = *p.pipelineLayout;
  if (c.layout.empty())
    c.layout.assign(static_cast<size_t>(c.stages()),
                    *spec.model.numHiddenLayers / c.stages());
  if (p.recomputeLayers)
    for (int64_t layers : c.layout)
      c.recomputeLayers.push_back(std::min(layers, *p.recomputeLayers));
  c.precision = *spec.training.precision;
  return c;
}

inline exports::Exported exported(exports::Target target, const Spec &spec) {
  model::Choice choice = onlyChoice(spec);
  return exports::exportTo(target, {spec, choice});
}

/// The file without the header's lines, or empty with a failure.
inline std::string fileOf(const exports::Exported &out,
                          const std::string &name) {
  EXPECT_EQ(joinDiagnostics(out.errors), "");
  for (const exports::ExportFile &file : out.files)
    if (file.name == name)
      return file.text;
  ADD_FAILURE() << "no file " << name;
  return "";
}

} // namespace reckon::testing_export

#endif // RECKON_TESTS_EXPORT_EXPORTTESTING_H
