//===- Cluster.h - speeds of the machine as the time model sees it --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_CLUSTER_H
#define RECKON_PASSES_MODEL_CLUSTER_H

#include "frontends/spec/Spec.h"

#include <cstdint>

namespace reckon::model {

/// Speeds in FLOP/s and bytes/s, nominal (from data sheets).
struct ClusterSpeeds {
  double peakFlops = 0; ///< dense matmul in the training's precision
  double memoryBandwidth = 0;
  double intraBandwidth = 0; ///< per direction, within a node
  double interBandwidth = 0; ///< per device and direction, between nodes
  int64_t nodes = 1;
  int64_t devicesPerNode = 1;
  double pricePerDeviceHour = 0;

  int64_t devices() const { return nodes * devicesPerNode; }
  /// Whether a group of `size` ranks, `stride` apart, lies within one node.
  bool withinNode(int64_t stride, int64_t size) const {
    return stride * size <= devicesPerNode &&
           devicesPerNode % (stride * size) == 0;
  }
};

inline ClusterSpeeds clusterSpeeds(const Spec &spec) {
  const Accelerator &device = *spec.cluster.accelerator;
  bool bf16 = *spec.training.precision == Precision::Bf16;
  return {.peakFlops =
              (bf16 ? device.bf16DenseTflops : device.fp32Tflops) * 1e12,
          .memoryBandwidth = device.memBwGbs * 1e9,
          .intraBandwidth = device.intraNodeBwGbs * 1e9,
          .interBandwidth = *spec.cluster.interNodeBandwidthGbps * 1e9 / 8,
          .nodes = *spec.cluster.nodes,
          .devicesPerNode = *spec.cluster.gpusPerNode,
          .pricePerDeviceHour = *spec.cluster.pricePerGpuHour};
}

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_CLUSTER_H
