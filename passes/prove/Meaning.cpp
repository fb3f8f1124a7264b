//===- Meaning.cpp - a step computes what the spec describes --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each stage is run on terms, with what arrives from other stages as symbols,
// and compared with Llama.h on the same symbols: what it sends, and every state
// it leaves. That each message carries what its symbol stands for is what the
// sender's comparison shows; since the plan has no cyclic wait, all of them
// hold by induction over time.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Checks.h"
#include "passes/prove/Execute.h"
#include "passes/prove/Share.h"

#include <algorithm>
#include <set>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

namespace {

/// Finds where two terms begin to differ.
class Difference {
public:
  explicit Difference(const TermTable &terms) : terms_(terms) {}

  /// "..., but it should be ...", about the deepest place that an instruction
  /// of the plan computed otherwise.
  std::string explain(TermId got, TermId expected, std::string where) {
    std::string text = descend(got, expected, where);
    return text.empty() ? where + " is " + terms_.describe(got) +
                              ", expected " + terms_.describe(expected)
                        : text;
  }

private:
  std::string place(TermId term, const std::string &otherwise) const {
    const Origin &origin = terms_.origin(term);
    return origin.stage ? describe(*origin.stage, origin.place) : otherwise;
  }

  static bool sameShape(const TermTable &terms, TermId a, TermId b) {
    const TermNode &x = terms[a], &y = terms[b];
    if (x.kind != y.kind || x.code != y.code || x.output != y.output ||
        x.number != y.number || x.numInputs != y.numInputs)
      return false;
    return x.kind != TermKind::Symbol;
  }

  std::string descend(TermId got, TermId expected, const std::string &where) {
    if (got == expected || !seen_.insert({got, expected}).second)
      return "";
    std::string here = place(got, where);
    if (!sameShape(terms_, got, expected))
      return here + (here == where ? " is " : " gives ") +
             terms_.describe(got) + " where " + terms_.describe(expected) +
             " is expected" + (here == where ? "" : " for " + where);
    auto a = terms_.inputs(got), b = terms_.inputs(expected);
    const TermNode &x = terms_[got], &y = terms_[expected];
    auto args = terms_.args(got), wanted = terms_.args(expected);
    if (!std::equal(args.begin(), args.end(), wanted.begin(), wanted.end()) ||
        terms_.floats(got) != terms_.floats(expected) || x.bytes != y.bytes ||
        x.axes != y.axes || x.reduction != y.reduction || x.dtype != y.dtype)
      return here + " computes " + terms_.describe(got) + " of " +
             std::to_string(x.bytes) + " bytes, expected " +
             terms_.describe(expected) + " of " + std::to_string(y.bytes) +
             " bytes";
    // Sums are kept in any order: pair what is equal first.
    std::vector<TermId> left(a.begin(), a.end()), right(b.begin(), b.end());
    if (x.kind == TermKind::Kernel &&
        static_cast<Kernel>(x.code) == Kernel::add && left.size() == 2 &&
        (left[0] == right[1] || left[1] == right[0]))
      std::swap(right[0], right[1]);
    for (size_t i = 0; i < left.size(); ++i) {
      std::string text = descend(left[i], right[i],
                                 "input " + std::to_string(i) + " of " + here);
      if (!text.empty())
        return text;
    }
    return "";
  }

  const TermTable &terms_;
  std::set<std::pair<TermId, TermId>> seen_;
};

class MeaningCheck {
public:
  MeaningCheck(Program &program, const Intent &intent)
      : program_(program), intent_(intent), terms_(program.functions) {}

