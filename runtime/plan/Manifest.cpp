//===- Manifest.cpp - what a plan directory says about itself -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Manifest.h"

#include "runtime/plan/PlanIO.h"

#include <cstdio>

namespace reckon::plan {

using Json = nlohmann::json;

std::string stageFileName(unsigned stage) {
  char name[32];
  std::snprintf(name, sizeof(name), "stage-%03u.rkplan", stage);
  return name;
}

std::string planDigest(const std::vector<StageFile> &stages) {
  std::string all;
  for (const StageFile &stage : stages)
    all += stage.digest + "\n";
  return digestHex(all);
}

std::string writeManifest(const Manifest &manifest) {
  Json stages = Json::array();
  for (const StageFile &stage : manifest.stages)
    stages.push_back({{"file", stage.file}, {"digest", stage.digest}});
  Json mesh = Json::object();
  Json order = Json::array();
  for (Axis axis : kRankOrder) {
    mesh[axisName(axis)] = axisSize(manifest.mesh, axis);
    order.push_back(axisName(axis));
  }
  // nlohmann's objects are ordered by key, so the text is canonical.
  Json json = {{"schema", kManifestSchema},
               {"name", manifest.name},
               {"digest", manifest.digest},
               {"stages", stages},
               {"mesh", mesh},
               {"rank_order", order},
               {"world_size", worldSize(manifest.mesh)},
               {"cluster",
                {{"accelerator", manifest.cluster.accelerator},
                 {"nodes", manifest.cluster.nodes},
                 {"gpus_per_node", manifest.cluster.gpusPerNode}}},
               {"spec", manifest.spec},
               {"choice", manifest.choice},
               {"versions",
                {{"reckon", manifest.reckonVersion},
                 {"plan_format", manifest.planFormat}}}};
  if (manifest.prediction.known())
    json["prediction"] = predictionJson(manifest.prediction);
  return json.dump(2) + "\n";
}

static Error corrupt(const std::string &file, const std::string &what) {
  return makeError(ExitCode::Corrupt, file + ": the manifest is damaged (" +
                                          what + "): compile the plan again");
}

Result<Manifest> readManifest(std::string_view bytes, const std::string &file) {
  Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return corrupt(file, "not a JSON object");
  auto at = [&](const char *a, const char *b) -> const Json * {
    const Json *value = json.contains(a) ? &json[a] : nullptr;
    if (value && b)
      value = value->is_object() && value->contains(b) ? &(*value)[b] : nullptr;
    return value;
  };
  auto text = [&](const char *key) -> const std::string * {
    const Json *value = at(key, nullptr);
    return value ? value->get_ptr<const std::string *>() : nullptr;
  };

  const std::string *schema = text("schema");
  if (!schema)
    return corrupt(file, "no text under \"schema\"");
  if (*schema != kManifestSchema)
    return makeError(ExitCode::Incompatible,
                     file + ": expected schema " + kManifestSchema + ", got " +
                         *schema + ": compile the plan with this version");
  const Json *format = at("versions", "plan_format");
  if (!format || !format->is_number_unsigned())
    return corrupt(file, "no number under \"versions.plan_format\"");

  Manifest manifest;
  // Compared before it is narrowed, or 2^32 + 1 would pass for 1.
  if (format->get<uint64_t>() != kPlanFormat)
    return makeError(ExitCode::Incompatible, file + ": expected plan format " +
                                                 std::to_string(kPlanFormat) +
                                                 ", got " + format->dump() +
                                                 ": compile the plan again");
  for (auto [key, target] : {std::pair{"name", &manifest.name},
                             std::pair{"digest", &manifest.digest},
                             std::pair{"spec", &manifest.spec}}) {
    const std::string *value = text(key);
    if (!value)
      return corrupt(file, std::string("no text under \"") + key + "\"");
    *target = *value;
  }
  if (const Json *version = at("versions", "reckon");
      version && version->is_string())
    manifest.reckonVersion = version->get<std::string>();
  if (const Json *choice = at("choice", nullptr))
    manifest.choice = *choice;
  if (const Json *accelerator = at("cluster", "accelerator");
      accelerator && accelerator->is_string())
    manifest.cluster.accelerator = accelerator->get<std::string>();
  for (auto [key, target] :
       {std::pair{"nodes", &manifest.cluster.nodes},
        std::pair{"gpus_per_node", &manifest.cluster.gpusPerNode}}) {
    const Json *value = at("cluster", key);
    if (!value)
      continue; // a plan that was not made for certain machines
    if (!value->is_number_unsigned() || value->get<uint64_t>() > (1u << 24))
      return corrupt(file,
                     std::string("no number under \"cluster.") + key + "\"");
    *target = value->get<uint32_t>();
  }

  uint32_t *sizes[] = {&manifest.mesh.tp, &manifest.mesh.cp, &manifest.mesh.ep,
                       &manifest.mesh.dp, &manifest.mesh.pp};
  uint64_t world = 1;
  for (Axis axis : kRankOrder) {
    const Json *size = at("mesh", axisName(axis));
    if (!size || !size->is_number_unsigned() || size->get<uint64_t>() == 0 ||
        size->get<uint64_t>() > (1u << 20))
      return corrupt(file, std::string("no degree under \"mesh.") +
                               axisName(axis) + "\"");
    world *= *sizes[static_cast<int>(axis)] = size->get<uint32_t>();
    if (world > (1u << 24))
      return corrupt(file, "a mesh of more than 2^24 ranks");
  }

  const Json *stages = at("stages", nullptr);
  if (!stages || !stages->is_array() || stages->size() != manifest.mesh.pp)
    return corrupt(file, "\"stages\" does not list one file for each of " +
                             std::to_string(manifest.mesh.pp) + " stages");
  for (const Json &entry : *stages) {
    if (!entry.is_object() || !entry.contains("file") ||
        !entry["file"].is_string() || !entry.contains("digest") ||
        !entry["digest"].is_string())
      return corrupt(file, "a stage without \"file\" and \"digest\"");
    std::string name = entry["file"].get<std::string>();
    if (name.empty() || name.find('/') != std::string::npos)
      return corrupt(file, "a stage file outside the plan directory");
    manifest.stages.push_back({name, entry["digest"].get<std::string>()});
  }
  if (planDigest(manifest.stages) != manifest.digest)
    return corrupt(file, "\"digest\" is not that of the stages");
  if (const Json *prediction = at("prediction", nullptr)) {
    std::string wrong = readPrediction(*prediction, manifest.stages.size(),
                                       manifest.prediction);
    if (!wrong.empty())
      return corrupt(file, wrong);
  }
  return manifest;
}

} // namespace reckon::plan
