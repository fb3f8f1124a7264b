//===- ReportExplain.cpp - what fits instead, and what it costs -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/ParallelKeys.h"
#include "passes/search/Report.h"
#include "passes/search/ReportFormat.h"
#include "passes/search/ReportParts.h"

#include <cmath>

using namespace reckon;
using namespace reckon::search;
using namespace reckon::search::text;
using Json = nlohmann::ordered_json;

namespace {

constexpr double kGib = 1073741824.0;

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

std::string search::infeasibleText(const ReportInput &input) {
  const Infeasible &why = *input.result.infeasible;
  std::string limits;
  for (const std::string &limit : why.conflict)
    limits += (limits.empty() ? "" : " and ") + limit;
  std::string text =
      "reckon: error: nothing fits: " + limits +
      (why.conflict.size() > 1 ? " together reject" : " rejects") + " all " +
      grouped(input.result.space) + " combinations\n";
  for (const std::string &reason : why.reasons)
    text += "  " + reason + "\n";
  if (why.closest) {
    const Candidate &closest = *why.closest;
    text += "  closest: " + choiceLine(closest.choice) + "\n";
    if (why.shortfallBytes)
      text += "  stage " + std::to_string(closest.peakStage) + " needs " +
              gib(closest.peakArena()) + ", " + gib(why.shortfallBytes) +
              " more than the limit of " +
              gib(input.spec.constraints.memoryLimitBytes()) + "\n";
    if (closest.bubbleFraction > *input.spec.constraints.maxBubble)
      text += format("  its bubble is %.4f, max_bubble %.4g\n",
                     closest.bubbleFraction, *input.spec.constraints.maxBubble);
  }
  for (Limit limit : why.limits)
    if (limit == Limit::HostMemory && why.closest)
      text += "  a node stages " + gib(why.closest->hostBytes) +
              " of checkpoint in host memory\n";
  for (Limit limit : why.limits)
    if (limit != Limit::Divisibility)
      text += "  " + limitLoc(input.spec, limit).str() + ": " +
              limitKey(limit) +
              (limitGiven(input.spec, limit) ? "" : ", a default") + "\n";
  if (why.checked && why.limits.size() > 1)
    text += "  without any one of them something would fit\n";
  if (why.nearest.empty())
    text += "  no change that was tried makes it fit\n";
  for (const NearestChange &change : why.nearest) {
    std::string settings;
    for (const Setting &setting : change.settings)
      settings += (settings.empty() ? "" : " and ") + setting.key + ": " +
                  setting.value;
    text +=
        format("  fits with %s (%s; %s a step, peak %s)\n", settings.c_str(),
               choiceLine(change.candidate.choice).c_str(),
               seconds(change.candidate.time.step).c_str(),
               gib(change.candidate.peakBytes()).c_str());
  }
  return text;
}

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
                               const Spec &spec, const Spec &changed) {
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
  ObjectiveValue here = objectiveValue(spec, best),
                 there = objectiveValue(changed, other);
  text += format("  objective %s: %s, %s with the choice\n", here.name,
                 objectiveText(there).c_str(), objectiveText(here).c_str());
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
