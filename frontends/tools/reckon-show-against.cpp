//===- reckon-show-against.cpp - what differs between two plans -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Both sides become one tree of facts: a plan directory by its JSON views and
// its spec, a report of `reckon plan --format json` as it is. Then the leaves
// that differ are listed. Nothing is known here about single facts, so that
// none is forgotten.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/reckon-show-against.h"

#include "runtime/base/Os.h"
#include "runtime/plan/PlanIO.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <set>
#include <vector>

using namespace reckon;
using namespace reckon::show;

namespace {

using Json = nlohmann::ordered_json;

/// Leaves by path, in order of appearance.
struct Facts {
  bool isPlan = false;
  std::vector<std::string> order;
  std::map<std::string, Json> leaves;

  void add(const std::string &path, const Json &value) {
    if (leaves.emplace(path, value).second)
      order.push_back(path);
  }
};

/// What tells the elements of a list apart, so that an inserted one does not
/// make all that follow differ.
std::string elementName(const Json &element, size_t index) {
  if (!element.is_object())
    return std::to_string(index);
  std::string name;
  for (const char *key : {"stage", "item", "dimension", "collective", "name",
                          "where", "what", "through"})
    if (auto entry = element.find(key);
        entry != element.end() && entry->is_primitive())
      name += (name.empty() ? "" : " ") +
              (entry->is_string() ? entry->get<std::string>() : entry->dump());
  return name.empty() ? std::to_string(index) : name;
}

bool flatList(const Json &list) {
  for (const Json &element : list)
    if (!element.is_primitive())
      return false;
  return true;
}

void flatten(Facts &facts, const std::string &path, const Json &value) {
  std::string prefix = path.empty() ? "" : path + ".";
  if (value.is_object()) {
    for (const auto &[key, child] : value.items())
      flatten(facts, prefix + key, child);
  } else if (value.is_array() && !flatList(value)) {
    std::map<std::string, int> seen;
    for (size_t i = 0; i < value.size(); ++i) {
      std::string name = elementName(value[i], i);
      int again = seen[name]++;
      flatten(facts,
              path + "[" + name +
                  (again ? " #" + std::to_string(again + 1) : "") + "]",
              value[i]);
    }
  } else {
    facts.add(path, value);
  }
}

/// The canonical spec by dotted keys; its form is two spaces a level.
void flattenSpec(Facts &facts, const std::string &spec) {
  std::vector<std::pair<size_t, std::string>> parents;
  size_t start = 0;
  while (start < spec.size()) {
    size_t end = std::min(spec.find('\n', start), spec.size());
    std::string line = spec.substr(start, end - start);
    start = end + 1;
    size_t indent = line.find_first_not_of(' ');
    size_t colon = line.find(':');
    if (indent == std::string::npos || line[indent] == '#' ||
        colon == std::string::npos)
      continue;
    while (!parents.empty() && parents.back().first >= indent)
      parents.pop_back();
    std::string path = "spec";
    for (const auto &parent : parents)
      path += "." + parent.second;
    std::string key = line.substr(indent, colon - indent);
    std::string value = line.substr(colon + 1);
    value.erase(0, value.find_first_not_of(' '));
    if (value.empty())
      parents.emplace_back(indent, key);
    else
      facts.add(path + "." + key, value);
  }
}

/// Without the keys named `key`, at any depth.
void eraseKey(Json &json, const char *key) {
  if (json.is_object())
    json.erase(key);
  if (json.is_structured())
    for (Json &child : json)
      eraseKey(child, key);
}

Result<Facts> planFacts(const LoadedPlan &plan) {
  Facts facts;
  facts.isPlan = true;
  flattenSpec(facts, plan.manifest.spec);
  flatten(facts, "choice", Json::parse(plan.manifest.choice.dump()));
  Json glance = Json::parse(summary(plan, Format::Json));
  glance.erase("choice"); // already there
  flatten(facts, "summary", glance);
  // One size that differs moves every offset behind it.
  Json bytes = Json::parse(memory(plan, Format::Json));
  eraseKey(bytes, "offset");
  flatten(facts, "memory", bytes);
  flatten(facts, "comm", Json::parse(communication(plan, Format::Json)));
  return facts;
}

Result<Facts> reportFacts(const std::string &file) {
  Result<std::string> text = systemFiles().read(file);
  if (!text)
    return text.error();
  Json report = Json::parse(*text, nullptr, false);
  if (report.is_discarded() || !report.is_object() ||
      report.value("schema", "") != "reckon.plan/1")
    return makeError(ExitCode::BadSpec,
                     "expected a plan directory or the output of reckon plan "
                     "--format json (schema reckon.plan/1), got " +
                         file);
  Facts facts;
  flatten(facts, "model", report["model"]);
  flatten(facts, "cluster", report["cluster"]);
  if (!report["candidates"].empty())
    flatten(facts, "", report["candidates"][0]);
  else
    flatten(facts, "infeasible", report["infeasible"]);
  Json search = report["search"];
  if (search.is_object())
    search.erase("seconds"); // differs from run to run
  flatten(facts, "search", search);
  return facts;
}

Result<LoadedPlan> loadPlan(const std::string &directory) {
  auto manifest = plan::readPlanManifest(systemFiles(), directory);
  if (!manifest)
    return manifest.error();
  LoadedPlan loaded;
  loaded.manifest = std::move(*manifest);
  for (unsigned stage = 0; stage < loaded.manifest.stages.size(); ++stage) {
    auto file =
        plan::readPlanStage(systemFiles(), directory, loaded.manifest, stage);
    if (!file)
      return file.error();
    loaded.stages.push_back(std::move(*file));
  }
  return loaded;
}

Result<Facts> factsOf(const std::string &path) {
  if (!systemFiles().list(path))
    return reportFacts(path);
  auto plan = loadPlan(path);
  if (!plan)
    return plan.error();
  return planFacts(*plan);
}

std::string shown(const Json *value) {
  if (!value)
    return "-";
  if (value->is_string())
    return value->get<std::string>();
  if (value->is_number_float()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value->get<double>());
    return text;
  }
  return value->dump();
}

