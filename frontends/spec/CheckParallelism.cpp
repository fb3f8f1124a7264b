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
#include "frontends/spec/Degrees.h"

#include <numeric>

namespace reckon {
namespace {

class Checker : Degrees {
public:
  using Degrees::Degrees;

  void run() {
    narrow();
    checkTensor();
    checkContext();
    checkExperts();
    if (world_ > 0)
      checkProduct();
    checkBatch();
    warnAboutNoOps();
  }

private:
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
    int64_t kv = *model_.kvLoraRank > 0 ? 0 : *model_.numKeyValueHeads;
    // Fewer key heads than ranks are copied to the ranks of a group, or parted
    // among them; these two frameworks do neither.
    Representation framework = *p_.representation;
    if (kv > 0 && (framework == Representation::DeepSpeed ||
                   framework == Representation::TorchTitan))
      split.push_back({kv, "num_key_value_heads " + num(kv) + " (" +
                               toString(framework) + " copies no head)"});
    int64_t common = 0;
    for (const Dimension &dimension : split)
      common = std::gcd(common, dimension.size);
    requireOne(
        p_.tensorParallel, "tensor_parallel",
        [&](int64_t tp) -> std::string {
          std::vector<std::string> bad;
          for (const Dimension &dimension : split)
            if (dimension.size % tp != 0)
              bad.push_back(dimension.text);
          if (kv > 0 && kv % tp != 0 && tp % kv != 0)
            bad.push_back("num_key_value_heads " + num(kv) +
                          " (or be a multiple of it)");
          return bad.empty() ? "" : "to divide " + joinAnd(bad);
        },
        "use " + divisorsOf(common, common));
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

  int64_t known_ = 1; ///< product of the fixed degrees
  int64_t dp_ = 0;    ///< data_parallel, where it is settled
};

} // namespace

void checkParallelism(Spec &spec, Reader &reader) {
  checkPipeline(spec, reader);
  Checker(spec, reader).run();
}

} // namespace reckon
