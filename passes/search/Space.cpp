//===- Space.cpp - every combination that a spec leaves open --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Space.h"

#include "passes/search/Search.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;

static std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> small, large;
  for (int64_t d = 1; d * d <= n; ++d)
    if (n % d == 0) {
      small.push_back(d);
      if (d != n / d)
        large.push_back(n / d);
    }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

/// The values that a key allows, or all divisors of `n`; in rising order.
static std::vector<int64_t> degrees(const reckon::Choice<int64_t> &key,
                                    int64_t n) {
  if (key.isAuto && key.values.empty())
    return divisors(n);
  std::vector<int64_t> values = key.values;
  std::sort(values.begin(), values.end());
  return values;
}

template <typename T>
static std::vector<T> values(const reckon::Choice<T> &key,
                             std::initializer_list<T> all) {
  std::vector<T> allowed;
  for (const T &value : all)
    if (key.allows(value))
      allowed.push_back(value);
  return allowed;
}

static std::string num(int64_t value) { return std::to_string(value); }

std::vector<int64_t> search::evenLayout(int64_t layers, int64_t stages) {
  std::vector<int64_t> layout(stages, layers / stages);
  int64_t left = layers % stages;
  for (int64_t stage = stages - 2; stage >= 1 && left > 0; --stage, --left)
    ++layout[stage];
  if (left > 0) {
    ++layout[0];
    --left;
  }
  if (left > 0)
    ++layout[stages - 1];
  return layout;
}

std::string search::indivisible(const model::ModelDims &dims,
                                const model::Choice &choice,
                                int64_t globalBatch) {
  struct Split {
    const char *key;
    int64_t size;
  };
  for (Split split :
       {Split{"num_attention_heads", dims.heads},
        Split{"num_key_value_heads", dims.kvHeads},
        Split{"intermediate_size", dims.ffn}, Split{"vocab_size", dims.vocab}})
    if (split.size % choice.tp)
      return "tensor_parallel " + num(choice.tp) + " does not divide " +
             split.key + " " + num(split.size);
  if (choice.pp > dims.layers)
    return "pipeline_parallel " + num(choice.pp) + " is more than the " +
           num(dims.layers) + " layers";
  if (globalBatch % choice.dp)
    return "data_parallel " + num(choice.dp) +
           " does not divide global_batch_size " + num(globalBatch);
  if (globalBatch / choice.dp % choice.microBatch)
    return "micro_batch_size " + num(choice.microBatch) +
           " does not divide the " + num(globalBatch / choice.dp) +
           " sequences of a replica";
  if (choice.sequenceParallel && choice.microBatch * dims.sequence % choice.tp)
    return "tensor_parallel " + num(choice.tp) + " does not divide the " +
           num(choice.microBatch * dims.sequence) +
           " tokens of a micro-batch, which sequence_parallel splits";
  return "";
}

void search::enumerate(const Spec &spec, const SpaceVisitor &visitor) {
  const ParallelismSpec &open = spec.parallelism;
  model::ModelDims dims = model::modelDims(spec);
  int64_t world = spec.cluster.worldSize();
  int64_t batch = *spec.training.globalBatchSize;
  auto recomputes = values(open.recompute, {Recompute::None, Recompute::Full});
  auto schedules = values(open.pipelineSchedule, {PipelineSchedule::OneFOneB,
                                                  PipelineSchedule::GPipe});
  auto inner = static_cast<int64_t>(recomputes.size() * schedules.size());

  model::Choice choice;
  choice.precision = *spec.training.precision;
  for (int64_t tp : degrees(open.tensorParallel, world)) {
    int64_t rest = world % tp ? 1 : world / tp;
    for (int64_t pp : degrees(open.pipelineParallel, rest)) {
      choice.tp = tp;
      choice.pp = pp;
      choice.microBatch = 1;
      if (world % (tp * pp)) {
        visitor.rejected(inner, "tensor_parallel " + num(tp) +
                                    " times pipeline_parallel " + num(pp) +
                                    " does not divide the " + num(world) +
                                    " devices");
        continue;
      }
      choice.dp = world / (tp * pp);
      if (!open.dataParallel.allows(choice.dp))
        continue;
      auto zeros = values<int64_t>(open.zeroStage, {0, 1});
      // Sharding over one rank is the same as not sharding.
      if (choice.dp == 1 && zeros.size() > 1)
        zeros = {zeros.front()};
      // One tensor rank has no group to split the sequence in.
      auto splits = values<bool>(open.sequenceParallel, {true, false});
      if (tp == 1)
        splits = {false};
      choice.sequenceParallel = false;
      auto combinations =
          inner * static_cast<int64_t>(zeros.size() * splits.size());
      std::string reason = indivisible(dims, choice, batch);
      if (!reason.empty()) {
        visitor.rejected(combinations, reason);
        continue;
      }
      choice.layout = open.pipelineLayout->empty() ? evenLayout(dims.layers, pp)
                                                   : *open.pipelineLayout;
      int64_t sequences = batch / choice.dp;
      for (int64_t microBatch : degrees(open.microBatchSize, sequences)) {
        choice.microBatch = microBatch;
        reason = indivisible(dims, choice, batch);
        if (!reason.empty()) {
          visitor.rejected(combinations, reason);
          continue;
        }
        choice.numMicroBatches = sequences / microBatch;
        for (bool split : splits) {
          choice.sequenceParallel = split;
          reason = indivisible(dims, choice, batch);
          if (!reason.empty()) {
            visitor.rejected(combinations / splits.size(), reason);
            continue;
          }
          for (int64_t zero : zeros)
            for (Recompute recompute : recomputes)
              for (PipelineSchedule schedule : schedules) {
                choice.zero = zero;
                choice.recompute = recompute;
                choice.schedule = schedule;
                visitor.choice(choice);
              }
        }
        choice.sequenceParallel = false;
      }
    }
  }
}
