//===- reckon-show-program.cpp - fragments and lists as a listing ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/reckon-show-views.h"
#include "passes/listing/CudaListing.h"

#include <nlohmann/json.hpp>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::show;

namespace {

/// Prints one stage; with a coordinate, expressions become numbers.
class Listing {
public:
  Listing(const StagePlanT &plan, std::optional<Coord> coord)
      : plan(plan), coord(coord) {}

  std::string expr(const std::unique_ptr<ExprT> &value) const {
    return listing::exprText(value, coord);
  }

  /// Shape and place: `128x64xf32 stash+1024`.
  std::string buffer(const BufferT &buffer, const FragmentT *fragment) const {
    std::string text;
    for (int64_t dim : buffer.shape)
      text += std::to_string(dim) + "x";
    text += EnumNameDType(buffer.dtype);
    return text + " " + listing::placeText(plan, buffer, fragment, coord);
  }

  std::string instruction(const InstructionT &op,
                          const FragmentT &fragment) const {
    std::string text = padRight(plan.streams[op.stream]->name, 9);
    switch (op.op) {
    case Opcode::record:
    case Opcode::wait:
      return text + EnumNameOpcode(op.op) + " event " +
             std::to_string(op.event);
    case Opcode::launch:
      text += EnumNameKernel(op.kernel);
      break;
    case Opcode::copy:
      text += "copy";
      break;
    default:
      text += std::string(EnumNameOpcode(op.op));
      if (op.op != Opcode::all_gather)
        text += std::string(" ") + EnumNameReduction(op.reduction);
      text += " over " + plan.groups[op.group]->name;
    }
    text += operands(" (", op.inputs, fragment) +
            operands(" -> (", op.outputs, fragment);
    for (size_t i = 0; i < op.args.size(); ++i)
      text += (i ? ", " : " [") + expr(op.args[i]);
    text += op.args.empty() ? "" : "]";
    for (size_t i = 0; i < op.floats.size(); ++i)
      text += (i ? ", " : " {") + listing::numberText(op.floats[i]);
    text += op.floats.empty() ? "" : "}";
    if (!op.layer.empty())
      text += "  ; " + op.layer;
    if (!op.source.empty())
      text += (op.layer.empty() ? "  ; " : " ") + op.source;
    return text;
  }

  std::string action(const ActionT &op) const {
    std::string text = padRight(plan.streams[op.stream]->name, 14) +
                       EnumNameActionKind(op.kind) + " " +
                       padRight(op.label, 10);
    if (op.kind == ActionKind::run)
      text += " " + plan.fragments[op.fragment]->name;
    if (op.kind == ActionKind::send || op.kind == ActionKind::recv)
      text += " " + plan.channels[op.channel]->name;
    for (const auto &binding : op.bindings) {
      text += " " + plan.slot_classes[binding->slot_class]->name + "[" +
              std::to_string(binding->index) + "]";
      text += binding->acquire ? "+" : "";
      text += binding->release ? "-" : "";
    }
    text += events(" waits", op.waits) + events(" records", op.records);
    return text;
  }

private:
  std::string operands(const std::string &open,
                       const std::vector<std::unique_ptr<BufferT>> &list,
                       const FragmentT &fragment) const {
    if (list.empty())
      return "";
    std::string text = open;
    for (size_t i = 0; i < list.size(); ++i)
      text += (i ? ", " : "") + buffer(*list[i], &fragment);
    return text + ")";
  }

  static std::string events(const char *what,
                            const std::vector<uint32_t> &list) {
    std::string text;
    for (uint32_t event : list)
      text += (text.empty() ? std::string(what) + " " : ",") +
              std::to_string(event);
    return text;
  }

  const StagePlanT &plan;
  std::optional<Coord> coord;
};

std::string states(const StagePlanT &plan, const Listing &listing) {
  std::string text = "states (this rank's elements start : size)\n";
  for (const auto &state : plan.states) {
    text += "  @" + padLeft(std::to_string(state->offset), 12) + " " +
            padRight(EnumNameRole(state->role), 12) + " " + state->name + " " +
            EnumNameDType(state->dtype) + " [";
    for (size_t i = 0; i < state->box.size(); ++i)
      text += (i ? ", " : "") + listing.expr(state->box[i]->start) + " : " +
              listing.expr(state->box[i]->size);
    text += "]";
    if (!state->flat_axes.empty())
      text += " flat, " + std::to_string(state->flat_elements) + " a rank";
    text += ", " + std::to_string(state->bytes) + " bytes\n";
  }
  return text;
}

} // namespace

std::string reckon::show::program(const LoadedPlan &plan, Format format,
                                  std::optional<Coord> coord) {
  if (format == Format::Cu) {
    std::vector<const StagePlanT *> stages;
    for (const auto &stage : plan.stages)
      stages.push_back(stage.get());
    return listing::cudaListing(plan.manifest, stages);
  }
  nlohmann::json json;
  std::string text;
  for (const auto &stage : plan.stages) {
    Listing listing(*stage, coord);
    nlohmann::json item;
    item["stage"] = stage->stage;
    text += "stage " + std::to_string(stage->stage);
    if (coord)
      text += ", " + describeRank(*stage->mesh, rankOf(*stage->mesh, *coord));
    text += "\n\n" + states(*stage, listing);
    for (const auto &fragment : stage->fragments) {
      text += "\nfragment " + fragment->name + "\n";
      size_t number = 0;
      nlohmann::json lines = nlohmann::json::array();
      for (const auto &op : fragment->instructions) {
        std::string line = listing.instruction(*op, *fragment);
        text += padLeft(std::to_string(number++), 6) + "  " + line + "\n";
        lines.push_back(line);
      }
      item["fragments"].push_back(
          {{"name", fragment->name}, {"instructions", std::move(lines)}});
    }
    for (const auto &list : stage->lists) {
      text += "\nlist " + list->name + "  (+ acquires, - releases a slot)\n";
      size_t number = 0;
      nlohmann::json lines = nlohmann::json::array();
      for (const auto &action : list->actions) {
        std::string line = listing.action(*action);
        text += padLeft(std::to_string(number++), 6) + "  " + line + "\n";
        lines.push_back(line);
      }
      item["lists"].push_back(
          {{"name", list->name}, {"actions", std::move(lines)}});
    }
    text += "\n";
    json["stages"].push_back(std::move(item));
  }
  return format == Format::Json ? json.dump(2) + "\n" : text;
}
