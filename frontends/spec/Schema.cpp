//===- Schema.cpp ---------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Schema.h"

#include "frontends/spec/Accelerators.h"
#include "frontends/spec/Keys.h"
#include "frontends/spec/Scalars.h"
#include "frontends/spec/Suggest.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

using Json = nlohmann::ordered_json;

/// Whole numbers without a fraction, as people write them.
Json numeral(double value) {
  constexpr double kExact = 9007199254740992; // 2^53
  if (std::fabs(value) <= kExact && value == std::trunc(value))
    return static_cast<int64_t>(value);
  return value;
}

Json number(const char *type, double low, double high) {
  Json json = {{"type", type}, {"minimum", numeral(low)}};
  if (high > low)
    json["maximum"] = numeral(high);
  return json;
}

/// `none`, `auto` and null: no wish.
Json neutral() { return {{"enum", {"auto", "none", nullptr}}}; }

/// Any scalar reads as a text, also 70 without quotes.
Json text() { return {{"type", {"string", "number", "boolean"}}}; }

Json listOf(Json item) {
  return {{"type", "array"}, {"items", std::move(item)}, {"minItems", 1}};
}

/// One value, a list to choose from, or no wish.
Json choice(const Json &item) {
  return {{"anyOf", {neutral(), item, listOf(item)}}};
}

Json optional(Json json) {
  return {{"anyOf", {std::move(json), {{"type", "null"}}}}};
}

Json orNeutral(Json json) { return {{"anyOf", {neutral(), std::move(json)}}}; }

/// The plain words as an enum, the two forms with a part to fill in by shape.
Json wordsOf(const KeyRow &row) {
  Json plain = Json::array(), forms = Json::array();
  for (const std::string &word : splitWords(row.words))
    if (word == "csv:FILE")
      forms.push_back({{"type", "string"}, {"pattern", "^csv:.+"}});
    else if (word == "{layers: n}")
      forms.push_back({{"type", "object"},
                       {"properties", {{"layers", number("integer", 0, 0)}}},
                       {"required", {"layers"}},
                       {"additionalProperties", false}});
    else
      plain.push_back(word);
  Json json = {{"enum", plain}};
  if (forms.empty())
    return json;
  forms.insert(forms.begin(), json);
  return {{"anyOf", forms}};
}

Json acceleratorNames() {
  Json names = Json::array();
  for (const Accelerator &accelerator : acceleratorCatalogue())
    names.push_back(accelerator.name);
  return {{"enum", names}};
}

/// Keys that code of their own reads.
Json special(const KeyRow &row) {
  std::string_view path = row.path;
  if (path == "cluster.accelerator")
    return acceleratorNames(); // the map of figures is added as a section
  if (path == "training.optimizer.betas") {
    Json beta = {{"type", "number"}, {"minimum", 0}, {"exclusiveMaximum", 1}};
    return optional(
        {{"type", "array"}, {"items", beta}, {"minItems", 2}, {"maxItems", 2}});
  }
  if (path == "training.checkpoint.interval")
    return orNeutral(number("integer", 0, 1e12));
  if (path == "parallelism.pipeline_layout")
    return orNeutral(
        {{"anyOf",
          {{{"type", "string"}}, listOf(number("integer", 0, 65536))}}});
  if (path == "parallelism.moe_capacity_factor")
    return orNeutral(number("number", 1, 1e6));
  if (path == "constraints.memory_limit_gib" ||
      path == "constraints.host_memory_limit_gib")
    return orNeutral(number("number", 1e-6, 1e9));
  return optional({{"type", "string"}}); // paths
}

Json properties(std::string_view section);

Json section(std::string_view path) {
  return {{"type", "object"},
          {"properties", properties(path)},
          {"additionalProperties", false}};
}

Json valueOf(const KeyRow &row) {
  bool hasDefault =
      !row.fallback.empty() && !row.required() && row.fallback[0] != '(';
  switch (row.kind) {
  case KeyKind::Section:
    // `rope_scaling: none` says that there is none.
    return row.parent().empty() || row.path == "training.optimizer"
               ? optional(section(row.path))
               : orNeutral(section(row.path));
  case KeyKind::Integer:
    return optional(number("integer", row.low, row.high));
  case KeyKind::Real:
    return optional(number("number", row.low, row.high));
  case KeyKind::Switch:
    return orNeutral({{"type", "boolean"}});
  case KeyKind::Word:
    return hasDefault ? orNeutral(wordsOf(row)) : optional(wordsOf(row));
  case KeyKind::Text:
    return optional(text());
  case KeyKind::Texts:
    return optional(
        {{"anyOf", {text(), Json{{"type", "array"}, {"items", text()}}}}});
  case KeyKind::Degrees:
    return choice(number("integer", row.low, row.high));
  case KeyKind::Switches:
    return choice({{"type", "boolean"}});
  case KeyKind::Words:
    return choice(wordsOf(row));
  case KeyKind::Special: {
    Json json = special(row);
    if (!keysBelow(row.path).empty())
      return {{"anyOf", {json, section(row.path)}}};
    return json;
  }
  }
  return Json::object();
}

/// The default where it is a value, of its type.
void addDefault(const KeyRow &row, Json &json) {
  if (row.fallback.empty() || row.required() || row.fallback[0] == '(' ||
      row.fallback[0] == '<' || row.fallback[0] == '[')
    return;
  std::string fallback(row.fallback);
  if (row.kind == KeyKind::Switch)
    json["default"] = fallback == "true";
  else if (row.kind == KeyKind::Integer)
    json["default"] = *parseInteger(fallback);
  else if (row.kind == KeyKind::Real)
    json["default"] = *parseReal(fallback);
  else
    json["default"] = fallback;
}

Json properties(std::string_view parent) {
  Json out = Json::object();
  for (const KeyRow *row : keysBelow(parent)) {
    Json json;
    std::string about(row->doc);
    if (!row->applies.empty())
      about += " Only: " + listWords(splitWords(row->applies)) + ".";
    if (row->required())
      about += " Required.";
    else if (!row->fallback.empty() && row->fallback[0] == '(')
      about += " Default: " +
               std::string(row->fallback.substr(1, row->fallback.size() - 2)) +
               ".";
    if (!row->compiles.empty())
      about += " Compiled now: " + listWords(splitWords(row->compiles)) + ".";
    json["description"] = about;
    addDefault(*row, json);
    json.update(valueOf(*row));
    out[std::string(row->name())] = std::move(json);
  }
  return out;
}

} // namespace

std::string specSchema() {
  Json schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "Reckon spec"},
      {"description", "One YAML file of a spec; several merge left to right."}};
  schema.update(section(""));
  return schema.dump(2) + "\n";
}

} // namespace reckon
