//===- Degrees.h - what the checks of parallel degrees share --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Internal to CheckParallelism.cpp and CheckPipeline.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_DEGREES_H
#define RECKON_FRONTENDS_SPEC_DEGREES_H

#include "frontends/spec/CheckText.h"
#include "frontends/spec/Reader.h"

#include <functional>

namespace reckon {

class Degrees {
public:
  Degrees(Spec &spec, Reader &reader)
      : model_(spec.model), cluster_(spec.cluster), training_(spec.training),
        p_(spec.parallelism), reader_(reader) {
    if (*cluster_.nodes > 0 && *cluster_.gpusPerNode > 0)
      world_ = cluster_.worldSize();
  }

protected:
  std::string worldText() const {
    return "the world size " + num(world_) + " (nodes " + num(*cluster_.nodes) +
           " * gpus_per_node " + num(*cluster_.gpusPerNode) + ")";
  }

  /// Reports a key none of whose values is possible. `reason` says what is
  /// wrong with one value, or nothing.
  void requireOne(const Choice<int64_t> &choice, const std::string &key,
                  const std::function<std::string(int64_t)> &reason,
                  const std::string &remedy) {
    if (choice.isAuto || choice.values.empty())
      return;
    for (int64_t value : choice.values)
      if (reason(value).empty())
        return;
    std::vector<std::string> values;
    for (int64_t value : choice.values)
      values.push_back(num(value));
    reader_.error(choice.loc, "expected parallelism." + key + " " +
                                  reason(choice.values[0]) + ", got " +
                                  listWords(values) + "; " + remedy);
  }

  ModelSpec &model_;
  ClusterSpec &cluster_;
  TrainingSpec &training_;
  ParallelismSpec &p_;
  Reader &reader_;
  int64_t world_ = 0; ///< 0 when not known
};

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_DEGREES_H
