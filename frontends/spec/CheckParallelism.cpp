//===- CheckParallelism.cpp - degrees against world, model and batch ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A fixed value that contradicts the model's shape, the world size or the
// batch is a bad spec. What is left to the planner is not checked here: it
// skips what does not divide, and says so.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/CheckText.h"
#include "frontends/spec/Reader.h"

#include <functional>
#include <numeric>

namespace reckon {
namespace {

class Checker {
public:
  Checker(Spec &spec, Reader &reader)
      : model_(spec.model), cluster_(spec.cluster), training_(spec.training),
        p_(spec.parallelism), reader_(reader) {
    if (*cluster_.nodes > 0 && *cluster_.gpusPerNode > 0)
      world_ = cluster_.worldSize();
  }

  void run() {
    narrow();
    checkLayout();
    checkTensor();
    checkPipeline();
    checkContext();
    checkExperts();
    if (world_ > 0)
      checkProduct();
    checkBatch();
    warnAboutNoOps();
  }

private:
  std::string worldText() const {
    return "the world size " + num(world_) + " (nodes " + num(*cluster_.nodes) +
           " * gpus_per_node " + num(*cluster_.gpusPerNode) + ")";
  }

  /// Reports a key none of whose values is possible. `reason` says what is
  /// wrong with one value, or nothing.
  void requireOne(const Choice<int64_t> &choice, const std::string &key,
                  const std::function<std::string(int64_t)> &reason,
                  const std::string &remedy) {
    if (choice.isAuto || choice.values.empty())
      return;
    for (int64_t value : choice.values)
      if (reason(value).empty())
        return;
    std::vector<std::string> values;
    for (int64_t value : choice.values)
      values.push_back(num(value));
    reader_.error(choice.loc, "expected parallelism." + key + " " +
                                  reason(choice.values[0]) + ", got " +
                                  listWords(values) + "; " + remedy);
  }

  /// Choices that the rest of the spec leaves one value.
  void narrow() {
    if (*model_.numExperts == 0) {
      if (p_.expertParallel.isAuto)
        p_.expertParallel.values = {1};
      if (p_.expertTensorParallel.isAuto)
        p_.expertTensorParallel.values = {1};
    } else if (p_.expertParallel.fixed() && p_.expertTensorParallel.isAuto) {
      p_.expertTensorParallel.values = {1};
    }
    Choice<ContextMethod> &method = p_.contextParallelMethod;
    if (p_.contextParallel.fixed() && p_.contextParallel.value() == 1)
      method.values = {ContextMethod::None};
    else if (method.isAuto)
      method.values = {ContextMethod::Ring, ContextMethod::AllGather,
                       ContextMethod::AllToAll};
  }

  /// Drops the values for which `keep` does not hold. False when none is left,
  /// and then nothing is changed.
  static bool filter(Choice<int64_t> &choice, const SourceLoc &loc,
                     std::vector<int64_t> from,
                     const std::function<bool(int64_t)> &keep) {
    std::vector<int64_t> kept;
    for (int64_t value : from)
      if (keep(value))
        kept.push_back(value);
    if (kept.empty())
      return false;
    if (choice.isAuto)
      choice.loc = loc;
    choice.isAuto = false;
    choice.values = std::move(kept);
    return true;
  }

  void checkLayout() {
    const std::vector<int64_t> &layout = *p_.pipelineLayout;
    if (layout.empty())
      return;
    int64_t layers = *model_.numHiddenLayers;
    int64_t sum = std::accumulate(layout.begin(), layout.end(), int64_t{0});
    int64_t stages = static_cast<int64_t>(layout.size());
    const SourceLoc &loc = p_.pipelineLayout.loc;
    if (layers > 0 && sum != layers)
      reader_.error(loc, "expected parallelism.pipeline_layout to add up to "
                         "num_hidden_layers " +
                             num(layers) + ", got " + num(sum) + " on " +
                             num(stages) + " stages; change the layout");
    Choice<int64_t> &pp = p_.pipelineParallel, &v = p_.virtualPipeline;
    // The length settles the number of stages: one chunk a rank unless a key
    // says otherwise.
    std::vector<int64_t> ranks = pp.values, chunks = v.values;
    if (pp.isAuto && v.isAuto)
      ranks = {stages}, chunks = {1};
    else if (pp.isAuto)
      ranks = quotients(stages, chunks);
    else if (v.isAuto)
      chunks = quotients(stages, ranks);
    auto matches = [&](int64_t value, const std::vector<int64_t> &others) {
      return std::any_of(others.begin(), others.end(), [&](int64_t other) {
        return value * other == stages;
      });
    };
    std::vector<int64_t> all = chunks;
    if (filter(pp, loc, ranks,
               [&](int64_t value) { return matches(value, all); }) &&
        filter(v, loc, chunks,
               [&](int64_t value) { return matches(value, pp.values); }))
      return;
    std::string wanted = pp.isAuto || v.isAuto ? "a multiple of " : "";
    if (!pp.isAuto)
      wanted += "pipeline_parallel " + num(pp.value());
    if (!v.isAuto)
      wanted += (pp.isAuto ? "virtual_pipeline " : " * virtual_pipeline ") +
                num(v.value());
    reader_.error(loc, "expected parallelism.pipeline_layout to have " +
                           wanted + " stages, got " + num(stages) +
                           "; change one of them");
  }