  Status run(std::string &detail) {
    for (const Stage &stage : program_.stages)
      for (const auto &action : stage.list->actions)
        if (action->kind == ActionKind::send && action->units.size() == 1)
          order_[stage.plan->channels[action->channel]->id].push_back(
              action->units[0].microbatch());
    sequenceParallel_ = splitsRows();
    jointNorms_ = sequenceParallel_ && reducesJointly();
    for (const Stage &stage : program_.stages)
      RECKON_TRY(check(stage));
    char factor[40];
    std::snprintf(factor, sizeof factor, "%.6g",
                  1.0 / static_cast<double>(intent_.globalTokens()));
    const StagePlanT &plan = *program_.stages[0].plan;
    detail = "every parameter's gradient is the sum over " +
             std::to_string(plan.num_micro_batches) + " micro-batches and " +
             std::to_string(program_.mesh().dp) + " replicas of " +
             std::to_string(plan.micro_batch_size) + " x " +
             std::to_string(plan.sequence_length) + " tokens, each times 1/" +
             std::to_string(intent_.globalTokens()) + " = " + factor + "; " +
             std::to_string(parameters_) + " parameters, " +
             std::to_string(messages_) + " messages, " +
             std::to_string(instructions_) + " instructions, " +
             std::to_string(terms_.size()) + " terms";
    return Status::success();
  }

private:
  /// The channel of this stage in a direction, on its sending or receiving
  /// side, or null.
  const ChannelT *channel(const Stage &stage, Direction direction, bool sends) {
    for (const auto &entry : stage.plan->channels) {
      bool mine =
          (sends ? entry->source_stage : entry->target_stage) == stage.number();
      int64_t ahead = int64_t(entry->target_stage) - entry->source_stage;
      if (mine && entry->direction == direction &&
          ahead == (direction == Direction::forward ? 1 : -1))
        return entry.get();
    }
    return nullptr;
  }

  TermId received(const Stage &stage, Direction direction,
                  uint32_t microBatch) {
    const ChannelT *from = channel(stage, direction, false);
    if (!from)
      return kNoTerm;
    DType dtype = intent_.bf16 ? DType::bf16 : DType::f32;
    int64_t tokens =
        int64_t(stage.plan->micro_batch_size) * stage.plan->sequence_length;
    int64_t rows = sequenceParallel_ ? tokens / program_.mesh().tp : tokens;
    return terms_.symbol(symbols::message(*from), microBatch, dtype,
                         rows * intent_.dims.hidden * dtypeSize(dtype));
  }

  /// Whether norms see a tensor rank's part of the rows: either way of
  /// spreading them computes the same, as long as all of a plan goes one way.
  bool splitsRows() const {
    const StagePlanT &plan = *program_.stages[0].plan;
    int64_t tokens = int64_t(plan.micro_batch_size) * plan.sequence_length;
    for (const Stage &stage : program_.stages)
      for (const PreparedFragment &fragment : stage.fragments)
        for (const PreparedInstruction &instruction : fragment.instructions)
          if (instruction.source->op == Opcode::launch &&
              instruction.source->kernel == Kernel::rms_norm &&
              !instruction.inputs.empty())
            return program_.mesh().tp > 1 &&
                   instruction.inputs[0].bytes <
                       tokens * intent_.dims.hidden *
                           dtypeSize(instruction.inputs[0].dtype);
    return false;
  }

  /// Whether something is summed over tensor ranks and replicas at once.
  bool reducesJointly() const {
    constexpr unsigned kJoint = 1u << static_cast<unsigned>(Axis::tp) |
                                1u << static_cast<unsigned>(Axis::dp);
    for (const Stage &stage : program_.stages)
      for (const PreparedFragment &fragment : stage.fragments)
        for (const PreparedInstruction &instruction : fragment.instructions)
          if (instruction.axes == kJoint && !instruction.inputs.empty() &&
              instruction.inputs[0].dtype == DType::f32)
            return true; // and not the metrics of a single stage
    return false;
  }

  Spread spreadOf(const Stage &stage) {
    Spread spread;
    spread.microBatchTokens =
        int64_t(stage.plan->micro_batch_size) * stage.plan->sequence_length;
    spread.zero = hasFlatStates(stage);
    spread.sequenceParallel = sequenceParallel_;
    spread.jointNorms = jointNorms_;
    spread.metricsBytes =
        static_cast<int64_t>(findState(stage, Role::metrics)->bytes);
    spread.scalarsBytes =
        static_cast<int64_t>(findState(stage, Role::scalars)->bytes);
    return spread;
  }

