//===- KeyTableCluster.cpp - the keys of the machines ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/KeyRows.h"

using namespace reckon;
using namespace reckon::keys;

void keys::addClusterKeys(Rows &rows) {
  rows.section("cluster", "The machines.");
  rows.special(
      "cluster.accelerator", "required", "a catalogue name or a map of figures",
      "",
      "One of " // the list is checked against the catalogue by a test
      "a100-sxm-40gb, a100-sxm-80gb, h100-sxm, h100-sxm-96gb-hbm2e, "
      "h100-sxm-94gb-hbm2e, h200-sxm, h800-sxm, b200-sxm, b300-sxm, "
      "gb200-nvl72, gb300-nvl72, cpu; or figures of your own. `cpu` is one "
      "process of this program with nominal figures.");
  rows.number(Kind::Integer, "cluster.nodes", "required", 1, 1 * M,
              "Machines.");
  rows.number(Kind::Integer, "cluster.gpus_per_node", "required", 1, 1 * K,
              "Devices of a machine; processes of a machine for `cpu`.");
  rows.number(Kind::Real, "cluster.inter_node_bandwidth_gbps",
              "(by accelerator)", 1e-3, 1e6,
              "Network of one GPU, one direction, in Gbit/s.");
  rows.number(
      Kind::Real, "cluster.memory_reserve_gib", "(by accelerator)", 0, 1e6,
      "Memory of a device for driver, communication library and others; 2 "
      "on GPUs, 0 on `cpu`.");
  rows.number(Kind::Real, "cluster.host_memory_gib", "(unknown)", 0, 1e9,
              "Memory of a machine.");
  rows.number(Kind::Real, "cluster.gpu_mtbf_hours", "50000", 1e-3, 1e12,
              "Mean time between failures of one device.");
  rows.number(Kind::Real, "cluster.price_per_gpu_hour", "(2.5, 0 for `cpu`)", 0,
              1e9, "Money for one device hour.");
  rows.special(
      "cluster.calibration", "", "a path", "",
      "Measured efficiencies, as `reckon calibrate` writes them; relative "
      "to the YAML file that names it.");
  rows.words(
      Kind::Text, "cluster.efficiency_profile", "reckon", "", "",
      "Whose software to predict; an unknown name means global constants, "
      "with a warning.");
  rows.words(Kind::Text, "cluster.bootstrap_interface", "", "", "",
             "Network interface that ranks meet on.");
  rows.section(
      "cluster.resilience",
      "Failures and checkpoints, for `reckon goodput` and the objective "
      "`time_to_train`. Optional.");
  rows.section("cluster.slurm", "Copied into `launch.sbatch`. Optional.");

  auto figure = [&](std::string_view path, std::string_view fallback,
                    double low, double high, std::string_view doc) {
    rows.number(Kind::Real, path, fallback, low, high, doc);
  };
  rows.words(Kind::Text, "cluster.accelerator.chip", "custom", "", "",
             "Name for reports.");
  figure("cluster.accelerator.bf16_dense_tflops", "required", 1e-6, 1e9,
         "Dense bf16 peak, TFLOP/s.");
  figure("cluster.accelerator.fp8_dense_tflops", "0", 0, 1e9,
         "Dense fp8 peak, TFLOP/s; 0 for none.");
  figure("cluster.accelerator.fp32_tflops", "(bf16 peak / 16)", 1e-6, 1e9,
         "fp32 peak outside tensor cores, TFLOP/s.");
  figure("cluster.accelerator.mem_gb", "required", 1e-3, 1e6, "Memory, GiB.");
  figure("cluster.accelerator.mem_bw_gbs", "required", 1e-3, 1e9,
         "Memory bandwidth, GB/s.");
  figure("cluster.accelerator.intra_node_bw_gbs", "required", 1e-3, 1e9,
         "Link inside a node, GB/s per direction.");
  rows.number(Kind::Integer, "cluster.accelerator.intra_node_size",
              "(`gpus_per_node`)", 1, 64 * K, "Devices that share that link.");
  figure("cluster.accelerator.inter_node_bw_gbs_per_gpu", "50", 1e-3, 1e9,
         "Network of one device, GB/s per direction.");

  rows.number(
      Kind::Real, "cluster.resilience.checkpoint_bandwidth_gbs",
      "(2 a machine)", 1e-6, 1e9,
      "What all machines together write to and read from the storage of "
      "checkpoints, GB/s.");
  rows.number(Kind::Real, "cluster.resilience.copy_bandwidth_gbs", "20", 1e-6,
              1e6, "Copies from one device to its host's memory, GB/s.");
  rows.number(Kind::Real, "cluster.resilience.checkpoint_overhead_s", "0.5", 0,
              1e9, "Seconds of every save that nothing hides.");
  rows.number(Kind::Real, "cluster.resilience.checkpoint_stall_s",
              "(from the plan's bytes)", 0, 1e9,
              "Seconds that training stands still for a checkpoint.");
  rows.number(Kind::Real, "cluster.resilience.detect_s", "60", 0, 1e9,
              "Seconds from a failure until it is noticed.");
  rows.number(Kind::Real, "cluster.resilience.restart_s", "30", 0, 1e9,
              "Seconds until the processes are up again.");
  rows.number(Kind::Real, "cluster.resilience.load_s",
              "(bytes / `checkpoint_bandwidth_gbs`)", 0, 1e9,
              "Seconds until a checkpoint is loaded.");

  for (std::string_view path :
       {"cluster.slurm.partition", "cluster.slurm.account", "cluster.slurm.qos",
        "cluster.slurm.time"})
    rows.words(Kind::Text, path, "", "", "",
               "The `#SBATCH` option of that name.");
  rows.words(Kind::Texts, "cluster.slurm.setup", "", "", "",
             "Shell lines before `srun`, such as `module load`.");
  rows.words(Kind::Texts, "cluster.slurm.srun_args", "", "", "",
             "More arguments of `srun`.");
  rows.words(Kind::Texts, "cluster.slurm.extra", "", "", "",
             "More `#SBATCH` options.");
}
