//===- CheckKeys.cpp - every key is known ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Reader.h"
#include "frontends/spec/Suggest.h"

namespace reckon {
namespace {

/// Keys of a map that are values, not keys of the table.
bool isOpenMap(std::string_view path) {
  return path == "parallelism.recompute"; // {layers: n}
}

void unknownKey(const Entry &entry, std::string_view section,
                std::vector<Diagnostic> &errors,
                std::set<std::string> &excused) {
  std::string where =
      section.empty() ? "at the top" : "under " + std::string(section);
  std::string near = nearestKey(section, entry.key);
  std::string remedy;
  if (entry.key == "<<") {
    remedy = "merge keys are not read; give several files instead, which merge "
             "from left to right";
  } else if (!near.empty()) {
    excused.insert(near);
    const KeyRow *row = findKey(near);
    bool sibling = row->parent() == section;
    remedy = "did you mean " +
             (sibling ? std::string(row->name()) : std::string(near)) + "?";
  } else {
    std::vector<std::string> names;
    for (const KeyRow *row : keysBelow(section))
      names.emplace_back(row->name());
    remedy = "the keys here are " + listWords(names);
  }
  errors.push_back(
      errorAt(entry.loc, "expected a known key " + where + ", got " +
                             quoteForMessage(entry.key) + "; " + remedy));
}

void walk(const Node &map, const std::string &section,
          std::vector<Diagnostic> &errors, std::set<std::string> &excused) {
  for (const Entry &entry : map.entries) {
    std::string path = section.empty() ? entry.key : section + "." + entry.key;
    const KeyRow *row = findKey(path);
    // A key with a dot in it is no path.
    if (!row || entry.key.find('.') != std::string::npos) {
      unknownKey(entry, section, errors, excused);
      continue;
    }
    if (entry.value.isMap() && !isOpenMap(path) && !keysBelow(path).empty())
      walk(entry.value, path, errors, excused);
    // `rope_scaling: none` is how one writes that there is none; but training
    // without an optimizer is a mistake.
    bool neutral = isNeutral(entry.value) && !row->parent().empty() &&
                   path != "training.optimizer";
    if (row->kind == KeyKind::Section && !entry.value.isMap() &&
        !entry.value.isNull() && !neutral) {
      excused.insert(path);
      errors.push_back(errorAt(entry.value.loc,
                               "expected a map of keys for " + path + ", got " +
                                   entry.value.describe() +
                                   "; write its keys on lines of their own, "
                                   "indented under " +
                                   path));
    }
  }
}

} // namespace

void checkKeys(const Node &root, std::vector<Diagnostic> &errors,
               std::set<std::string> &excused) {
  if (root.isNull())
    return;
  if (!root.isMap()) {
    errors.push_back(errorAt(
        root.loc, "expected a map with the sections model, cluster and "
                  "training, got " +
                      root.describe() + "; begin with `model:` and its keys"));
    return;
  }
  walk(root, "", errors, excused);
}

} // namespace reckon
