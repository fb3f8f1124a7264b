//===- Agreement.cpp - groups and channels agree on all sides -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Members of one stage run one program, so they agree unless a group leaves
// some of them out. What is left to compare are the stages of a group that
// crosses them and the two sides of each channel.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Checks.h"

#include <algorithm>
#include <map>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

namespace {

/// What the parties of one operation must have in common.
struct Operation {
  std::string what; ///< "all_reduce sum of 4 x f64"
  Place place;
};

std::string segments(const std::vector<Operand> &operands) {
  std::string text;
  for (const Operand &operand : operands)
    text += (text.empty() ? "" : " + ") +
            std::to_string(operand.bytes / dtypeSize(operand.dtype)) + " x " +
            EnumNameDType(operand.dtype);
  return text;
}

class AgreementCheck {
public:
  explicit AgreementCheck(const Program &program) : program_(program) {}

  Status run(std::string &detail) {
    for (const Stage &stage : program_.stages) {
      RECKON_TRY(checkTables(stage));
      collect(stage);
    }
    RECKON_TRY(compareGroups());
    RECKON_TRY(compareChannels());
    detail = std::to_string(collectives_) + " collectives a step in " +
             std::to_string(groups_.size()) + " groups, " +
             std::to_string(messages_) + " messages on " +
             std::to_string(sends_.size()) + " channels, of one replica";
    return Status::success();
  }

private:
  static std::string stageName(const Stage &stage) {
    return "stage " + std::to_string(stage.number());
  }

  /// Groups contain every rank that runs this program; names, by which ranks
  /// find each other, are unique.
  Status checkTables(const Stage &stage) {
    std::vector<std::string> names;
    for (const auto &group : stage.plan->groups) {
      names.push_back(group->name);
      for (const auto &filter : group->filters)
        for (int64_t i = 0; i < axisSize(program_.mesh(), filter->axis); ++i)
          if ((filter->axis != Axis::pp || i == stage.number()) &&
              std::find(filter->values.begin(), filter->values.end(), i) ==
                  filter->values.end())
            return refuse(stageName(stage) + ": group " + group->name +
                          " leaves out ranks of the stage with " +
                          axisName(filter->axis) + " " + std::to_string(i));
    }
    for (const auto &channel : stage.plan->channels)
      names.push_back("channel " + std::to_string(channel->id));
    std::sort(names.begin(), names.end());
    auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      return refuse(stageName(stage) + " has two groups or channels named " +
                    *twice);
    return Status::success();
  }

  /// The stages that a group spans; a group without pp has only its own.
  std::vector<unsigned> stagesOf(const Stage &stage, const GroupT &group) {
    bool crosses = std::find(group.axes.begin(), group.axes.end(), Axis::pp) !=
                   group.axes.end();
    std::vector<unsigned> stages;
    for (unsigned i = 0; i < program_.stages.size(); ++i) {
      bool in = crosses || i == stage.number();
      for (const auto &filter : group.filters)
        in &= filter->axis != Axis::pp ||
              std::find(filter->values.begin(), filter->values.end(), i) !=
                  filter->values.end();
      if (in)
        stages.push_back(i);
    }
    return stages;
  }

  /// The ranks of a group, in words that are equal on all its members.
  std::string identity(const Stage &stage, const GroupT &group) {
    std::string text = group.name + " over";
    std::vector<Axis> axes = group.axes;
    std::sort(axes.begin(), axes.end());
    for (Axis axis : axes)
      text += std::string(" ") + axisName(axis);
    text += ", stages";
    for (unsigned i : stagesOf(stage, group))
      text += " " + std::to_string(i);
    return text;
  }

  void collect(const Stage &stage) {
    const auto &actions = stage.list->actions;
    for (uint32_t number = 0; number < actions.size(); ++number) {
      const ActionT &action = *actions[number];
      if (action.kind == ActionKind::run) {
        const auto &list = stage.fragments[action.fragment].instructions;
        for (int i = 0; i < static_cast<int>(list.size()); ++i)
          if (list[i].axes)
            collective(stage, list[i], {number, i});
      } else if (action.kind != ActionKind::load) {
        const ChannelT &channel = *stage.plan->channels[action.channel];
        bool sends = action.kind == ActionKind::send;
        messages_ += sends;
        (sends ? sends_ : receives_)[key(channel)].push_back(
            {segments(stage.moved[number]), {number, -1}});
      }
    }
  }

  void collective(const Stage &stage, const PreparedInstruction &instruction,
                  Place place) {
    const InstructionT &source = *instruction.source;
    std::string what = EnumNameOpcode(source.op);
    if (source.op != Opcode::all_gather)
      what += std::string(" ") + EnumNameReduction(source.reduction);
    ++collectives_;
    const GroupT &group = *stage.plan->groups[source.group];
    groups_[identity(stage, group)][stage.number()].push_back(
        {what + " of " + segments(instruction.inputs), place});
    spans_[identity(stage, group)] = stagesOf(stage, group);
  }

  static std::string key(const ChannelT &channel) {
    return channel.name + " (" + std::to_string(channel.id) + ", stage " +
           std::to_string(channel.source_stage) + " to " +
           std::to_string(channel.target_stage) + ")";
  }

  /// Compares the sequences of two stages; `mine` and `other` may differ only
  /// when a party does something else or nothing.
  Status compare(const std::string &where, unsigned stageA,
                 const std::vector<Operation> &a, unsigned stageB,
                 const std::vector<Operation> &b, const char *partner) {
    const Stage &first = program_.stages[stageA];
    const Stage &second = program_.stages[stageB];
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      if (i >= a.size())
        return refuse(describe(second, b[i].place) + ", operation " +
                      std::to_string(i) + " of " + where +
                      ", meets nothing on stage " + std::to_string(stageA) +
                      ", where the " + partner + " is missing");
      if (i >= b.size())
        return refuse(describe(first, a[i].place) + ", operation " +
                      std::to_string(i) + " of " + where +
                      ", meets nothing on stage " + std::to_string(stageB) +
                      ", where the " + partner + " is missing");
      if (a[i].what != b[i].what)
        return refuse(describe(first, a[i].place) + " is " + a[i].what +
                      ", but the other party, " + describe(second, b[i].place) +
                      ", is " + b[i].what + ", as operation " +
                      std::to_string(i) + " of " + where);
    }
    return Status::success();
  }

  Status compareGroups() {
    for (auto &[identity, byStage] : groups_) {
      const std::vector<unsigned> &span = spans_[identity];
      for (unsigned other : span)
        RECKON_TRY(compare("group " + identity, span[0], byStage[span[0]],
                           other, byStage[other], "collective"));
    }
    return Status::success();
  }

  Status compareChannels() {
    for (const auto *side : {&sends_, &receives_})
      for (const auto &entry : *side) {
        const std::string &name = entry.first;
        unsigned source = 0, target = 0;
        for (const Stage &stage : program_.stages)
          for (const auto &channel : stage.plan->channels)
            if (key(*channel) == name) {
              source = channel->source_stage;
              target = channel->target_stage;
            }
        RECKON_TRY(compare("channel " + name, source, sends_[name], target,
                           receives_[name], "other side"));
      }
    return Status::success();
  }

  const Program &program_;
  std::map<std::string, std::map<unsigned, std::vector<Operation>>> groups_;
  std::map<std::string, std::vector<unsigned>> spans_;
  std::map<std::string, std::vector<Operation>> sends_, receives_;
  uint64_t collectives_ = 0, messages_ = 0;
};

} // namespace

Status prove::checkAgreement(const Program &program, std::string &detail) {
  return AgreementCheck(program).run(detail);
}
