//===- ReadResilience.cpp - the section cluster.resilience ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Reader.h"

namespace reckon {

ResilienceSpec readResilience(Reader &reader) {
  const std::string section = "cluster.resilience";
  ResilienceSpec spec;
  spec.loc = reader.locate(section);
  spec.checkpointBandwidthGbs =
      reader.real(section + ".checkpoint_bandwidth_gbs");
  spec.copyBandwidthGbs = reader.real(section + ".copy_bandwidth_gbs");
  spec.checkpointOverheadS = reader.real(section + ".checkpoint_overhead_s");
  spec.checkpointStallS = reader.real(section + ".checkpoint_stall_s");
  spec.detectS = reader.real(section + ".detect_s");
  spec.restartS = reader.real(section + ".restart_s");
  spec.loadS = reader.real(section + ".load_s");
  return spec;
}

} // namespace reckon