  /// n / d of the d that divide n.
  static std::vector<int64_t> quotients(int64_t n,
                                        const std::vector<int64_t> &divisors) {
    std::vector<int64_t> out;
    for (int64_t d : divisors)
      if (n % d == 0)
        out.push_back(n / d);
    return out;
  }

  void checkTensor() {
    struct Dimension {
      int64_t size;
      std::string text;
    };
    // Split evenly over a tensor group. The vocabulary is not among them:
    // what cannot be divided is padded.
    std::vector<Dimension> split;
    auto add = [&](const char *key, int64_t size) {
      if (size > 0)
        split.push_back({size, key + std::string(" ") + num(size)});
    };
    bool moe = *model_.numExperts > 0;
    add("num_attention_heads", *model_.numAttentionHeads);
    if (!moe || *model_.firstKDenseReplace > 0)
      add("intermediate_size", *model_.intermediateSize);
    if (moe && *model_.nSharedExperts > 0)
      add("moe_intermediate_size", *model_.moeIntermediateSize);
    if (world_ > 0)
      split.push_back({world_, worldText()});
    int64_t common = 0;
    for (const Dimension &dimension : split)
      common = std::gcd(common, dimension.size);
    int64_t kv = *model_.kvLoraRank > 0 ? 0 : *model_.numKeyValueHeads;
    requireOne(
        p_.tensorParallel, "tensor_parallel",
        [&](int64_t tp) -> std::string {
          std::vector<std::string> bad;
          for (const Dimension &dimension : split)
            if (dimension.size % tp != 0)
              bad.push_back(dimension.text);
          // Fewer key heads than ranks are copied to the ranks of a group.
          if (kv > 0 && kv % tp != 0 && tp % kv != 0)
            bad.push_back("num_key_value_heads " + num(kv) +
                          " (or be a multiple of it)");
          return bad.empty() ? "" : "to divide " + joinAnd(bad);
        },
        "use " + divisorsOf(common, common));
  }

  void checkPipeline() {
    int64_t layers = *model_.numHiddenLayers;
    // Embedding and loss may have a stage of their own.
    int64_t most = layers > 0 ? layers + 2 : 0;
    requireOne(
        p_.pipelineParallel, "pipeline_parallel",
        [&](int64_t pp) -> std::string {
          if (most > 0 && pp > most)
            return "of at most num_hidden_layers " + num(layers) +
                   " and two stages for embedding and loss";
          if (world_ > 0 && world_ % pp != 0)
            return "to divide " + worldText();
          return "";
        },
        world_ > 0 ? "use " + divisorsOf(world_, most > 0 ? most : world_)
                   : "use fewer stages");
    const Choice<int64_t> &pp = p_.pipelineParallel, &v = p_.virtualPipeline;
    if (pp.fixed() && most > 0 && pp.value() <= most && pp.value() > 1)
      requireOne(
          v, "virtual_pipeline",
          [&](int64_t chunks) -> std::string {
            return chunks * pp.value() <= most
                       ? ""
                       : "times pipeline_parallel " + num(pp.value()) +
                             " of at most num_hidden_layers " + num(layers) +
                             " and two";
          },
          "use at most " + num(most / pp.value()));
    if (p_.recomputeLayers)
      checkRecompute(layers);
  }

  void checkRecompute(int64_t layers) {
    int64_t stages = 1;
    if (p_.pipelineParallel.fixed())
      stages *= p_.pipelineParallel.value();
    if (p_.virtualPipeline.fixed())
      stages *= p_.virtualPipeline.value();
    int64_t most = (layers + stages - 1) / stages;
    if (!p_.pipelineLayout->empty())
      most = *std::max_element(p_.pipelineLayout->begin(),
                               p_.pipelineLayout->end());
    if (layers > 0 && *p_.recomputeLayers > most)
      reader_.error(
          p_.recompute.loc,
          "expected parallelism.recompute of at most the " + num(most) +
              " layers of a stage, got {layers: " + num(*p_.recomputeLayers) +
              "}; use a smaller number, or full");
  }

