//===- ReadParallelism.cpp - parallelism, constraints and search ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Layout.h"
#include "frontends/spec/Reader.h"
#include "frontends/spec/Scalars.h"

namespace reckon {
namespace {

/// Maps the words of a choice to an enumeration by its YAML spelling.
template <typename E>
Choice<E> convert(const Choice<std::string> &words,
                  std::initializer_list<E> all) {
  Choice<E> choice;
  choice.isAuto = words.isAuto;
  choice.loc = words.loc;
  choice.given = words.given;
  for (const std::string &word : words.values)
    for (E each : all)
      if (word == toString(each))
        choice.values.push_back(each);
  return choice;
}

/// The n of `{layers: n}`, or nothing.
std::optional<int64_t> layersOf(const Node &node) {
  if (!node.isMap() || node.entries.size() != 1 ||
      node.entries[0].key != "layers" || !node.entries[0].value.isScalar())
    return std::nullopt;
  std::optional<int64_t> layers = parseInteger(node.entries[0].value.text);
  return layers && *layers >= 0 ? layers : std::nullopt;
}

std::optional<std::string> recomputeSpelling(const Node &node) {
  std::optional<int64_t> layers = layersOf(node);
  if (!layers)
    return std::nullopt;
  return *layers == 0 ? "none" : "{layers: n}";
}

void readRecompute(Reader &reader, ParallelismSpec &p) {
  const std::string path = "parallelism.recompute";
  constexpr std::string_view counted = "{layers: n}";
  Choice<std::string> words = reader.choice(path, recomputeSpelling);
  const Entry *entry = reader.find(path);
  bool counts = entry && !words.isAuto && words.allows(std::string(counted));
  if (counts && entry->value.isMap())
    p.recomputeLayers = layersOf(entry->value);
  else if (counts)
    reader.error(entry->value.loc,
                 "expected none, selective or full in a list for " + path +
                     ", got " + std::string(counted) +
                     "; write it alone, or auto to let the planner count");
  for (std::string &word : words.values)
    if (word == counted)
      word = toString(Recompute::Full);
  p.recompute =
      convert(words, {Recompute::None, Recompute::Selective, Recompute::Full});
  if (p.recompute.isAuto) // whose domain named it twice
    p.recompute.values = {Recompute::None, Recompute::Selective,
                          Recompute::Full};
}

constexpr std::string_view csvPrefix = "csv:";

std::optional<std::string> scheduleSpelling(const Node &node) {
  if (node.isScalar() && node.text.compare(0, 4, csvPrefix) == 0)
    return toString(PipelineSchedule::Csv);
  return std::nullopt;
}

void readSchedule(Reader &reader, ParallelismSpec &p) {
  using S = PipelineSchedule;
  const std::string path = "parallelism.pipeline_schedule";
  p.pipelineSchedule =
      convert(reader.choice(path, scheduleSpelling),
              {S::GPipe, S::OneFOneB, S::Interleaved, S::Bfs, S::ZbH1, S::ZbH2,
               S::ZbV, S::DualPipeV, S::Synthesized, S::Csv});
  // The named ones, the usual ones first.
  if (p.pipelineSchedule.isAuto)
    p.pipelineSchedule.values = {S::OneFOneB, S::Interleaved, S::ZbH1,  S::ZbH2,
                                 S::ZbV,      S::DualPipeV,   S::GPipe, S::Bfs};
  const Entry *entry = reader.find(path);
  if (!entry)
    return;
  auto file = [&](const Node &node) {
    if (!scheduleSpelling(node))
      return;
    std::string name = node.text.substr(csvPrefix.size());
    if (name.empty())
      reader.error(node.loc, "expected a file behind csv: for " + path +
                                 ", got none; write for example "
                                 "csv:schedule.csv");
    else if (!p.scheduleFile.empty())
      reader.error(node.loc, "expected one csv: file for " + path +
                                 ", got several; choose one");
    else
      p.scheduleFile = resolvePath(node.loc, name);
  };
  file(entry->value);
  for (const Node &item : entry->value.items)
    file(item);
}

Field<std::vector<int64_t>> readLayout(Reader &reader, int64_t mtpLayers) {
  const KeyRow &row = *findKey("parallelism.pipeline_layout");
  Field<std::vector<int64_t>> layout;
  layout.loc = reader.locate(row.path);
  const Entry *entry = reader.find(row.path);
  if (!entry || isNeutral(entry->value))
    return layout;
  layout.given = true;
  const Node &node = entry->value;
  if (node.isScalar()) {
    std::string problem;
    if (auto parsed = parseMegatronLayout(node.text, problem)) {
      layout.value = std::move(parsed->stages);
      if (parsed->mtpLayers != mtpLayers)
        reader.error(node.loc,
                     "expected as many m in parallelism.pipeline_layout as "
                     "num_nextn_predict_layers " +
                         std::to_string(mtpLayers) + ", got " +
                         std::to_string(parsed->mtpLayers) +
                         "; change one of them");
    } else
      reader.error(node.loc, "expected a layout for parallelism."
                             "pipeline_layout, got " +
                                 node.describe() + ": " + problem);
  } else if (node.isList() && !node.items.empty()) {
    KeyRow stage = row;
    stage.kind = KeyKind::Integer;
    stage.low = 0, stage.high = 65536;
    for (size_t i = 0; i < node.items.size(); ++i) {
      const Node &item = node.items[i];
      std::optional<int64_t> layers = reader.readInteger(item, stage);
      bool end = i == 0 || i + 1 == node.items.size();
      if (layers && *layers == 0 && !end)
        reader.error(item.loc,
                     "expected at least one layer in each inner stage of "
                     "parallelism.pipeline_layout, got 0; only the first "
                     "(embedding) and the last (loss) may do without");
      if (!layers || (*layers == 0 && !end)) {
        layout.value.clear();
        return layout;
      }
      layout.value.push_back(*layers);
    }
  } else {
    reader.wrong(node, row, "write for example pipeline_layout: [3, 5]");
  }
  return layout;
}

/// auto, or a number of GiB.
std::optional<double> readLimit(Reader &reader, std::string_view path) {
  const Entry *entry = reader.find(path);
  if (!entry || isNeutral(entry->value))
    return std::nullopt;
  KeyRow row = *findKey(path);
  row.kind = KeyKind::Real;
  row.low = 1e-6, row.high = 1e9;
  return reader.readReal(entry->value, row);
}

} // namespace

ParallelismSpec readParallelism(Reader &reader, const ModelSpec &model) {
  const std::string section = "parallelism.";
  ParallelismSpec p;
  p.loc = reader.locate("parallelism");
  p.tensorParallel = reader.degrees(section + "tensor_parallel");
  p.contextParallel = reader.degrees(section + "context_parallel");
  p.contextParallelMethod =
      convert(reader.choice(section + "context_parallel_method"),
              {ContextMethod::None, ContextMethod::Ring,
               ContextMethod::AllGather, ContextMethod::AllToAll});
  p.pipelineParallel = reader.degrees(section + "pipeline_parallel");
  p.virtualPipeline = reader.degrees(section + "virtual_pipeline");
  readSchedule(reader, p);
  p.pipelineLayout = readLayout(reader, *model.numNextnPredictLayers);
  p.expertParallel = reader.degrees(section + "expert_parallel");
  p.expertTensorParallel = reader.degrees(section + "expert_tensor_parallel");
  p.dataParallel = reader.degrees(section + "data_parallel");
  p.zeroStage = reader.degrees(section + "zero_stage");
  p.microBatchSize = reader.degrees(section + "micro_batch_size");
  readRecompute(reader, p);
  p.sequenceParallel = reader.switches(section + "sequence_parallel");

  // With one tensor rank there is nothing to split along the sequence.
  if (!p.sequenceParallel.isAuto && p.sequenceParallel.allows(true) &&
      p.tensorParallel.fixed() && p.tensorParallel.value() == 1) {
    reader.warn(reader.find(section + "sequence_parallel")->loc,
                "parallelism.sequence_parallel has no effect with "
                "tensor_parallel 1");
    p.sequenceParallel.values = {false};
  }

  const KeyRow &factor = *findKey(section + "moe_capacity_factor");
  p.moeCapacityFactor.loc = reader.locate(factor.path);
  if (const Entry *entry = reader.find(factor.path)) {
    p.moeCapacityFactor.given = entry->value.text != "auto";
    if (!isNeutral(entry->value)) {
      KeyRow row = factor;
      row.kind = KeyKind::Real;
      row.low = 1, row.high = 1e6;
      p.moeCapacityFactor.value =
          reader.readReal(entry->value, row).value_or(0);
    }
  }
  Field<std::string> representation = reader.word(section + "representation");
  p.representation.loc = representation.loc;
  p.representation.given = representation.given;
  for (Representation each :
       {Representation::Reckon, Representation::Megatron,
        Representation::DeepSpeed, Representation::TorchTitan})
    if (*representation == toString(each))
      p.representation.value = each;
  return p;
}

ConstraintsSpec readConstraints(Reader &reader, const ClusterSpec &cluster) {
  ConstraintsSpec c;
  c.loc = reader.locate("constraints");
  c.maxBubble = reader.real("constraints.max_bubble");
  c.memoryLimitGib.loc = reader.locate("constraints.memory_limit_gib");
  std::optional<double> memory =
      readLimit(reader, "constraints.memory_limit_gib");
  c.memoryLimitGib.given = memory.has_value();
  double usable = cluster.accelerator->memGb - *cluster.memoryReserveGib;
  c.memoryLimitGib.value = memory.value_or(usable);
  if (memory && usable > 0 && *memory > usable)
    reader.warn(c.memoryLimitGib.loc,
                "constraints.memory_limit_gib " + formatNumber(*memory) +
                    " is above the " + formatNumber(usable) +
                    " GiB that the accelerator leaves after the reserve");
  c.hostMemoryLimitGib.loc = reader.locate("constraints.host_memory_limit_gib");
  c.hostMemoryLimitGib.value =
      readLimit(reader, "constraints.host_memory_limit_gib");
  c.hostMemoryLimitGib.given = c.hostMemoryLimitGib->has_value();
  return c;
}

SearchSpec readSearch(Reader &reader) {
  SearchSpec search;
  search.loc = reader.locate("search");
  Field<std::string> objective = reader.word("search.objective");
  search.objective.loc = objective.loc;
  search.objective.given = objective.given;
  for (Objective each : {Objective::StepTime, Objective::TimeToTrain,
                         Objective::Cost, Objective::Memory})
    if (*objective == toString(each))
      search.objective.value = each;
  Field<std::string> space = reader.word("search.space");
  search.space.loc = space.loc;
  search.space.given = space.given && !space->empty();
  search.space.value = *space == toString(SearchSpace::Compilable)
                           ? SearchSpace::Compilable
                           : SearchSpace::All;
  search.timeLimitS = reader.real("search.time_limit_s");
  search.top = reader.integer("search.top");
  return search;
}

} // namespace reckon
