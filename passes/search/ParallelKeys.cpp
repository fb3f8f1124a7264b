//===- ParallelKeys.cpp - the keys of `parallelism` by their limit --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/ParallelKeys.h"

#include "passes/search/Space.h"

#include <algorithm>
#include <set>

using namespace reckon;
using namespace reckon::search;

namespace {

using Degrees = reckon::Choice<int64_t>;

/// The key, when its values are whole numbers.
template <typename SpecType> auto *degreesOf(SpecType &spec, Limit limit) {
  auto &p = spec.parallelism;
  switch (limit) {
  case Limit::TensorParallel:
    return &p.tensorParallel;
  case Limit::ContextParallel:
    return &p.contextParallel;
  case Limit::PipelineParallel:
    return &p.pipelineParallel;
  case Limit::VirtualPipeline:
    return &p.virtualPipeline;
  case Limit::ExpertParallel:
    return &p.expertParallel;
  case Limit::ExpertTensorParallel:
    return &p.expertTensorParallel;
  case Limit::DataParallel:
    return &p.dataParallel;
  case Limit::ZeroStage:
    return &p.zeroStage;
  case Limit::MicroBatch:
    return &p.microBatchSize;
  default:
    return static_cast<decltype(&p.tensorParallel)>(nullptr);
  }
}

/// Calls `visit` with the key and its whole domain when its values are words.
template <typename SpecType, typename Visit>
void withWords(SpecType &spec, Limit limit, const Visit &visit) {
  auto &p = spec.parallelism;
  using enum PipelineSchedule;
  switch (limit) {
  case Limit::SequenceParallel:
    return visit(p.sequenceParallel, std::vector<bool>{false, true});
  case Limit::ContextMethod:
    return visit(p.contextParallelMethod,
                 std::vector<ContextMethod>{ContextMethod::Ring,
                                            ContextMethod::AllGather,
                                            ContextMethod::AllToAll});
  case Limit::Schedule:
    return visit(p.pipelineSchedule, std::vector<PipelineSchedule>{
                                         GPipe, OneFOneB, Interleaved, Bfs,
                                         ZbH1, ZbH2, ZbV, DualPipeV});
  case Limit::Recompute:
    return visit(p.recompute,
                 std::vector<Recompute>{Recompute::None, Recompute::Selective,
                                        Recompute::Full});
  default:
    return;
  }
}

std::string text(bool value) { return value ? "true" : "false"; }
template <typename T> std::string text(T value) { return toString(value); }

} // namespace

bool search::isParallelKey(Limit limit) {
  return limit >= Limit::TensorParallel && limit < Limit::Count;
}

std::vector<std::string> search::keyDomain(const Spec &spec, Limit limit) {
  std::vector<std::string> domain;
  if (limit == Limit::Layout)
    return {"auto"};
  withWords(spec, limit, [&](const auto &, const auto &all) {
    for (auto value : all)
      domain.push_back(text(value));
  });
  const Degrees *key = degreesOf(spec, limit);
  if (!key)
    return domain;
  std::vector<int64_t> all;
  if (limit == Limit::ZeroStage)
    all = {0, 1, 2, 3};
  else if (limit == Limit::MicroBatch)
    all = divisors(*spec.training.globalBatchSize);
  else if (limit == Limit::VirtualPipeline)
    for (int64_t v = 1; v <= *spec.model.numHiddenLayers; ++v)
      all.push_back(v);
  else
    all = divisors(spec.cluster.worldSize());
  std::set<int64_t> values(all.begin(), all.end());
  if (!key->isAuto)
    values.insert(key->values.begin(), key->values.end());
  for (int64_t value : values)
    domain.push_back(std::to_string(value));
  return domain;
}

