//===- CertifyClauses.h - a schedule's start times as clauses -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_CERTIFYCLAUSES_H
#define RECKON_PASSES_SEARCH_SCHEDULE_CERTIFYCLAUSES_H

#include "passes/search/schedule/CertifyInstance.h"
#include "passes/search/schedule/StartTimes.h"

namespace reckon::search {

/// "Can the actions of an instance start so that all end by the horizon?" The
/// order of every rank is given. Every action has two candidates, the earliest
/// start that the order allows and the latest that the horizon allows, and all
/// clauses on them.
class CertifyClauses {
public:
  /// `slots` as in CertifyQuery; the horizon in ticks. All outlive the object.
  CertifyClauses(const CertifyInstance &instance, const Ticks &ticks,
                 const std::vector<int64_t> &slots, int64_t horizon);

  StartTimes &times() { return times_; }
  /// After Yes: when the solver starts everything.
  model::Timetable found() const;

private:
  void number();
  void latest();
  void encode();
  void encodeRepeat();
  template <typename Body> void forDependencies(Body body) const;

  /// The number of a pass over all ranks.
  int64_t &id(int64_t stage, int64_t pass, int64_t microBatch) {
    return ids_[(stage * 3 + pass) * instance_.orders.m + microBatch];
  }
  int64_t id(int64_t stage, int64_t pass, int64_t microBatch) const {
    return ids_[(stage * 3 + pass) * instance_.orders.m + microBatch];
  }

  const CertifyInstance &instance_;
  const Ticks &ticks_;
  const std::vector<int64_t> &slots_;
  int64_t horizon_;
  std::vector<int64_t> offsets_; ///< number of each rank's first action
  std::vector<int64_t> ids_, lengths_, earliest_, latest_;
  StartTimes times_;
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_CERTIFYCLAUSES_H
