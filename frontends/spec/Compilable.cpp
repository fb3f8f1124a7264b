//===- Compilable.cpp - what reckon compile can lower ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Compilable.h"

#include "frontends/spec/Keys.h"
#include "frontends/spec/Node.h"
#include "frontends/spec/Suggest.h"

namespace reckon {
namespace {

std::string spell(int64_t value) { return std::to_string(value); }
std::string spell(bool value) { return value ? "true" : "false"; }
template <typename E> std::string spell(E value) { return toString(value); }

/// Whether the key's row lists the value among those that can be lowered.
bool lowers(std::string_view path, const std::string &value) {
  std::vector<std::string> able = splitWords(findKey(path)->compiles);
  return able.empty() ||
         std::find(able.begin(), able.end(), value) != able.end();
}

/// Calls `visit(path, choice)` for each open key.
template <typename Parallelism, typename Visit>
void eachChoice(Parallelism &p, Visit visit) {
  visit("parallelism.sequence_parallel", p.sequenceParallel);
  visit("parallelism.context_parallel", p.contextParallel);
  visit("parallelism.virtual_pipeline", p.virtualPipeline);
  visit("parallelism.pipeline_schedule", p.pipelineSchedule);
  visit("parallelism.expert_parallel", p.expertParallel);
  visit("parallelism.expert_tensor_parallel", p.expertTensorParallel);
  visit("parallelism.zero_stage", p.zeroStage);
  visit("parallelism.recompute", p.recompute);
}

class Finder {
public:
  explicit Finder(const Spec &spec) : spec_(spec) {}

  std::vector<Diagnostic> run() {
    model();
    training();
    const ParallelismSpec &p = spec_.parallelism;
    eachChoice(p, [&](std::string_view path, const auto &choice) {
      // What is left open is narrowed instead.
      if (choice.isAuto)
        return;
      for (const auto &value : choice.values)
        if (lowers(path, spell(value)))
          return;
      refuse(path, choice.loc, spell(choice.values.front()));
    });
    if (p.recomputeLayers && *p.recomputeLayers > 0)
      refuse("parallelism.recompute", p.recompute.loc,
             "{layers: " + spell(*p.recomputeLayers) + "}");
    if (*p.moeCapacityFactor > 0 && *spec_.model.numExperts > 0)
      refuse("parallelism.moe_capacity_factor", p.moeCapacityFactor.loc,
             "a factor of " + formatNumber(*p.moeCapacityFactor));
    word("parallelism.representation", p.representation.loc,
         toString(*p.representation));
    for (int64_t layers : *p.pipelineLayout)
      if (layers == 0) {
        add(p.pipelineLayout.loc,
            "parallelism.pipeline_layout: a stage without layers cannot be "
            "compiled yet; give each stage one at least");
        break;
      }
    splits();
    return std::move(found_);
  }

private:
  void add(const SourceLoc &loc, std::string message) {
    found_.push_back(errorAt(loc, std::move(message)));
  }

  void refuse(std::string_view path, const SourceLoc &loc,
              const std::string &value) {
    const KeyRow &row = *findKey(path);
    std::vector<std::string> able = splitWords(row.compiles);
    if (row.kind == KeyKind::Degrees || row.kind == KeyKind::Words)
      able.insert(able.begin(), "auto");
    add(loc, std::string(path) + ": " + value +
                 " cannot be compiled yet; use " + listWords(able) +
                 ", or reckon plan, which accounts for it");
  }

  void word(std::string_view path, const SourceLoc &loc,
            const std::string &value) {
    if (!lowers(path, value))
      refuse(path, loc, value);
  }

  void model() {
    const ModelSpec &m = spec_.model;
    word("model.architecture", m.architecture.loc, *m.architecture);
    word("model.tie_word_embeddings", m.tieWordEmbeddings.loc,
         spell(*m.tieWordEmbeddings));
    // One finding for a family; the keys below are part of it.
    if (!lowers("model.architecture", *m.architecture))
      return;
    word("model.hidden_act", m.hiddenAct.loc, *m.hiddenAct);
    word("model.attention_bias", m.attentionBias.loc, spell(*m.attentionBias));
    word("model.qk_norm", m.qkNorm.loc, spell(*m.qkNorm));
    word("model.rope_scaling.rope_type", m.ropeScaling.type.loc,
         toString(*m.ropeScaling.type));
  }

  void training() {
    const TrainingSpec &t = spec_.training;
    word("training.precision", t.precision.loc, toString(*t.precision));
    word("training.grad_reduce_dtype", t.gradReduceDtype.loc,
         toString(*t.gradReduceDtype));
    if (t.data.given) {
      word("training.data.format", t.data.format.loc, *t.data.format);
      if (*t.data.tokenizer != "byte")
        refuse("training.data.tokenizer", t.data.tokenizer.loc,
               "the tokenizer " + quoteForMessage(*t.data.tokenizer));
    }
    if (*t.checkpoint.interval > 0)
      refuse("training.checkpoint.interval", t.checkpoint.interval.loc,
             "an interval of " + spell(*t.checkpoint.interval) + " steps");
  }

  /// The compiler pads no vocabulary, copies no key heads and makes no stage
  /// without a layer.
  void splits() {
    const ModelSpec &m = spec_.model;
    const Choice<int64_t> &tp = spec_.parallelism.tensorParallel;
    auto divides = [&](const char *key, int64_t size) {
      if (size <= 0 || tp.isAuto)
        return;
      for (int64_t degree : tp.values)
        if (size % degree == 0)
          return;
      add(tp.loc, "parallelism.tensor_parallel: " + spell(tp.values.front()) +
                      " does not divide " + key + " " + spell(size) +
                      ", which cannot be compiled yet; use a degree that "
                      "divides it");
    };
    divides("vocab_size", *m.vocabSize);
    divides("num_key_value_heads", *m.numKeyValueHeads);
    const Choice<int64_t> &pp = spec_.parallelism.pipelineParallel;
    if (!pp.isAuto && *m.numHiddenLayers > 0 &&
        *std::min_element(pp.values.begin(), pp.values.end()) >
            *m.numHiddenLayers)
      add(pp.loc, "parallelism.pipeline_parallel: " + spell(pp.values.front()) +
                      " stages for " + spell(*m.numHiddenLayers) +
                      " layers cannot be compiled yet; use at most one stage "
                      "a layer");
  }

  const Spec &spec_;
  std::vector<Diagnostic> found_;
};

} // namespace

std::vector<Diagnostic> notCompilable(const Spec &spec) {
  return Finder(spec).run();
}

void restrictToCompilable(Spec &spec) {
  spec.search.space.value = SearchSpace::Compilable;
  eachChoice(spec.parallelism, [&](std::string_view path, auto &choice) {
    using T = typename std::decay_t<decltype(choice.values)>::value_type;
    std::vector<T> kept;
    if (choice.values.empty()) // an open degree; the row lists numbers
      if constexpr (std::is_same_v<T, int64_t>)
        for (const std::string &word : splitWords(findKey(path)->compiles))
          kept.push_back(std::stoll(word));
    for (const T &value : choice.values)
      if (lowers(path, spell(value)))
        kept.push_back(value);
      else if (!choice.isAuto && !choice.fixed())
        spec.warnings.push_back(warningAt(
            choice.loc, std::string(path) + ": " + spell(value) +
                            " cannot be compiled yet and is left out of the "
                            "list"));
    if (!kept.empty())
      choice.values = std::move(kept);
  });
}

} // namespace reckon
