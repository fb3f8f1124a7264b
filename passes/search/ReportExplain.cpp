//===- ReportExplain.cpp - neighbours and why-not for people --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/ParallelKeys.h"
#include "passes/search/Report.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

using namespace reckon;
using namespace reckon::search;
using Json = nlohmann::ordered_json;

namespace {

constexpr double kGib = 1073741824.0;

[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  std::string text(std::vsnprintf(nullptr, 0, pattern, arguments), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(arguments);
  va_end(again);
  return text;
}

std::string shortKey(Limit limit) {
  std::string key = limitKey(limit);
  return key.substr(key.rfind('.') + 1);
}

struct Item {
  const char *name;
  double ours, theirs;
};

std::vector<Item> timeItems(const Candidate &a, const Candidate &b) {
  return {{"compute", a.time.compute, b.time.compute},
          {"bubble", a.time.bubble, b.time.bubble},
          {"exposed_communication", a.time.exposedCommunication,
           b.time.exposedCommunication},
          {"optimizer", a.time.optimizer, b.time.optimizer},
          {"other", a.time.other, b.time.other}};
}

std::vector<Item> memoryItems(const Candidate &a, const Candidate &b) {
  const model::StageMemory &x = a.stages[a.peakStage],
                           &y = b.stages[b.peakStage];
  auto item = [&](const char *name, uint64_t model::StageMemory::*part) {
    return Item{name, static_cast<double>(x.*part),
                static_cast<double>(y.*part)};
  };
  using M = model::StageMemory;
  return {item("parameters", &M::parameters),
          item("gradients", &M::gradients),
          item("optimizer", &M::optimizer),
          item("activations", &M::activations),
          item("logits", &M::logits),
          item("communication", &M::communication),
          item("workspace", &M::workspace)};
}

std::string question(const WhyNot &why) {
  std::string text;
  for (const Setting &setting : why.settings)
    text += (text.empty() ? "" : ", ") + setting.key + "=" + setting.value;
  return text;
}

} // namespace

std::string search::neighboursText(const std::vector<Neighbour> &all) {
  std::string text = "\nOne step away from the choice (evenly laid out)\n";
  for (const Neighbour &n : all) {
    std::string what = shortKey(n.key) + " " + n.from + " -> " + n.to;
    if (!n.impossible.empty()) {
      text += format("  %-44s impossible: %s\n", what.c_str(),
                     n.impossible.c_str());
      continue;
    }
    std::string rest;
    for (const std::string &limit : n.breaks)
      rest += (rest.empty() ? "  breaks " : ", ") + limit;
    if (n.excluded)
      rest += rest.empty() ? "  not among what the spec leaves open"
                           : "; not among what the spec leaves open";
    text += format("  %-44s %+11.2f ms %+9.2f GiB%s\n", what.c_str(),
                   1e3 * n.moreSeconds, static_cast<double>(n.morePeak) / kGib,
                   rest.c_str());
  }
  return text;
}

Json search::neighboursJson(const std::vector<Neighbour> &all) {
  Json list = Json::array();
  for (const Neighbour &n : all) {
    Json json = {{"key", limitKey(n.key)}, {"from", n.from}, {"to", n.to}};
    if (!n.impossible.empty()) {
      json["impossible"] = n.impossible;
    } else {
      json["step_s"] = n.stepSeconds;
      json["more_s"] = n.moreSeconds;
      json["peak_arena_bytes"] = n.peakArena;
      json["more_bytes"] = n.morePeak;
      json["breaks"] = n.breaks;
      json["excluded_by_spec"] = n.excluded;
      json["parallelism"] = choiceJson(n.choice);
    }
    list.push_back(json);
  }
  return list;
}

std::string search::whyNotText(const WhyNot &why, const SearchResult &result,
                               const Spec &changed) {
  std::string text = "\nWhy not " + question(why) + "\n";
  if (!why.problem.empty())
    return text + "  it contradicts the spec:\n" + why.problem + "\n";
  if (why.infeasible) {
    SearchResult failed;
    failed.infeasible = why.infeasible;
    std::string said = infeasibleText({changed, failed});
    // Its first line counts combinations; the limits are what was asked for.
    std::string limits;
    for (const std::string &limit : why.infeasible->conflict)
      limits += (limits.empty() ? "" : " and ") + limit;
    return text + "  nothing with it fits: " + limits + "\n" +
           said.substr(said.find('\n') + 1);
  }
  const Candidate &other = *why.other;
  text += "  the best with it: " + choiceLine(other.choice) + "\n";
  if (result.candidates.empty())
    return text;
  const Candidate &best = result.candidates.front();
  if (other.choice == best.choice)
    return text + "  that is the choice\n";
  double more = other.time.step - best.time.step;
  text += format("  %.2f ms a step, %+.2f ms (%+.1f %%); peak %.2f GiB, "
                 "%+.2f GiB\n",
                 1e3 * other.time.step, 1e3 * more, 100 * more / best.time.step,
                 static_cast<double>(other.peakBytes()) / kGib,
                 (static_cast<double>(other.peakBytes()) -
                  static_cast<double>(best.peakBytes())) /
                     kGib);
  for (const Item &item : timeItems(best, other))
    if (std::fabs(item.theirs - item.ours) >= 5e-6)
      text += format("    %-24s %11.2f ms -> %11.2f ms  %+11.2f ms\n",
                     item.name, 1e3 * item.ours, 1e3 * item.theirs,
                     1e3 * (item.theirs - item.ours));
  for (const Item &item : memoryItems(best, other))
    if (item.theirs != item.ours)
      text += format("    %-24s %11.3f GiB -> %10.3f GiB  %+10.3f GiB\n",
                     item.name, item.ours / kGib, item.theirs / kGib,
                     (item.theirs - item.ours) / kGib);
  return text;
}

Json search::whyNotJson(const WhyNot &why, const SearchResult &result) {
  Json settings = Json::object();
  for (const Setting &setting : why.settings)
    settings[setting.key] = setting.value;
  Json json = {{"settings", settings}};
  if (!why.problem.empty())
    json["problem"] = why.problem;
  if (why.infeasible) {
    json["conflict"] = why.infeasible->conflict;
    json["shortfall_bytes"] = why.infeasible->shortfallBytes;
  }
  if (!why.other)
    return json;
  const Candidate &other = *why.other;
  json["parallelism"] = choiceJson(other.choice);
  json["step_s"] = other.time.step;
  json["peak_bytes"] = other.peakBytes();
  if (result.candidates.empty())
    return json;
  const Candidate &best = result.candidates.front();
  json["more_s"] = other.time.step - best.time.step;
  for (const Item &item : timeItems(best, other))
    json["time"][item.name] = item.theirs - item.ours;
  for (const Item &item : memoryItems(best, other))
    json["memory"][item.name] =
        static_cast<int64_t>(item.theirs) - static_cast<int64_t>(item.ours);
  return json;
}
