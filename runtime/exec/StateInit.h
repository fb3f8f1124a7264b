//===- StateInit.h - the first values of a rank's states ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_STATEINIT_H
#define RECKON_RUNTIME_EXEC_STATEINIT_H

#include "runtime/base/Status.h"
#include "runtime/device/Device.h"
#include "runtime/exec/Safetensors.h"
#include "runtime/plan/Coordinates.h"

#include <cstddef>

namespace reckon::exec {

/// Gives every state of a zeroed arena its first value: parameters and main
/// weights by their Init, or by name from `weights` when it is not null; the
/// rotary table; everything else, padding included, stays zero. Each element's
/// value depends on its global index only, so all layouts start bit-equal.
/// Incompatible when `weights` lacks a parameter or has another shape or a
/// type that is no float.
Status initStates(const plan::StagePlanT &plan, const plan::Coord &coord,
                  device::Device &device, std::byte *arena,
                  const SafetensorsFile *weights);

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_STATEINIT_H
