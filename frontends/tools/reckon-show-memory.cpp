//===- reckon-show-memory.cpp - where the bytes of a rank go --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/reckon-show-views.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::show;

namespace {

constexpr std::array<const char *, 7> categories = {
    "parameters", "gradients",     "optimizer", "activations",
    "logits",     "communication", "workspace"};

/// The category that a state's bytes count for.
const char *categoryOf(Role role) {
  switch (role) {
  case Role::parameter:
    return "parameters";
  case Role::gradient:
    return "gradients";
  case Role::main_weight:
  case Role::momentum:
  case Role::variance:
    return "optimizer";
  case Role::buffer:
  case Role::scalars:
  case Role::metrics:
    return "workspace";
  }
  return "workspace";
}

/// Something that occupies bytes of the arena.
struct Entry {
  std::string kind, name, category;
  uint64_t offset = 0;
  uint64_t bytes = 0; ///< with what alignment leaves empty behind it
  uint64_t count = 1;
};

/// Everything in the arena, in the order of offsets. An entry reaches to the
/// next one, so that all bytes are counted.
std::vector<Entry> entries(const StagePlanT &stage) {
  std::vector<Entry> list;
  for (const auto &state : stage.states)
    list.push_back({"state", state->name, categoryOf(state->role),
                    state->offset, state->bytes});
  for (const auto &slot : stage.slot_classes)
    list.push_back({"slots", slot->name, slot->category, slot->offset,
                    slot->bytes * slot->count, slot->count});
  for (const auto &lane : stage.lanes) {
    list.push_back({"lane", lane->name, "workspace", lane->offset,
                    lane->bytes - lane->logits_bytes});
    if (lane->logits_bytes)
      list.push_back({"lane", lane->name + " (logits)", "logits",
                      lane->offset + lane->bytes - lane->logits_bytes,
                      lane->logits_bytes});
  }
  std::stable_sort(
      list.begin(), list.end(),
      [](const Entry &a, const Entry &b) { return a.offset < b.offset; });
  for (size_t i = 0; i < list.size(); ++i) {
    uint64_t end = i + 1 < list.size() ? list[i + 1].offset : stage.arena_bytes;
    list[i].bytes = end - list[i].offset;
  }
  return list;
}

std::map<std::string, uint64_t> byCategory(const std::vector<Entry> &list) {
  std::map<std::string, uint64_t> sums;
  for (const char *category : categories)
    sums[category] = 0;
  for (const Entry &entry : list)
    sums[entry.category] += entry.bytes;
  return sums;
}

std::string bar(uint64_t bytes, uint64_t whole) {
  constexpr uint64_t width = 40;
  uint64_t filled = whole ? (bytes * width + whole / 2) / whole : 0;
  return std::string(filled, '#');
}

std::string text(const LoadedPlan &plan) {
  std::string out;
  for (const auto &stage : plan.stages) {
    std::vector<Entry> list = entries(*stage);
    auto sums = byCategory(list);
    out += "stage " + std::to_string(stage->stage) + ": arena of " +
           std::to_string(stage->arena_bytes) + " bytes (" +
           humanBytes(stage->arena_bytes) + ") on each of its ranks\n";
    for (const char *category : categories)
      out += "  " + padRight(category, 14) +
             padLeft(std::to_string(sums[category]), 14) + "  " +
             padLeft(humanBytes(sums[category]), 11) + "  " +
             bar(sums[category], stage->arena_bytes) + "\n";
    out += "\n  slots and lanes\n";
    for (const Entry &entry : list) {
      if (entry.kind == "state")
        continue;
      out += "    " + padRight(entry.name, 20) +
             padLeft(std::to_string(entry.count), 4) + " x " +
             padLeft(humanBytes(entry.bytes / entry.count), 11) + " = " +
             padLeft(humanBytes(entry.bytes), 11) + "  at " +
             std::to_string(entry.offset) + "  (" + entry.category + ")\n";
    }
    out += "\n";
  }
  return out;
}

} // namespace

std::string reckon::show::memory(const LoadedPlan &plan, Format format) {
  if (format == Format::Text)
    return text(plan);
  if (format == Format::Csv) {
    std::string out = "stage,kind,name,category,offset,bytes,count\n";
    for (const auto &stage : plan.stages)
      for (const Entry &entry : entries(*stage))
        out += std::to_string(stage->stage) + "," + entry.kind + "," +
               entry.name + "," + entry.category + "," +
               std::to_string(entry.offset) + "," +
               std::to_string(entry.bytes) + "," + std::to_string(entry.count) +
               "\n";
    return out;
  }
  nlohmann::json json;
  for (const auto &stage : plan.stages) {
    std::vector<Entry> list = entries(*stage);
    nlohmann::json item;
    item["stage"] = stage->stage;
    item["arena_bytes"] = stage->arena_bytes;
    for (const auto &[category, bytes] : byCategory(list))
      item[category] = bytes;
    for (const Entry &entry : list)
      item["entries"].push_back({{"kind", entry.kind},
                                 {"name", entry.name},
                                 {"category", entry.category},
                                 {"offset", entry.offset},
                                 {"bytes", entry.bytes},
                                 {"count", entry.count}});
    json["stages"].push_back(std::move(item));
  }
  return json.dump(2) + "\n";
}
