//===- Flags.h - the arguments that Megatron-LM knows ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// flags.tsv lists every option of the argument parser of one commit with the
// number of values that it takes; tests/export/validate.py --write-flags makes
// the file anew from a checkout.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_IMPORT_MEGATRON_FLAGS_H
#define RECKON_FRONTENDS_IMPORT_MEGATRON_FLAGS_H

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace reckon::megatron {

/// Of 22 August 2026; what flags.tsv and the export are for.
inline constexpr const char *kMegatronCommit =
    "d98e8a64ddf34856e74b24714e3bedb2f5a39553";

/// Values behind a flag.
struct Arity {
  int least = 0;
  int most = 0; ///< -1: as many as there are before the next flag
};

/// `flag` with its dashes; nothing when Megatron has no such flag.
std::optional<Arity> findFlag(std::string_view flag);

/// The flag that was probably meant, or empty.
std::string nearestFlag(std::string_view flag);

/// Flags that change memory, time or mathematics in a way that the spec has no
/// key for, with a remedy. All other known flags that the import does not read
/// have no bearing on a plan.
const std::map<std::string, std::string, std::less<>> &refusedFlags();

} // namespace reckon::megatron

#endif // RECKON_FRONTENDS_IMPORT_MEGATRON_FLAGS_H