  void checkContext() {
    int64_t sequence = *training_.sequenceLength;
    requireOne(
        p_.contextParallel, "context_parallel",
        [&](int64_t cp) -> std::string {
          if (world_ > 0 && world_ % cp != 0)
            return "to divide " + worldText();
          // Each rank takes an early and a late block, to even out the mask.
          if (cp > 1 && sequence > 0 && sequence % (2 * cp) != 0)
            return "to divide half of training.sequence_length " +
                   num(sequence);
          return "";
        },
        "choose another degree or sequence length");
    const Choice<ContextMethod> &method = p_.contextParallelMethod;
    const Choice<int64_t> &cp = p_.contextParallel, &tp = p_.tensorParallel;
    int64_t heads = *model_.numAttentionHeads;
    if (cp.fixed() && cp.value() > 1 && method.fixed() &&
        method.value() == ContextMethod::None)
      reader_.error(method.loc, "expected ring, all_gather or all_to_all for "
                                "parallelism.context_parallel_method with "
                                "context_parallel " +
                                    num(cp.value()) +
                                    ", got none; choose one of them");
    int64_t tensor = tp.fixed() ? tp.value() : 1;
    if (cp.fixed() && method.fixed() &&
        method.value() == ContextMethod::AllToAll && heads > 0 &&
        heads % tensor == 0 && heads / tensor % cp.value() != 0)
      reader_.error(method.loc, "expected context_parallel " + num(cp.value()) +
                                    " to divide the " + num(heads / tensor) +
                                    " heads of a rank for all_to_all, got " +
                                    num(heads) + " heads in " + num(tensor) +
                                    " tensor ranks; use ring or all_gather");
  }

  void checkExperts() {
    int64_t experts = *model_.numExperts, width = *model_.moeIntermediateSize;
    requireOne(
        p_.expertParallel, "expert_parallel",
        [&](int64_t ep) -> std::string {
          if (experts == 0 && ep > 1)
            return "of 1 for a model without experts";
          if (experts > 0 && experts % ep != 0)
            return "to divide the " + num(experts) + " experts";
          if (world_ > 0 && world_ % ep != 0)
            return "to divide " + worldText();
          return "";
        },
        experts == 0 ? "use 1, or give num_local_experts"
                     : "use " + divisorsOf(experts, experts));
    requireOne(
        p_.expertTensorParallel, "expert_tensor_parallel",
        [&](int64_t etp) -> std::string {
          if (experts == 0 && etp > 1)
            return "of 1 for a model without experts";
          if (experts > 0 && width > 0 && width % etp != 0)
            return "to divide moe_intermediate_size " + num(width);
          return "";
        },
        experts == 0 ? "use 1, or give num_local_experts"
                     : "use " + divisorsOf(width, width));
    const Choice<int64_t> &ep = p_.expertParallel,
                          &etp = p_.expertTensorParallel,
                          &pp = p_.pipelineParallel;
    if (experts == 0 || world_ == 0 || !ep.fixed() || !pp.fixed() ||
        world_ % pp.value() != 0 || (etp.isAuto && etp.values.size() != 1) ||
        etp.values.size() != 1)
      return;
    int64_t ranks = world_ / pp.value();
    int64_t group = ep.value() * etp.value();
    if (experts % ep.value() == 0 && ranks % group != 0)
      reader_.error(ep.loc, "expected parallelism.expert_parallel " +
                                num(ep.value()) + " * expert_tensor_parallel " +
                                num(etp.value()) + " to divide the " +
                                num(ranks) + " ranks of a pipeline rank, got " +
                                num(group) + "; change a degree");
  }

