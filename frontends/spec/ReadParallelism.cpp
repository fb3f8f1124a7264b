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

/// `{layers: n}`: nothing for 0, else the known but unsupported form.
std::optional<std::string> recomputeSpelling(const Node &node) {
  if (!node.isMap() || node.entries.size() != 1 ||
      node.entries[0].key != "layers" || !node.entries[0].value.isScalar())
    return std::nullopt;
  std::optional<int64_t> layers = parseInteger(node.entries[0].value.text);
  if (!layers || *layers < 0)
    return std::nullopt;
  return *layers == 0 ? "none" : "{layers: n}";
}

std::optional<std::string> scheduleSpelling(const Node &node) {
  if (node.isScalar() && node.text.compare(0, 4, "csv:") == 0)
    return "csv:FILE";
  return std::nullopt;
}

Field<std::vector<int64_t>> readLayout(Reader &reader) {
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
    if (auto stages = parseMegatronLayout(node.text, problem))
      layout.value = std::move(*stages);
    else
      reader.error(node.loc, "expected a layout for parallelism."
                             "pipeline_layout, got " +
                                 node.describe() + ": " + problem);
  } else if (node.isList() && !node.items.empty()) {
    KeyRow stage = row;
    stage.kind = KeyKind::Integer;
    stage.low = 0, stage.high = 65536;
    for (const Node &item : node.items) {
      std::optional<int64_t> layers = reader.readInteger(item, stage);
      if (layers && *layers == 0)
        reader.error(item.loc,
                     "parallelism.pipeline_layout: a stage without layers is "
                     "not supported by this version; give each stage one at "
                     "least");
      if (!layers || *layers == 0) {
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

ParallelismSpec readParallelism(Reader &reader) {
  const std::string section = "parallelism.";
  ParallelismSpec p;
  p.loc = reader.locate("parallelism");
  p.tensorParallel = reader.degrees(section + "tensor_parallel");
  p.contextParallel = reader.degrees(section + "context_parallel");
  reader.choice(section + "context_parallel_method");
  p.pipelineParallel = reader.degrees(section + "pipeline_parallel");
  p.virtualPipeline = reader.degrees(section + "virtual_pipeline");
  p.pipelineSchedule =
      convert(reader.choice(section + "pipeline_schedule", scheduleSpelling),
              {PipelineSchedule::GPipe, PipelineSchedule::OneFOneB});
  p.pipelineLayout = readLayout(reader);
  p.expertParallel = reader.degrees(section + "expert_parallel");
  p.expertTensorParallel = reader.degrees(section + "expert_tensor_parallel");
  p.dataParallel = reader.degrees(section + "data_parallel");
  p.zeroStage = reader.degrees(section + "zero_stage");
  p.microBatchSize = reader.degrees(section + "micro_batch_size");
  p.recompute = convert(reader.choice(section + "recompute", recomputeSpelling),
                        {Recompute::None, Recompute::Full});
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
  if (const Entry *entry = reader.find(factor.path);
      entry && !isNeutral(entry->value)) {
    KeyRow row = factor;
    row.kind = KeyKind::Real;
    row.low = 1, row.high = 1e6;
    if (std::optional<double> value = reader.readReal(entry->value, row);
        value && *value != 1)
      reader.refuse(entry->value.loc, factor,
                    "a factor of " + formatNumber(*value));
  }
  reader.word(section + "representation");
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
  search.objective.loc = reader.word("search.objective").loc;
  search.timeLimitS = reader.real("search.time_limit_s");
  search.top = reader.integer("search.top");
  return search;
}

} // namespace reckon
