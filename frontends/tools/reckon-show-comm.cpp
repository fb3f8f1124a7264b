//===- reckon-show-comm.cpp - what a plan communicates --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/reckon-show-views.h"

#include <nlohmann/json.hpp>

#include <map>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::show;

namespace {

/// Equal collectives or messages of a stage, in a step.
struct Traffic {
  std::string what;    ///< "all_reduce sum"
  std::string through; ///< group or channel
  std::string where;   ///< fragment, or "step" for messages
  size_t ranks = 0;
  uint64_t bytes = 0; ///< of one, the larger of input and output
  uint64_t count = 0; ///< a step
};

uint64_t bytesOf(const std::vector<std::unique_ptr<BufferT>> &list) {
  uint64_t sum = 0;
  for (const auto &buffer : list)
    sum += static_cast<uint64_t>(elementCount(buffer->shape) *
                                 dtypeSize(buffer->dtype));
  return sum;
}

std::vector<Traffic> traffic(const StagePlanT &stage) {
  std::vector<Traffic> result;
  auto add = [&](Traffic item) {
    for (Traffic &known : result)
      if (known.what == item.what && known.through == item.through &&
          known.where == item.where && known.bytes == item.bytes) {
        known.count += item.count;
        return;
      }
    result.push_back(std::move(item));
  };
  Coord coord;
  coord.pp = stage.stage;
  for (const auto &list : stage.lists) {
    if (list->name != "step")
      continue;
    std::map<uint32_t, uint64_t> runs;
    for (const auto &action : list->actions) {
      if (action->kind == ActionKind::run)
        ++runs[action->fragment];
      if (action->kind == ActionKind::send || action->kind == ActionKind::recv)
        add({EnumNameActionKind(action->kind),
             stage.channels[action->channel]->name, list->name, 2,
             bytesOf(action->buffers), 1});
    }
    for (const auto &[number, count] : runs) {
      const FragmentT &fragment = *stage.fragments[number];
      for (const auto &op : fragment.instructions) {
        if (op->op != Opcode::all_reduce && op->op != Opcode::all_gather &&
            op->op != Opcode::reduce_scatter)
          continue;
        std::string what = EnumNameOpcode(op->op);
        if (op->op != Opcode::all_gather)
          what += std::string(" ") + EnumNameReduction(op->reduction);
        const GroupT &group = *stage.groups[op->group];
        add({what, group.name, fragment.name,
             groupRanks(group, *stage.mesh, coord).size(),
             std::max(bytesOf(op->inputs), bytesOf(op->outputs)), count});
      }
    }
  }
  return result;
}

} // namespace

std::string reckon::show::communication(const LoadedPlan &plan, Format format) {
  std::string text, csv = "stage,what,through,where,ranks,bytes,count\n";
  nlohmann::json json;
  for (const auto &stage : plan.stages) {
    nlohmann::json list = nlohmann::json::array();
    text += "stage " + std::to_string(stage->stage) + ", a step of one rank\n";
    uint64_t total = 0;
    for (const Traffic &item : traffic(*stage)) {
      total += item.bytes * item.count;
      text += "  " + padRight(item.what, 20) + padRight(item.through, 16) +
              padRight(item.where, 16) +
              padLeft(std::to_string(item.ranks), 6) + " ranks " +
              padLeft(std::to_string(item.count), 6) + " x " +
              padLeft(humanBytes(item.bytes), 11) + "\n";
      csv += std::to_string(stage->stage) + "," + item.what + "," +
             item.through + "," + item.where + "," +
             std::to_string(item.ranks) + "," + std::to_string(item.bytes) +
             "," + std::to_string(item.count) + "\n";
      list.push_back({{"what", item.what},
                      {"through", item.through},
                      {"where", item.where},
                      {"ranks", item.ranks},
                      {"bytes", item.bytes},
                      {"count", item.count}});
    }
    text += "  in all " + humanBytes(total) + "\n\n";
    json["stages"].push_back(
        {{"stage", stage->stage}, {"bytes", total}, {"traffic", list}});
  }
  if (format == Format::Csv)
    return csv;
  return format == Format::Json ? json.dump(2) + "\n" : text;
}
