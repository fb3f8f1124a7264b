//===- ReadCluster.cpp - the section cluster ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Reader.h"
#include "frontends/spec/Suggest.h"

namespace reckon {
namespace {

/// The figures that the user wrote instead of a name.
Accelerator readCustom(Reader &reader, int64_t gpusPerNode) {
  const std::string section = "cluster.accelerator";
  Accelerator a;
  a.name = "custom";
  a.chip = *reader.text(section + ".chip");
  a.source = "the spec";
  a.bf16DenseTflops = *reader.real(section + ".bf16_dense_tflops");
  a.fp8DenseTflops = *reader.real(section + ".fp8_dense_tflops");
  a.fp32Tflops = *reader.real(section + ".fp32_tflops");
  // Vendors' ratio outside tensor cores is 15 to 31; see accelerators.csv.
  if (!reader.find(section + ".fp32_tflops"))
    a.fp32Tflops = a.bf16DenseTflops / 16;
  a.memGb = *reader.real(section + ".mem_gb");
  a.memBwGbs = *reader.real(section + ".mem_bw_gbs");
  a.intraNodeBwGbs = *reader.real(section + ".intra_node_bw_gbs");
  a.intraNodeSize = *reader.integer(section + ".intra_node_size");
  if (!reader.find(section + ".intra_node_size"))
    a.intraNodeSize = gpusPerNode;
  a.interNodeBwGbsPerGpu = *reader.real(section + ".inter_node_bw_gbs_per_gpu");
  a.memoryReserveGib = 2;
  return a;
}

Field<Accelerator> readAccelerator(Reader &reader, int64_t gpusPerNode) {
  const KeyRow &row = *findKey("cluster.accelerator");
  Field<Accelerator> field;
  field.loc = reader.locate(row.path);
  const Entry *entry = reader.find(row.path);
  if (!entry) {
    reader.missing(row);
    return field;
  }
  field.given = true;
  const Node &node = entry->value;
  if (node.isMap()) {
    field.value = readCustom(reader, gpusPerNode);
    return field;
  }
  const Accelerator *known =
      node.isScalar() ? findAccelerator(node.text) : nullptr;
  if (known) {
    field.value = *known;
    if (known->peakIsAssumed)
      reader.warn(node.loc, "no peak is published for " + known->name +
                                "; times assume " +
                                formatNumber(known->bf16DenseTflops) +
                                " TFLOP/s, give a map of figures to use yours");
    return field;
  }
  std::vector<std::string> names;
  for (const Accelerator &accelerator : acceleratorCatalogue())
    names.push_back(accelerator.name);
  std::string near =
      node.isScalar() ? nearestWord(node.text, names) : std::string();
  reader.error(
      node.loc,
      "expected an accelerator of the catalogue (" + listWords(names) +
          ") or a map of figures, got " + node.describe() + "; " +
          (near.empty() ? "choose one of them" : "did you mean " + near + "?"));
  return field;
}

SlurmSpec readSlurm(Reader &reader) {
  const std::string section = "cluster.slurm";
  SlurmSpec slurm;
  slurm.loc = reader.locate(section);
  slurm.partition = reader.text(section + ".partition");
  slurm.account = reader.text(section + ".account");
  slurm.qos = reader.text(section + ".qos");
  slurm.time = reader.text(section + ".time");
  slurm.srunArgs = reader.texts(section + ".srun_args");
  slurm.extra = reader.texts(section + ".extra");
  Field<std::vector<std::string>> setup = reader.texts(section + ".setup");
  slurm.setup.loc = setup.loc;
  slurm.setup.given = setup.given;
  for (const std::string &line : *setup)
    slurm.setup.value += (slurm.setup.value.empty() ? "" : "\n") + line;
  // One line each, or the script would hold something else than is meant.
  for (const auto *field :
       {&slurm.partition, &slurm.account, &slurm.qos, &slurm.time})
    if (field->value.find('\n') != std::string::npos)
      reader.error(field->loc, "expected one line, got several; write the "
                               "value on the line of its key");
  for (const auto *field : {&slurm.srunArgs, &slurm.extra})
    for (const std::string &line : field->value)
      if (line.find('\n') != std::string::npos)
        reader.error(field->loc, "expected one line in each entry, got "
                                 "several; write a list");
  return slurm;
}

} // namespace

ClusterSpec readCluster(Reader &reader) {
  ClusterSpec cluster;
  cluster.loc = reader.locate("cluster");
  cluster.nodes = reader.integer("cluster.nodes");
  cluster.gpusPerNode = reader.integer("cluster.gpus_per_node");
  cluster.accelerator = readAccelerator(reader, *cluster.gpusPerNode);
  cluster.interNodeBandwidthGbps =
      reader.real("cluster.inter_node_bandwidth_gbps");
  cluster.memoryReserveGib = reader.real("cluster.memory_reserve_gib");
  cluster.hostMemoryGib = reader.real("cluster.host_memory_gib");
  cluster.gpuMtbfHours = reader.real("cluster.gpu_mtbf_hours");
  cluster.pricePerGpuHour = reader.real("cluster.price_per_gpu_hour");
  cluster.efficiencyProfile = reader.text("cluster.efficiency_profile");
  cluster.bootstrapInterface = reader.text("cluster.bootstrap_interface");
  cluster.resilience = readResilience(reader);
  cluster.slurm = readSlurm(reader);

  const Accelerator &accelerator = *cluster.accelerator;
  if (!cluster.interNodeBandwidthGbps.given)
    cluster.interNodeBandwidthGbps.value = 8 * accelerator.interNodeBwGbsPerGpu;
  if (!cluster.memoryReserveGib.given)
    cluster.memoryReserveGib.value = accelerator.memoryReserveGib;
  if (!cluster.pricePerGpuHour.given)
    cluster.pricePerGpuHour.value = accelerator.isCpu() ? 0 : 2.5;
  cluster.calibration.loc = reader.locate("cluster.calibration");
  if (const Entry *calibration = reader.find("cluster.calibration");
      calibration && !isNeutral(calibration->value))
    if (std::optional<std::string> path = reader.readText(
            calibration->value, *findKey("cluster.calibration"))) {
      cluster.calibration.given = true;
      cluster.calibration.value = resolvePath(calibration->value.loc, *path);
    }
  if (accelerator.memGb > 0 && *cluster.memoryReserveGib >= accelerator.memGb)
    reader.error(cluster.memoryReserveGib.loc,
                 "expected cluster.memory_reserve_gib below the accelerator's "
                 "memory of " +
                     formatNumber(accelerator.memGb) + " GiB, got " +
                     formatNumber(*cluster.memoryReserveGib) +
                     "; 2 is usual on a GPU");
  return cluster;
}

} // namespace reckon
