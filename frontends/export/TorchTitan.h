//===- TorchTitan.h - the parts of a torchtitan configuration -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_EXPORT_TORCHTITAN_H
#define RECKON_FRONTENDS_EXPORT_TORCHTITAN_H

#include "frontends/export/Text.h"

namespace reckon::exports {

/// Python that defines model_spec(); empty, with errors, when torchtitan has
/// no such model.
std::string torchTitanModel(const ExportInput &input, Exported &out);

} // namespace reckon::exports

#endif // RECKON_FRONTENDS_EXPORT_TORCHTITAN_H
