//===- Fault.h - failures on purpose --------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_FAULT_FAULT_H
#define RECKON_RUNTIME_FAULT_FAULT_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace reckon::fault {

enum class FaultKind {
  Kill, ///< SIGKILL to itself
  Exit, ///< exit without a word, with code VALUE (1)
  Stop, ///< SIGSTOP to itself
};

/// KIND[=VALUE]@rank=R,step=S[,at=N]
struct Fault {
  FaultKind kind = FaultKind::Kill;
  double value = 1;
  int rank = 0;
  int64_t step = 1;          ///< counted from 1
  std::optional<int64_t> at; ///< instruction of the step, from 0; absent: half
};

/// Parses RECKON_FAULT; BadSpec with the expected form.
Result<Fault> parseFault(const std::string &text);

/// Commits the fault. Returns only from Stop, when someone continues it.
void commitFault(const Fault &fault);

} // namespace reckon::fault

#endif // RECKON_RUNTIME_FAULT_FAULT_H
