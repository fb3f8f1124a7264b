//===- Dump.h - whole tensors by global name ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_DUMP_H
#define RECKON_RUNTIME_EXEC_DUMP_H

#include "runtime/base/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Device.h"
#include "runtime/plan/Coordinates.h"

#include <cstddef>
#include <string>
#include <utility>

namespace reckon::exec {

enum class DumpKind {
  Weights,  ///< fp32 weights, from main weights where there are any
  Gradients ///< mean over the global batch, before clipping
};

/// --dump STEP:weights,gradients DIR
struct DumpRequest {
  int64_t step = 0; ///< after this many completed steps; 0: initial weights
  bool weights = false;
  bool gradients = false;
  std::string directory;
};

/// Parses the option's two texts; BadSpec with the expected form.
Result<DumpRequest> parseDump(const std::string &what,
                              const std::string &directory);

/// Writes one safetensors file with the whole tensors by their global names,
/// F32. All ranks call it; each writes the elements it owns into the file, so
/// the ranks must share its file system. Gradients must not have been
/// overwritten by another micro-batch since the update.
Status dumpStates(DumpKind kind, const plan::StagePlanT &plan,
                  const plan::Coord &coord, device::Device &device,
                  const std::byte *arena, comm::Communicator &communicator,
                  const std::string &path);

/// Everyone's outcome: the error of the lowest failing rank, on all ranks;
/// `rank` (may be null) receives that rank.
Status agreeOnStatus(comm::Communicator &communicator, const Status &mine,
                     int *rank = nullptr);

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_DUMP_H
