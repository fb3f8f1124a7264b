//===- PlanIO.cpp - reading and writing plan directories ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanIO.h"

#include <xxhash.h>

#include <cstdio>

namespace reckon::plan {

std::string digestHex(std::string_view bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

std::string writeStagePlan(const StagePlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  FinishStagePlanBuffer(builder, StagePlan::Pack(builder, &plan));
  return {reinterpret_cast<const char *>(builder.GetBufferPointer()),
          builder.GetSize()};
}

/// FlatBuffers' verifier asks of a vector only that its length is aligned, so
/// that a damaged file can put 8-byte elements at odd places.
template <typename T>
static bool elementsAligned(const flatbuffers::Vector<T> *vector) {
  return !vector || vector->size() == 0 ||
         reinterpret_cast<uintptr_t>(vector->Data()) % sizeof(T) == 0;
}

/// Whether `good` holds of every table of a list, which may be absent.
template <typename T, typename Good>
static bool all(const flatbuffers::Vector<flatbuffers::Offset<T>> *list,
                const Good &good) {
  if (list)
    for (const T *table : *list)
      if (table && !good(*table))
        return false;
  return true;
}

/// Every vector of 8-byte elements in the schema.
static bool vectorsAligned(const StagePlan &plan) {
  auto buffer = [](const Buffer &b) { return elementsAligned(b.shape()); };
  auto instruction = [&](const Instruction &i) {
    return elementsAligned(i.floats()) && all(i.inputs(), buffer) &&
           all(i.outputs(), buffer);
  };
  auto state = [](const State &s) {
    return elementsAligned(s.global_shape()) &&
           (!s.init() || elementsAligned(s.init()->rope()));
  };
  auto filter = [](const AxisFilter &f) { return elementsAligned(f.values()); };
  return all(plan.states(), state) &&
         all(plan.groups(),
             [&](const Group &g) { return all(g.filters(), filter); }) &&
         all(plan.fragments(),
             [&](const Fragment &f) {
               return all(f.instructions(), instruction);
             }) &&
         all(plan.lists(), [&](const ActionList &l) {
           return all(l.actions(), [&](const Action &a) {
             return all(a.buffers(), buffer);
           });
         });
}

Result<std::unique_ptr<StagePlanT>> readStagePlan(std::string_view bytes,
                                                  const std::string &file) {
  auto damaged = [&](const char *what) {
    return makeError(ExitCode::Corrupt, file + ": the plan file is damaged (" +
                                            what + "): compile the plan again");
  };
  // The largest root offset, identifier and vtable need this much.
  if (bytes.size() < 16)
    return damaged("too short");
  // FlatBuffers reads scalars in place and needs their alignment.
  std::vector<uint64_t> aligned((bytes.size() + 7) / 8);
  std::copy(bytes.begin(), bytes.end(),
            reinterpret_cast<char *>(aligned.data()));
  const auto *data = reinterpret_cast<const uint8_t *>(aligned.data());
  if (!StagePlanBufferHasIdentifier(data))
    return damaged("not a plan file: no identifier RKPL");
  constexpr unsigned kMaxDepth = 32;
  constexpr unsigned kMaxTables = 1u << 24;
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxDepth, kMaxTables);
  if (!VerifyStagePlanBuffer(verifier))
    return damaged("its structure does not verify");
  const StagePlan *root = GetStagePlan(data);
  if (root->version() != kPlanFormat)
    return makeError(ExitCode::Incompatible,
                     file + ": expected plan format " +
                         std::to_string(kPlanFormat) + ", got " +
                         std::to_string(root->version()) +
                         ": compile the plan with this version of reckon");
  if (!vectorsAligned(*root))
    return damaged("a list lies at an odd place");
  std::unique_ptr<StagePlanT> plan(root->UnPack());
  RECKON_TRY(validateStagePlan(*plan, file));
  return plan;
}

static std::string join(const std::string &directory, const std::string &name) {
  return directory.empty() || directory.back() == '/' ? directory + name
                                                      : directory + "/" + name;
}

Result<Manifest>
writePlanDirectory(FileSystem &files, const std::string &directory,
                   Manifest manifest,
                   const std::vector<const StagePlanT *> &stages) {
  RECKON_TRY(files.createDirectories(directory));
  manifest.stages.clear();
  for (const StagePlanT *stage : stages) {
    std::string bytes = writeStagePlan(*stage);
    StageFile entry{stageFileName(stage->stage), digestHex(bytes)};
    RECKON_TRY(files.write(join(directory, entry.file), bytes));
    manifest.stages.push_back(entry);
  }
  manifest.digest = planDigest(manifest.stages);
  RECKON_TRY(
      files.write(join(directory, "manifest.json"), writeManifest(manifest)));
  return manifest;
}

Result<Manifest> readPlanManifest(FileSystem &files,
                                  const std::string &directory) {
  std::string path = join(directory, "manifest.json");
  if (!files.exists(path))
    return makeError(ExitCode::Environment,
                     path +
                         ": no such file: expected a plan directory written "
                         "by `reckon compile ... -o " +
                         directory + "`");
  Result<std::string> bytes = files.read(path);
  if (!bytes)
    return bytes.error();
  return readManifest(*bytes, path);
}

Result<std::unique_ptr<StagePlanT>> readPlanStage(FileSystem &files,
                                                  const std::string &directory,
                                                  const Manifest &manifest,
                                                  unsigned stage) {
  RECKON_CHECK(stage < manifest.stages.size());
  const StageFile &entry = manifest.stages[stage];
  std::string path = join(directory, entry.file);
  if (!files.exists(path))
    return makeError(ExitCode::Environment,
                     path + ": no such file, but manifest.json lists it: "
                            "compile the plan again");
  Result<std::string> bytes = files.read(path);
  if (!bytes)
    return bytes.error();
  std::string digest = digestHex(*bytes);
  if (digest != entry.digest)
    return makeError(ExitCode::Corrupt,
                     path + ": expected digest " + entry.digest +
                         " as in manifest.json, got " + digest +
                         ": compile the plan again");
  Result<std::unique_ptr<StagePlanT>> plan = readStagePlan(*bytes, path);
  if (!plan)
    return plan;
  const MeshT &mesh = *(*plan)->mesh;
  bool sameMesh = true;
  for (Axis axis : kRankOrder)
    sameMesh &= axisSize(mesh, axis) == axisSize(manifest.mesh, axis);
  if (!sameMesh || (*plan)->stage != stage)
    return makeError(ExitCode::Corrupt,
                     path + ": its mesh or stage is not that of "
                            "manifest.json: compile the plan again");
  return plan;
}

} // namespace reckon::plan