/// " (+12.5 %)" for two numbers.
std::string change(const Json *a, const Json *b) {
  if (!a || !b || !a->is_number() || !b->is_number())
    return "";
  auto from = a->get<double>(), to = b->get<double>();
  if (from == 0 || !std::isfinite(to / from))
    return "";
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (to / from - 1));
  return text;
}

struct Difference {
  std::string path;
  const Json *a, *b;
};

std::vector<Difference> differences(const Facts &a, const Facts &b,
                                    size_t &equal) {
  std::vector<Difference> list;
  auto find = [](const Facts &facts, const std::string &path) {
    auto leaf = facts.leaves.find(path);
    return leaf == facts.leaves.end() ? nullptr : &leaf->second;
  };
  for (const std::string &path : a.order) {
    const Json *left = find(a, path), *right = find(b, path);
    if (right && *left == *right)
      ++equal;
    else
      list.push_back({path, left, right});
  }
  for (const std::string &path : b.order)
    if (!find(a, path))
      list.push_back({path, nullptr, find(b, path)});
  return list;
}

/// Whether a leaf of `facts` is at or below `prefix`.
bool hasBelow(const Facts &facts, const std::string &prefix) {
  auto leaf = facts.leaves.lower_bound(prefix);
  return leaf != facts.leaves.end() &&
         leaf->first.compare(0, prefix.size(), prefix) == 0;
}

/// The outermost list element of a path that `other` lacks altogether, as
/// `memory.stages[1]`, or the path.
std::string missingElement(const std::string &path, const Facts &other) {
  for (size_t end = path.find(']'); end != std::string::npos;
       end = path.find(']', end + 1))
    if (std::string element = path.substr(0, end + 1);
        !hasBelow(other, element))
      return element;
  return path;
}

/// The list that the element is of.
std::string listOf(const std::string &path) {
  size_t end = path.rfind('[');
  return end == std::string::npos ? std::string() : path.substr(0, end);
}

struct Line {
  std::string what, a, b, change;
};

/// For people: an element that only one side has is one line, and of a long
/// list only the first differences are shown.
std::vector<Line> lines(const std::vector<Difference> &list, const Facts &a,
                        const Facts &b) {
  constexpr size_t most = 12;
  std::vector<Line> result;
  std::map<std::string, size_t> shownOf, hiddenOf;
  std::set<std::string> told;
  for (const Difference &entry : list) {
    bool oneSided = !entry.a || !entry.b;
    std::string what =
        oneSided ? missingElement(entry.path, entry.a ? b : a) : entry.path;
    if (!told.insert(what).second)
      continue;
    std::string parent = listOf(what);
    if (!parent.empty() && ++shownOf[parent] > most) {
      ++hiddenOf[parent];
      continue;
    }
    if (oneSided && what != entry.path)
      result.push_back(
          {what, entry.a ? "there" : "-", entry.b ? "there" : "-", ""});
    else
      result.push_back(
          {what, shown(entry.a), shown(entry.b), change(entry.a, entry.b)});
  }
  for (const auto &[parent, hidden] : hiddenOf)
    result.push_back({"... and " + std::to_string(hidden) + " more in " +
                          parent + " (--format json has all)",
                      "", "", ""});
  return result;
}

std::string table(const std::vector<Line> &rows, const std::string &a,
                  const std::string &b) {
  size_t path = 4, left = a.size(), right = b.size();
  constexpr size_t most = 48; // a layout of 64 stages is as long as it is
  for (const Line &row : rows) {
    if (!row.a.empty())
      path = std::max(path, row.what.size());
    left = std::max(left, std::min(most, row.a.size()));
    right = std::max(right, std::min(most, row.b.size()));
  }
  std::string text;
  if (!rows.empty())
    text = padRight("what", path) + "  " + padLeft(a, left) + "  " +
           padLeft(b, right) + "\n";
  for (const Line &row : rows) {
    text += row.what;
    if (!row.a.empty()) {
      text += std::string(path - row.what.size(), ' ') + "  " +
              padLeft(row.a, left) + "  " + padLeft(row.b, right);
      text += row.change.empty() ? "" : "  " + row.change;
    }
    text += "\n";
  }
  return text;
}

} // namespace

Result<std::string> show::against(const std::string &a, const std::string &b,
                                  bool asJson) {
  auto left = factsOf(a);
  if (!left)
    return left.error();
  auto right = factsOf(b);
  if (!right)
    return right.error();
  if (left->isPlan != right->isPlan)
    return makeError(ExitCode::BadSpec,
                     "expected two plan directories or two reports, got one of "
                     "each; compile both or plan both");
  size_t equal = 0;
  std::vector<Difference> list = differences(*left, *right, equal);
  if (!asJson)
    return table(lines(list, *left, *right), a, b) +
           std::to_string(list.size()) + " differ, " + std::to_string(equal) +
           " are equal\n";
  Json json = {{"a", a}, {"b", b}, {"equal", equal}};
  json["differences"] = Json::array();
  for (const Difference &entry : list)
    json["differences"].push_back({{"what", entry.path},
                                   {"a", entry.a ? *entry.a : Json()},
                                   {"b", entry.b ? *entry.b : Json()}});
  return json.dump(2) + "\n";
}
