//===- StatusFile.h - how one rank ended, for whoever asks later ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Slurm reports the largest exit code of a step, and 143 for every rank that it
// ended because of another, so that the first cause is lost. Each rank writes
// its own end to status-00003.json in the run directory; one that was killed
// cannot, and is the `dead_rank` of the others.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_LAUNCH_STATUSFILE_H
#define RECKON_RUNTIME_LAUNCH_STATUSFILE_H

#include "runtime/base/Os.h"
#include "runtime/launch/RankEnv.h"

namespace reckon {

/// A rank's end.
struct RankEnd {
  ExitCode code = ExitCode::Done;
  std::string reason = "done";
  std::optional<int> deadRank; ///< with code DeadPeer: whose death it was
  int64_t step = 0;            ///< completed steps
};

/// The file's text, one JSON object. `wallNs` is the time of the end.
std::string statusText(const RankEnv &env, const std::string &plan,
                       const RankEnd &end, int64_t wallNs);

class StatusFile {
public:
  /// `plan` is the digest that names it. Removes what an earlier run of this
  /// rank left; Environment when the folder cannot be written.
  static Result<StatusFile> open(const RankEnv &env, const std::string &plan,
                                 const std::string &runDirectory);

  /// Best effort: the rank's end counts more than whether it is written down.
  void write(const RankEnd &end) const;

  /// The same for an interrupted rank, from within a signal handler.
  void writeInterrupted() const noexcept;

private:
  RankEnv env_;
  std::string plan_, path_;
  // Prepared, because a handler can format nothing.
  std::string temporary_, interrupted_;
};

} // namespace reckon

#endif // RECKON_RUNTIME_LAUNCH_STATUSFILE_H