  void checkProduct() {
    requireOne(
        p_.dataParallel, "data_parallel",
        [&](int64_t dp) -> std::string {
          return world_ % dp == 0 ? "" : "to divide " + worldText();
        },
        "leave it out, it follows from the others");
    struct Factor {
      const Choice<int64_t> &choice;
      const char *name;
    };
    const Factor factors[] = {{p_.tensorParallel, "tensor_parallel"},
                              {p_.contextParallel, "context_parallel"},
                              {p_.pipelineParallel, "pipeline_parallel"},
                              {p_.dataParallel, "data_parallel"}};
    int64_t product = 1;
    std::vector<std::string> fixed;
    const SourceLoc *loc = nullptr;
    for (const Factor &factor : factors)
      if (factor.choice.fixed()) {
        int64_t value = factor.choice.value();
        // One that does not divide the world by itself was reported.
        if (world_ % value != 0)
          return;
        product *= value;
        fixed.push_back(factor.name + std::string(" ") + num(value));
        loc = &factor.choice.loc;
      }
    bool all = fixed.size() == std::size(factors);
    if (fixed.empty() || (all ? product == world_ : world_ % product == 0)) {
      known_ = product;
      if (p_.dataParallel.fixed())
        dp_ = p_.dataParallel.value();
      else if (fixed.size() + 1 == std::size(factors))
        dp_ = world_ / product;
      return;
    }
    std::string text;
    for (const std::string &factor : fixed)
      text += (text.empty() ? "parallelism." : " * ") + factor;
    reader_.error(*loc, std::string("expected ") + text + " to " +
                            (all ? "equal " : "divide ") + worldText() +
                            ", got " + num(product) +
                            " ranks; change a degree or the cluster" +
                            (all ? ", or leave data_parallel out" : ""));
  }

  void checkBatch() {
    int64_t batch = *training_.globalBatchSize;
    if (batch <= 0)
      return;
    std::string dpText = "data_parallel " + num(dp_);
    if (dp_ > 0 && !p_.dataParallel.fixed())
      dpText += " (" + worldText() + " / " + num(known_) + ")";
    if (dp_ > 0 && batch % dp_ != 0) {
      int64_t below = batch / dp_ * dp_;
      reader_.error(training_.globalBatchSize.loc,
                    "expected training.global_batch_size to be a multiple of " +
                        dpText + ", got " + num(batch) + "; use " +
                        (below > 0 ? num(below) + " or " : std::string()) +
                        num(below + dp_));
      return;
    }
    int64_t share = dp_ > 0 ? batch / dp_ : batch;
    requireOne(
        p_.microBatchSize, "micro_batch_size",
        [&](int64_t size) -> std::string {
          if (share % size == 0)
            return "";
          return "to divide global_batch_size " + num(batch) +
                 (dp_ > 0 ? " / " + dpText + " = " + num(share)
                          : std::string());
        },
        "use " + divisorsOf(share, share));
    if (!p_.dataParallel.isAuto && dp_ == 0)
      requireOne(
          p_.dataParallel, "data_parallel",
          [&](int64_t dp) -> std::string {
            return batch % dp == 0
                       ? ""
                       : "to divide global_batch_size " + num(batch);
          },
          "change one of them");
    bool counted = dp_ > 0 && p_.microBatchSize.fixed() &&
                   share % p_.microBatchSize.value() == 0;
    checkSchedule(p_, counted ? share / p_.microBatchSize.value() : 0, reader_);
    checkRepresentation(p_, reader_);
  }

  void warnAboutNoOps() {
    if (dp_ == 1 && p_.zeroStage.fixed() && p_.zeroStage.value() > 0)
      reader_.warn(p_.zeroStage.loc, "parallelism.zero_stage " +
                                         num(p_.zeroStage.value()) +
                                         " has no effect with data_parallel 1");
    if (*model_.numExperts == 0 && *p_.moeCapacityFactor > 0)
      reader_.warn(p_.moeCapacityFactor.loc,
                   "parallelism.moe_capacity_factor has no effect on a model "
                   "without experts");
    if (p_.pipelineParallel.fixed() && p_.pipelineParallel.value() == 1 &&
        p_.virtualPipeline.fixed() && p_.virtualPipeline.value() > 1 &&
        p_.virtualPipeline.given) {
      reader_.warn(p_.virtualPipeline.loc,
                   "parallelism.virtual_pipeline has no effect with "
                   "pipeline_parallel 1");
      if (p_.pipelineLayout->empty())
        p_.virtualPipeline.values = {1};
    }
  }

  ModelSpec &model_;
  ClusterSpec &cluster_;
  TrainingSpec &training_;
  ParallelismSpec &p_;
  Reader &reader_;
  int64_t world_ = 0; ///< 0 when not known
  int64_t known_ = 1; ///< product of the fixed degrees
  int64_t dp_ = 0;    ///< data_parallel, where it is settled
};

} // namespace

void checkParallelism(Spec &spec, Reader &reader) {
  Checker(spec, reader).run();
}

} // namespace reckon
