//===- Check.cpp - the sections against each other ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A fixed value that contradicts the model's shape, the world size or the
// batch is a bad spec. What is left to the planner is not checked here: it
// skips what does not divide, and says so. A value of zero was already
// reported by the reader, so checks that need it are skipped.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Reader.h"
#include "frontends/spec/Suggest.h"

#include <functional>
#include <numeric>

namespace reckon {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

/// "a, b and c".
std::string joinAnd(const std::vector<std::string> &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

/// The divisors of `n` up to `most`, in words; the largest ones of many.
std::string divisorsOf(int64_t n, int64_t most) {
  std::vector<std::string> words;
  for (int64_t d = 1; d <= n && d <= most && d <= 65536; ++d)
    if (n % d == 0)
      words.push_back(num(d));
  constexpr size_t shown = 12;
  if (words.size() > shown)
    words.erase(words.begin(),
                words.end() - static_cast<std::ptrdiff_t>(shown));
  return listWords(words);
}

class Checker {
public:
  Checker(Spec &spec, Reader &reader)
      : model_(spec.model), cluster_(spec.cluster), training_(spec.training),
        parallelism_(spec.parallelism), reader_(reader) {}

  void run() {
    checkShape();
    checkSize();
    checkLayout();
    checkWorld();
    checkBatch();
    warnAboutCluster();
  }

private:
  bool worldKnown() const {
    return *cluster_.nodes > 0 && *cluster_.gpusPerNode > 0;
  }
  std::string worldText() const {
    return "the world size " + num(cluster_.worldSize()) + " (nodes " +
           num(*cluster_.nodes) + " * gpus_per_node " +
           num(*cluster_.gpusPerNode) + ")";
  }

  void checkShape() {
    int64_t heads = *model_.numAttentionHeads, kv = *model_.numKeyValueHeads;
    if (heads > 0 && kv > 0 && heads % kv != 0)
      reader_.error(model_.numKeyValueHeads.loc,
                    "expected model.num_key_value_heads to divide "
                    "num_attention_heads " +
                        num(heads) + ", got " + num(kv) + "; use " +
                        divisorsOf(heads, heads));
    if (*model_.headDim % 2 != 0)
      reader_.error(model_.headDim.loc,
                    "expected an even model.head_dim for the rotary "
                    "embedding, got " +
                        num(*model_.headDim) +
                        (model_.headDim.given
                             ? "; use an even one"
                             : " from hidden_size / num_attention_heads; "
                               "change one of them or give head_dim"));
    int64_t longest = *model_.maxPositionEmbeddings;
    if (longest > 0 && *training_.sequenceLength > longest)
      reader_.warn(
          training_.sequenceLength.loc,
          "training.sequence_length " + num(*training_.sequenceLength) +
              " is above model.max_position_embeddings " + num(longest));
    if (training_.data.given && *training_.data.tokenizer == "byte" &&
        *model_.vocabSize > 0 && *model_.vocabSize < 256)
      reader_.error(model_.vocabSize.loc,
                    "expected model.vocab_size of at least 256 for the "
                    "tokenizer byte, got " +
                        num(*model_.vocabSize) + "; use 256");
  }

  /// Keeps byte counts within 63 bits, with room for the factors that the
  /// accounting multiplies by.
  void checkSize() {
    long double hidden = *model_.hiddenSize, vocab = *model_.vocabSize,
                inner = *model_.intermediateSize,
                layers = *model_.numHiddenLayers,
                attention = static_cast<long double>(*model_.headDim) *
                            (2.0L * *model_.numAttentionHeads +
                             2.0L * *model_.numKeyValueHeads);
    long double parameters =
        2 * vocab * hidden + layers * hidden * (attention + 3 * inner);
    constexpr long double mostParameters = 1e15L;
    if (parameters > mostParameters)
      reader_.error(model_.loc,
                    "expected a model of at most 1e15 parameters, got " +
                        formatNumber(static_cast<double>(parameters)) +
                        " from hidden_size, intermediate_size, vocab_size and "
                        "num_hidden_layers; check their digits");
    // 64 bytes an element are more than any activation keeps.
    long double widest = std::max({hidden, vocab, inner, attention});
    long double elements =
        static_cast<long double>(*training_.globalBatchSize) *
        *training_.sequenceLength * widest * std::max(layers, 1.0L);
    if (elements > 7e16L)
      reader_.error(training_.globalBatchSize.loc,
                    "expected at most 7e16 activation elements in a step, "
                    "got " +
                        formatNumber(static_cast<double>(elements)) +
                        " from global_batch_size, sequence_length, "
                        "num_hidden_layers and the model's widest matrix; "
                        "check their digits");
  }

  void checkLayout() {
    const std::vector<int64_t> &layout = *parallelism_.pipelineLayout;
    if (layout.empty())
      return;
    int64_t layers = *model_.numHiddenLayers;
    int64_t sum = std::accumulate(layout.begin(), layout.end(), int64_t{0});
    int64_t stages = static_cast<int64_t>(layout.size());
    const SourceLoc &loc = parallelism_.pipelineLayout.loc;
    if (layers > 0 && sum != layers)
      reader_.error(loc, "expected parallelism.pipeline_layout to add up to "
                         "num_hidden_layers " +
                             num(layers) + ", got " + num(sum) + " on " +
                             num(stages) + " stages; change the layout");
    Choice<int64_t> &pp = parallelism_.pipelineParallel;
    if (!pp.allows(stages)) {
      reader_.error(loc, "expected parallelism.pipeline_layout to name as "
                         "many stages as pipeline_parallel " +
                             num(pp.value()) + ", got " + num(stages) +
                             "; change one of them");
      return;
    }
    // The layout settles the number of stages.
    if (pp.isAuto)
      pp.loc = loc;
    pp.isAuto = false;
    pp.values = {stages};
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

  void checkWorld() {
    int64_t world = worldKnown() ? cluster_.worldSize() : 0;
    struct Dimension {
      int64_t size;
      std::string text;
    };
    // This version splits each of these evenly over a tensor group.
    std::vector<Dimension> split;
    auto add = [&](const char *key, int64_t size) {
      if (size > 0)
        split.push_back({size, key + std::string(" ") + num(size)});
    };
    add("num_attention_heads", *model_.numAttentionHeads);
    add("num_key_value_heads", *model_.numKeyValueHeads);
    add("intermediate_size", *model_.intermediateSize);
    add("vocab_size", *model_.vocabSize);
    if (world > 0)
      split.push_back({world, worldText()});
    int64_t common = 0;
    for (const Dimension &dimension : split)
      common = std::gcd(common, dimension.size);
    requireOne(
        parallelism_.tensorParallel, "tensor_parallel",
        [&](int64_t tp) -> std::string {
          std::vector<std::string> bad;
          for (const Dimension &dimension : split)
            if (dimension.size % tp != 0)
              bad.push_back(dimension.text);
          return bad.empty() ? "" : "to divide " + joinAnd(bad);
        },
        "use " + divisorsOf(common, common));

    int64_t layers = *model_.numHiddenLayers;
    requireOne(
        parallelism_.pipelineParallel, "pipeline_parallel",
        [&](int64_t pp) -> std::string {
          if (layers > 0 && pp > layers)
            return "of at most num_hidden_layers " + num(layers) +
                   ", a layer for each stage";
          if (world > 0 && world % pp != 0)
            return "to divide " + worldText();
          return "";
        },
        world > 0 ? "use " + divisorsOf(world, layers > 0 ? layers : world)
                  : "use fewer stages");
    if (world == 0)
      return;
    requireOne(
        parallelism_.dataParallel, "data_parallel",
        [&](int64_t dp) -> std::string {
          return world % dp == 0 ? "" : "to divide " + worldText();
        },
        "leave it out, it follows from the others");
    checkProduct(world);
  }

  void checkProduct(int64_t world) {
    struct Factor {
      const Choice<int64_t> &choice;
      const char *name;
    };
    const Factor factors[] = {
        {parallelism_.tensorParallel, "tensor_parallel"},
        {parallelism_.pipelineParallel, "pipeline_parallel"},
        {parallelism_.dataParallel, "data_parallel"}};
    int64_t product = 1;
    std::vector<std::string> fixed;
    const SourceLoc *loc = nullptr;
    for (const Factor &factor : factors)
      if (factor.choice.fixed()) {
        // One that does not divide the world by itself was reported.
        if (world % factor.choice.value() != 0)
          return;
        product *= factor.choice.value();
        fixed.push_back(factor.name + std::string(" ") +
                        num(factor.choice.value()));
        loc = &factor.choice.loc;
      }
    bool all = fixed.size() == std::size(factors);
    if (fixed.empty() || (all ? product == world : world % product == 0)) {
      known_ = product;
      if (parallelism_.dataParallel.fixed())
        dp_ = parallelism_.dataParallel.value();
      else if (fixed.size() == 2)
        dp_ = world / product;
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
    if (dp_ > 0 && !parallelism_.dataParallel.fixed())
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
        parallelism_.microBatchSize, "micro_batch_size",
        [&](int64_t size) -> std::string {
          if (share % size == 0)
            return "";
          return "to divide global_batch_size " + num(batch) +
                 (dp_ > 0 ? " / " + dpText + " = " + num(share)
                          : std::string());
        },
        "use " + divisorsOf(share, share));
    if (!parallelism_.dataParallel.isAuto && dp_ == 0)
      requireOne(
          parallelism_.dataParallel, "data_parallel",
          [&](int64_t dp) -> std::string {
            return batch % dp == 0
                       ? ""
                       : "to divide global_batch_size " + num(batch);
          },
          "change one of them");
    if (dp_ == 1 && parallelism_.zeroStage.fixed() &&
        parallelism_.zeroStage.value() > 0)
      reader_.warn(parallelism_.zeroStage.loc,
                   "parallelism.zero_stage " +
                       num(parallelism_.zeroStage.value()) +
                       " has no effect with data_parallel 1");
  }

  void warnAboutCluster() {
    int64_t perNode = *cluster_.gpusPerNode;
    const Accelerator &accelerator = *cluster_.accelerator;
    if (!accelerator.name.empty() && perNode > accelerator.intraNodeSize)
      reader_.warn(cluster_.gpusPerNode.loc,
                   "cluster.gpus_per_node " + num(perNode) +
                       " is more than the " + num(accelerator.intraNodeSize) +
                       " devices that " + accelerator.name +
                       " joins by its fast link; times assume that link");
    const Choice<int64_t> &tp = parallelism_.tensorParallel;
    if (perNode > 0 && tp.fixed() && perNode % tp.value() != 0)
      reader_.warn(tp.loc, "parallelism.tensor_parallel " + num(tp.value()) +
                               " crosses nodes of " + num(perNode) +
                               " devices; expect slow steps");
  }

  ModelSpec &model_;
  ClusterSpec &cluster_;
  TrainingSpec &training_;
  ParallelismSpec &parallelism_;
  Reader &reader_;
  int64_t known_ = 1; ///< product of the fixed degrees
  int64_t dp_ = 0;    ///< data_parallel, where it is settled
};

} // namespace

void checkSpec(Spec &spec, Reader &reader) { Checker(spec, reader).run(); }

} // namespace reckon