  Status check(const Stage &stage) {
    StageShare share;
    RECKON_TRY(readShare(stage, intent_, share));
    const StagePlanT &plan = *stage.plan;
    Spread spread = spreadOf(stage);
    Llama llama(terms_, intent_, share, spread);
    std::string name = "stage " + std::to_string(stage.number());
    if (!share.head && (!channel(stage, Direction::forward, true) ||
                        !channel(stage, Direction::backward, false)))
      return refuse(name + " has no channels to and from the next stage");
    if (!share.embedding && (!channel(stage, Direction::forward, false) ||
                             !channel(stage, Direction::backward, true)))
      return refuse(name + " has no channels to and from the previous stage");
    std::vector<Llama::Results> results;
    for (uint32_t i = 0; i < plan.num_micro_batches; ++i)
      results.push_back(
          llama.microBatch(i, received(stage, Direction::forward, i),
                           received(stage, Direction::backward, i)));
    std::map<std::string, TermId> after = llama.update();

    Executor executor(stage, terms_, order_);
    RECKON_TRY(executor.run());
    instructions_ += executor.instructions();
    RECKON_TRY(compareMessages(stage, share, results, executor.sent()));
    return compareStates(stage, after, llama.metricsAfter(), executor);
  }

  Status compareMessages(const Stage &stage, const StageShare &share,
                         const std::vector<Llama::Results> &results,
                         const std::vector<Sent> &sent) {
    std::map<uint32_t, std::set<uint32_t>> seen;
    size_t wanted = results.size() * (!share.head + !share.embedding);
    for (const Sent &message : sent) {
      const ChannelT *channel = stage.plan->channels[message.channel].get();
      ++messages_;
      std::string where = "what " + describe(stage, message.place.action) +
                          " sends for micro-batch " +
                          std::to_string(message.microBatch);
      bool forward = channel == this->channel(stage, Direction::forward, true);
      if (!forward &&
          channel != this->channel(stage, Direction::backward, true))
        return refuse(where + " goes to a stage that is no neighbour");
      if (!seen[message.channel].insert(message.microBatch).second)
        return refuse(where + " was sent before");
      const Llama::Results &result = results[message.microBatch];
      TermId expected = forward ? result.activations : result.gradient;
      if (message.term != expected)
        return refuse(
            Difference(terms_).explain(message.term, expected, where));
    }
    if (sent.size() != wanted)
      return refuse("stage " + std::to_string(stage.number()) + " sends " +
                    std::to_string(sent.size()) + " messages, expected " +
                    std::to_string(wanted));
    return Status::success();
  }

  Status compareStates(const Stage &stage,
                       const std::map<std::string, TermId> &after,
                       TermId metrics, Executor &executor) {
    const auto &states = stage.plan->states;
    for (uint32_t i = 0; i < states.size(); ++i) {
      const StateT &state = *states[i];
      if (state.role == Role::gradient)
        continue;
      parameters_ += state.role == Role::parameter;
      TermId expected;
      if (auto found = after.find(state.name); found != after.end())
        expected = found->second;
      else if (state.role == Role::metrics)
        expected = metrics;
      else // unchanged
        expected = terms_.symbol(symbols::state(state.name), -1, state.dtype,
                                 static_cast<int64_t>(state.bytes));
      TermId got = executor.state(i, 0, terms_[expected].bytes);
      std::string where = "state " + state.name + " of stage " +
                          std::to_string(stage.number()) + " (" + state.source +
                          ") after a step";
      if (got == kNoTerm)
        return refuse(where + " has bytes that differ between ranks in a way "
                              "that no operation puts together");
      if (got != expected)
        return refuse(Difference(terms_).explain(got, expected, where));
    }
    return Status::success();
  }

  Program &program_;
  const Intent &intent_;
  TermTable terms_;
  ChannelOrder order_;
  bool sequenceParallel_ = false, jointNorms_ = false;
  uint64_t parameters_ = 0, messages_ = 0, instructions_ = 0;
};

} // namespace

Status prove::checkMeaning(Program &program, const Intent &intent,
                           std::string &detail) {
  return MeaningCheck(program, intent).run(detail);
}