std::vector<std::string> search::keyValues(const Spec &spec, Limit limit) {
  std::vector<std::string> values;
  if (limit == Limit::Layout && !spec.parallelism.pipelineLayout->empty())
    values.push_back("given");
  withWords(spec, limit, [&](const auto &key, const auto &) {
    if (!key.isAuto)
      for (auto value : key.values)
        values.push_back(text(value));
  });
  if (const Degrees *key = degreesOf(spec, limit); key && !key->isAuto)
    for (int64_t value : key->values)
      values.push_back(std::to_string(value));
  return values;
}

void search::setKey(Spec &spec, Limit limit, const std::string &value) {
  bool open = value == "auto";
  if (limit == Limit::Layout)
    spec.parallelism.pipelineLayout.value.clear();
  if (limit == Limit::Recompute)
    spec.parallelism.recomputeLayers.reset();
  withWords(spec, limit, [&](auto &key, const auto &all) {
    key.isAuto = open;
    key.values.clear();
    for (auto each : all)
      if (!open && text(each) == value)
        key.values.push_back(each);
  });
  if (Degrees *key = degreesOf(spec, limit)) {
    key->isAuto = open;
    key->values.clear();
    if (!open)
      key->values.push_back(std::stoll(value));
  }
}

std::string search::keyValue(const model::Choice &choice, Limit limit) {
  switch (limit) {
  case Limit::TensorParallel:
    return std::to_string(choice.tp);
  case Limit::SequenceParallel:
    return text(choice.sequenceParallel);
  case Limit::ContextParallel:
    return std::to_string(choice.cp);
  case Limit::ContextMethod:
    return toString(choice.contextMethod);
  case Limit::PipelineParallel:
    return std::to_string(choice.pp);
  case Limit::VirtualPipeline:
    return std::to_string(choice.v);
  case Limit::Schedule:
    return toString(choice.schedule);
  case Limit::ExpertParallel:
    return std::to_string(choice.ep);
  case Limit::ExpertTensorParallel:
    return std::to_string(choice.etp);
  case Limit::DataParallel:
    return std::to_string(choice.dp);
  case Limit::ZeroStage:
    return std::to_string(choice.zero);
  case Limit::MicroBatch:
    return std::to_string(choice.microBatch);
  case Limit::Recompute:
    return toString(choice.recompute);
  default:
    return "auto";
  }
}

SourceLoc search::limitLoc(const Spec &spec, Limit limit) {
  switch (limit) {
  case Limit::Memory:
    return spec.constraints.memoryLimitGib.loc;
  case Limit::Bubble:
    return spec.constraints.maxBubble.loc;
  case Limit::HostMemory:
    return spec.constraints.hostMemoryLimitGib.given
               ? spec.constraints.hostMemoryLimitGib.loc
               : spec.cluster.hostMemoryGib.loc;
  case Limit::Divisibility:
    return spec.parallelism.loc;
  case Limit::Representation:
    return spec.parallelism.representation.loc;
  case Limit::Compilable:
    return spec.search.space.loc;
  case Limit::Layout:
    return spec.parallelism.pipelineLayout.loc;
  default:
    break;
  }
  if (const Degrees *key = degreesOf(spec, limit))
    return key->loc;
  SourceLoc loc;
  withWords(spec, limit, [&](const auto &key, const auto &) { loc = key.loc; });
  return loc;
}

bool search::limitGiven(const Spec &spec, Limit limit) {
  switch (limit) {
  case Limit::Memory:
    return spec.constraints.memoryLimitGib.given;
  case Limit::Bubble:
    return spec.constraints.maxBubble.given;
  case Limit::HostMemory:
    return spec.constraints.hostMemoryLimitGib.given;
  case Limit::Divisibility:
    return true;
  case Limit::Representation:
    return spec.parallelism.representation.given;
  case Limit::Compilable:
    return spec.search.space.given;
  case Limit::Layout:
    return spec.parallelism.pipelineLayout.given;
  default:
    break;
  }
  if (const Degrees *key = degreesOf(spec, limit))
    return key->given;
  bool given = false;
  withWords(spec, limit,
            [&](const auto &key, const auto &) { given = key.given; });
  return given;
}
