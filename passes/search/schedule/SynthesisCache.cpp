//===- SynthesisCache.cpp - synthesized schedules on disk -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/SynthesisCache.h"

#include "runtime/base/Os.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>

using namespace reckon;
using namespace reckon::search;
using nlohmann::json;

/// Raised when the solver's question or what is kept of its answer changes.
constexpr int kVersion = 1;
constexpr size_t kMostStarts = 200'000;

static json keyOf(const UnitQuery &query, uint64_t budget) {
  json key;
  key["version"] = kVersion;
  key["p"] = query.p;
  key["m"] = query.m;
  key["lengths"] = query.lengths;
  key["transfer"] = query.transfer;
  key["slots"] = query.slots;
  key["goal"] = query.goal == SynthesisGoal::Makespan ? "makespan" : "span";
  key["budget"] = budget;
  return key;
}

/// The file's name is the FNV-1a digest of the key; the key itself is inside.
static std::string pathOf(const json &key, const std::string &folder) {
  uint64_t digest = 0xcbf29ce484222325u;
  for (char c : key.dump())
    digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char name[32];
  std::snprintf(name, sizeof name, "/%016llx.json",
                static_cast<unsigned long long>(digest));
  return folder + name;
}

std::string search::scheduleCacheFolder() {
  if (const char *folder = std::getenv("RECKON_SCHEDULE_CACHE"))
    return std::string_view(folder) == "off" ? "" : folder;
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache)
    return std::string(cache) + "/reckon/schedules";
  const char *home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/reckon/schedules" : "";
}

std::optional<KeptSchedule> search::loadSchedule(const UnitQuery &query,
                                                 uint64_t budget,
                                                 const std::string &folder) {
  json key = keyOf(query, budget);
  std::string path = pathOf(key, folder);
  if (!systemFiles().exists(path))
    return std::nullopt;
  Result<std::string> text = systemFiles().read(path);
  if (!text.ok())
    return std::nullopt;
  json file = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  try {
    if (!file.is_object() || file.at("query") != key)
      return std::nullopt;
    KeptSchedule kept;
    kept.table = {query.p, query.m, {}, {}};
    file.at("starts").get_to(kept.table.starts);
    kept.table.whole.assign(query.p * query.m, 0);
    file.at("bound").get_to(kept.bound);
    file.at("method").get_to(kept.method);
    file.at("instance").get_to(kept.instance);
    file.at("steps").get_to(kept.steps);
    file.at("checks").get_to(kept.checks);
    if (std::ssize(kept.table.starts) != 3 * query.p * query.m ||
        !checkUnits(query, kept.table).ok() ||
        goalOf(query, kept.table) < kept.bound ||
        kept.bound < simpleBound(query))
      return std::nullopt;
    return kept;
  } catch (const json::exception &) { // of another shape
    return std::nullopt;
  }
}

void search::storeSchedule(const UnitQuery &query, uint64_t budget,
                           const KeptSchedule &kept,
                           const std::string &folder) {
  if (kept.table.starts.size() > kMostStarts)
    return;
  json key = keyOf(query, budget);
  json file;
  file["query"] = key;
  file["starts"] = kept.table.starts;
  file["bound"] = kept.bound;
  file["method"] = kept.method;
  file["instance"] = kept.instance;
  file["steps"] = kept.steps;
  file["checks"] = kept.checks;
  if (systemFiles().createDirectories(folder).ok())
    (void)systemFiles().write(pathOf(key, folder), file.dump() + "\n").ok();
}
