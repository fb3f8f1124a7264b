//===- reckon-run-rank.h - one process of a run ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_RECKON_RUN_RANK_H
#define RECKON_FRONTENDS_TOOLS_RECKON_RUN_RANK_H

#include "runtime/exec/Trainer.h"
#include "runtime/launch/RankEnv.h"
#include "runtime/plan/Manifest.h"

namespace reckon {

/// Meets the other ranks, trains on a device (cpu, cuda, cuda-emulated), and
/// says on stderr why it failed if it did. Returns the exit code.
int runRank(const RankEnv &env, const plan::Manifest &manifest,
            const std::string &deviceKind, exec::TrainOptions options);

/// Writes down that the rank did not start because of `error`, and says so;
/// returns the exit code.
int refuseRank(const RankEnv &env, const plan::Manifest &manifest,
               const exec::TrainOptions &options, const Error &error);

/// "reckon-run: MESSAGE" on stderr, with the rank when it is not negative;
/// returns the exit code.
int reportError(const Error &error, int rank = -1);

} // namespace reckon

#endif // RECKON_FRONTENDS_TOOLS_RECKON_RUN_RANK_H
