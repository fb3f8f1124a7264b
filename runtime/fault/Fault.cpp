//===- Fault.cpp - failures on purpose ------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/fault/Fault.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <unistd.h>

namespace reckon::fault {

static Error badFault(const std::string &text, const std::string &why) {
  return makeError(ExitCode::BadSpec,
                   "RECKON_FAULT: expected KIND[=VALUE]@rank=R,step=S[,at=N] "
                   "with kind kill, exit or stop, got \"" +
                       text + "\" (" + why + ")");
}

/// A whole text as a number that is not negative.
static bool parseInteger(const std::string &text, int64_t *value) {
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos)
    return false;
  errno = 0;
  *value = std::strtoll(text.c_str(), nullptr, 10);
  return errno == 0;
}

Result<Fault> parseFault(const std::string &text) {
  size_t separator = text.find('@');
  if (separator == std::string::npos)
    return badFault(text, "no @");
  std::string kind = text.substr(0, separator);
  Fault fault;
  if (size_t equals = kind.find('='); equals != std::string::npos) {
    std::string value = kind.substr(equals + 1);
    char *end = nullptr;
    fault.value = std::strtod(value.c_str(), &end);
    if (value.empty() || *end)
      return badFault(text, "\"" + value + "\" is no number");
    kind.resize(equals);
  }
  if (kind == "kill")
    fault.kind = FaultKind::Kill;
  else if (kind == "exit")
    fault.kind = FaultKind::Exit;
  else if (kind == "stop")
    fault.kind = FaultKind::Stop;
  else if (kind == "hang" || kind == "slow" || kind == "flip_gradient" ||
           kind == "bad_batch" || kind == "lr_spike")
    return badFault(text, kind + " is not supported by this version");
  else
    return badFault(text, "unknown kind");

  bool hasRank = false;
  bool hasStep = false;
  std::stringstream rest(text.substr(separator + 1));
  for (std::string part; std::getline(rest, part, ',');) {
    size_t equals = part.find('=');
    int64_t value = 0;
    if (equals == std::string::npos ||
        !parseInteger(part.substr(equals + 1), &value))
      return badFault(text, "\"" + part + "\" is not KEY=NUMBER");
    std::string key = part.substr(0, equals);
    if (key == "rank" && value < (1 << 30)) {
      fault.rank = static_cast<int>(value);
      hasRank = true;
    } else if (key == "step" && value >= 1) {
      fault.step = value;
      hasStep = true;
    } else if (key == "at") {
      fault.at = value;
    } else {
      return badFault(text, "\"" + part + "\" is not understood");
    }
  }
  if (!hasRank || !hasStep)
    return badFault(text, "rank and step are needed; steps count from 1");
  return fault;
}

void commitFault(const Fault &fault) {
  switch (fault.kind) {
  case FaultKind::Kill:
    kill(getpid(), SIGKILL);
    pause(); // the signal may arrive a moment later
    break;
  case FaultKind::Exit:
    _exit(static_cast<int>(fault.value));
  case FaultKind::Stop:
    kill(getpid(), SIGSTOP);
    break;
  }
}

} // namespace reckon::fault
