//===- MemoryProfile.cpp - how a framework uses memory --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/MemoryProfile.h"

#include "frontends/spec/Scalars.h"
#include "runtime/base/Csv.h"
#include "runtime/base/Status.h"

#include <array>
#include <map>

using namespace reckon;
using namespace reckon::model;

namespace {

constexpr const char kTable[] =
#include "passes/model/account/MemoryProfileData.inc"
    ;

struct Key {
  const char *name;
  double MemoryProfile::*member;
};
#define RECKON_KEY(member)                                                     \
  { #member, &MemoryProfile::member }
constexpr Key kKeys[] = {RECKON_KEY(weight),
                         RECKON_KEY(gradient),
                         RECKON_KEY(gradientShard),
                         RECKON_KEY(optimizer),
                         RECKON_KEY(unitGradient),
                         RECKON_KEY(unitGradientShard),
                         RECKON_KEY(shardedWeight),
                         RECKON_KEY(shardedGradient),
                         RECKON_KEY(shardedOptimizer),
                         RECKON_KEY(gatheredUnits),
                         RECKON_KEY(unreducedUnits),
                         RECKON_KEY(unreducedBytes),
                         RECKON_KEY(pipelineKeepsUnits),
                         RECKON_KEY(norms),
                         RECKON_KEY(gatheredNorms),
                         RECKON_KEY(dropout),
                         RECKON_KEY(scores),
                         RECKON_KEY(gatedMlp),
                         RECKON_KEY(plainMlp),
                         RECKON_KEY(selectiveKeep),
                         RECKON_KEY(liveLayers),
                         RECKON_KEY(pipelineBuffers),
                         RECKON_KEY(logits),
                         RECKON_KEY(fp8Inputs),
                         RECKON_KEY(fp8Weights),
                         RECKON_KEY(wholeLogits),
                         RECKON_KEY(moeImbalance),
                         RECKON_KEY(gatheredCopies),
                         RECKON_KEY(bucketBytes),
                         RECKON_KEY(fixedGib),
                         RECKON_KEY(allocator),
                         RECKON_KEY(stateAllocator),
                         RECKON_KEY(layout),
                         RECKON_KEY(vocabularyMultiple)};
#undef RECKON_KEY
const std::string kFile = "memory_profiles.csv";

constexpr std::array<std::string_view, 6> kColumns = {
    "profile", "key", "value", "tag", "date", "source"};

struct Entry {
  std::string base;
  std::vector<std::pair<const Key *, double>> values;
};
using Table = std::map<std::string, Entry, std::less<>>;

Error tableError(size_t line, const std::string &what) {
  return csvError(kFile, line, what);
}

Result<Table> parse(std::string_view csv) {
  Result<std::vector<CsvRow>> rows = readCsv(csv, kFile, kColumns);
  if (!rows)
    return rows.error();
  Table table;
  for (const auto &[number, cells] : *rows) {
    Entry &entry = table[cells[0]];
    if (cells[1] == "base") {
      entry.base = cells[2];
      continue;
    }
    const Key *key = nullptr;
    for (const Key &known : kKeys)
      if (known.name == cells[1])
        key = &known;
    auto value = parseReal(cells[2]);
    if (!key || !value)
      return tableError(number, "expected a known key and a number, got " +
                                    cells[1] + " and " + cells[2]);
    entry.values.emplace_back(key, *value);
  }
  return table;
}

void apply(const Table &table, std::string_view name, MemoryProfile &profile) {
  auto found = table.find(name);
  if (found == table.end())
    return;
  if (!found->second.base.empty())
    apply(table, found->second.base, profile);
  for (const auto &[key, value] : found->second.values)
    profile.*(key->member) = value;
}

} // namespace

std::string_view model::memoryProfileTable() { return kTable; }

Result<MemoryProfile> model::memoryProfile(std::string_view name,
                                           Representation representation,
                                           std::string_view csv) {
  Result<Table> table = parse(csv);
  if (!table)
    return table.error();
  // Names are in order, so the last one that fits is the longest. The profile
  // `reckon`, the default, is no other framework's software.
  std::string best = toString(representation);
  if (!name.empty() && name != toString(Representation::Reckon) &&
      representation != Representation::Reckon)
    for (const auto &[entry, values] : *table)
      if (name.substr(0, entry.size()) == entry)
        best = entry;
  MemoryProfile profile;
  apply(*table, "global", profile);
  apply(*table, best, profile);
  profile.name = best;
  return profile;
}

MemoryProfile model::memoryProfile(std::string_view name,
                                   Representation representation) {
  Result<MemoryProfile> profile = memoryProfile(name, representation, kTable);
  RECKON_CHECK(profile.ok());
  return *profile;
}
