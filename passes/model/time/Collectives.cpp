//===- Collectives.cpp - times of collectives on the job's topology -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Collectives.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

Links::Links(const Job &theJob, const Efficiency &efficiency)
    : job(theJob), e(efficiency) {
  intraRate = e.intra * job.intraBandwidth;
  interRate = e.inter * e.interScale * job.interBandwidth;
}

double Links::perDomain(const Group &group) const {
  return static_cast<double>(std::clamp<int64_t>(
      job.domain() / std::max<int64_t>(group.stride, 1), 1, group.size));
}

double Links::bandwidth(const Group &group) const {
  if (within(group))
    return intraRate;
  double rails = interRate * perDomain(group);
  return perDomain(group) > 1 ? std::min(intraRate, rails) : rails;
}

double Links::latency(const Group &group) const {
  auto size = static_cast<double>(group.size);
  if (within(group))
    return e.intraLatency + e.intraHop * (size - 1);
  double local = perDomain(group);
  return e.interLatency + e.intraHop * (local - 1) +
         e.interHop * (size / local - 1);
}

double Links::pass(const Group &group, double bytes, double pieces) const {
  if (group.size <= 1)
    return 0;
  auto size = static_cast<double>(group.size);
  return pieces * latency(group) + bytes * (size - 1) / size / bandwidth(group);
}

double Links::tensorPass(const Group &group, double bytes) const {
  if (group.size <= 1)
    return 0;
  if (within(group))
    return pass(group, bytes);
  auto size = static_cast<double>(group.size);
  double rate = e.tensorInter * e.interScale * job.interBandwidth *
                static_cast<double>(job.domain());
  return e.intraLatency + e.tensorInterHop * (size - 1) +
         bytes * (size - 1) / size / std::min(rate, intraRate);
}

double Links::message(bool within, double bytes) const {
  return within ? e.intraLatency + bytes / intraRate
                : e.interLatency + bytes / interRate;
}

double Links::allToAll(const Group &group, double bytes, double copies) const {
  if (group.size <= 1)
    return 0;
  auto size = static_cast<double>(group.size);
  double local = within(group) ? size : perDomain(group);
  double domains = size / local;
  double seconds = e.expertLatency + bytes * (local - 1) / size / intraRate;
  if (domains > 1) {
    double away = 1 - 1 / domains;
    // Distinct other domains that a token visits against its visits there.
    double once =
        (domains - 1) * (1 - std::pow(away, copies)) / (copies * away);
    double rate = e.expertInter * e.interScale * job.interBandwidth;
    seconds = std::max(seconds, e.expertLatency +
                                    bytes * away * std::min(1.0, once) / rate);
  }
  return seconds;
}
