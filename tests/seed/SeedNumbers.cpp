//===- SeedNumbers.cpp - the series' numbers, recomputed ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each row: what the series prints, what the product's own formulas give under
// the stated assumptions, and how far they may be apart (half of the printed
// number's last digit, unless it is a band). A number that does not follow has
// the value that does, and says so.
//
//===----------------------------------------------------------------------===//

#include "passes/goodput/Formula.h"
#include "passes/model/Schedule.h"
#include "passes/model/account/Accountant.h"
#include "passes/model/time/ModelFlops.h"
#include "passes/model/time/TimeModel.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace reckon::model;
using reckon::findAccelerator;
using reckon::Recompute;
using reckon::Representation;

namespace {

struct Row {
  std::string number;
  double printed, ours, tolerance;
  const char *unit;
  std::string assumptions;
  bool follows() const { return std::fabs(ours - printed) <= tolerance; }
};

std::vector<Row> rows;
int failures = 0;

/// A number that follows.
void equal(std::string number, double printed, double ours, double tolerance,
           const char *unit, std::string assumptions) {
  rows.push_back({std::move(number), printed, ours, tolerance, unit,
                  std::move(assumptions)});
  failures += !rows.back().follows();
}

/// A number that does not follow from the stated assumptions; `expected` is
/// what does.
void differs(std::string number, double printed, double expected, double ours,
             double tolerance, const char *unit, std::string assumptions) {
  rows.push_back(
      {std::move(number), printed, ours, 0, unit, std::move(assumptions)});
  failures += std::fabs(ours - expected) > tolerance || rows.back().follows();
}

ModelShape llama(int64_t hidden, int64_t ffn, int64_t layers, int64_t heads,
                 int64_t sequence) {
  ModelShape m;
  m.architecture = "llama";
  m.vocab = 128256;
  m.hidden = hidden;
  m.ffn = ffn;
  m.layers = layers;
  m.heads = heads;
  m.kvHeads = 8;
  m.headDim = 128;
  m.sequence = sequence;
  return m;
}

const ModelShape k70b = llama(8192, 28672, 80, 64, 8192);
const ModelShape k405b = llama(16384, 53248, 126, 128, 8192);

/// 1024 H100 with 50 GB/s of network each, 512 sequences of 8192.
Job job70b(Representation representation) {
  Job job;
  job.model = k70b;
  job.device = *findAccelerator("h100-sxm");
  job.nodes = 128;
  job.gpusPerNode = 8;
  job.intraBandwidth = job.device.intraNodeBwGbs * 1e9;
  job.interBandwidth = 50e9;
  job.memoryBandwidth = job.device.memBwGbs * 1e9;
  job.reserveBytes = uint64_t{2} << 30;
  job.limitBytes = uint64_t{78} << 30;
  job.pricePerGpuHour = 2.5;
  job.gpuMtbfHours = 50000;
  job.globalBatch = 512;
  job.trainSteps = 1000;
  job.representation = representation;
  return job;
}

/// TP8 + SP, PP4, 4 chunks a rank, DP32 with a sharded optimizer, micro-batch
/// 1: the series' choice for 70B on 1024 H100.
Choice seriesChoice() {
  Choice c;
  c.tp = 8;
  c.sequenceParallel = true;
  c.pp = 4;
  c.v = 4;
  c.dp = 32;
  c.zero = 1;
  c.numMicroBatches = 16;
  c.schedule = ScheduleKind::Interleaved;
  c.layout.assign(16, 5);
  return c;
}

void states() {
  double n70 = static_cast<double>(k70b.parameters());
  double n405 = static_cast<double>(k405b.parameters());
  equal("70B: parameters, gradients, optimizer", 1.13, 16 * n70 / 1e12, 5e-3,
        "TB", "16 bytes a parameter (2 + 2 + 12), both embeddings counted");
  equal("405B: the same", 6.49, 16 * n405 / 1e12, 5e-3, "TB",
        "16 bytes a parameter");
  equal("70B against a card of 80 GB", 14, 16 * n70 / 80e9, 0.5, "times",
        "the 70B's 1.13 TB; the 405B would be 81 times");
  equal("405B: checkpoint", 5.7, 14 * n405 / 1e12, 0.05, "TB",
        "14 bytes a parameter: bf16 weights, fp32 main weights, two moments");
}

/// Bytes that a layer saves for one micro-batch of one sequence without
/// splits, from what one more layer on a stage costs.
double layerActivations(const ModelShape &shape, Recompute recompute,
                        int64_t tp) {
  Job job = job70b(Representation::Megatron);
  job.model = shape;
  job.nodes = 1;
  job.gpusPerNode = static_cast<int64_t>(tp);
  job.globalBatch = 1;
  Accountant accountant(job);
  Choice c;
  c.tp = tp;
  c.sequenceParallel = tp > 1;
  c.recompute = recompute;
  auto of = [&](int64_t layers) {
    c.layout = {layers};
    return static_cast<double>(accountant.memory(c, 0).activations);
  };
  return of(9) - of(8);
}

void activations() {
  // The paper's GPT: multi-head attention, GELU with f = 4 h, dropout masks.
  ModelShape gpt = k70b;
  gpt.architecture = "gpt2";
  gpt.gated = false;
  gpt.layerNorm = gpt.linearBias = true;
  gpt.hidden = 4096;
  gpt.heads = gpt.kvHeads = 32;
  gpt.ffn = 4 * gpt.hidden;
  gpt.sequence = 2048;
  gpt.learnedPositions = 2048;
  double sbh = 2048.0 * 4096.0;
  equal("activations of a layer / sbh", 34,
        layerActivations(gpt, Recompute::None, 1) / sbh, 0.5, "bytes",
        "megatron, GPT with f = 4h, without the 5as/h of unfused attention");
  double none = layerActivations(gpt, Recompute::None, 1),
         full = layerActivations(gpt, Recompute::Full, 1);
  equal("full recompute: less activation", 94, 100 * (1 - full / none), 0.5,
        "%", "1 - 2/34: the input of each layer stays");
  equal("full recompute: more FLOPs", 33, 100.0 * (4.0 / 3 - 1), 0.5, "%",
        "forward : backward = 1 : 2, one forward more");
}

void schedule() {
  Choice c = seriesChoice();
  equal("bubble, PP4 with 4 chunks, 16 micro-batches", 4.69,
        100 * scheduleBubble(shapeOf(c)), 5e-3, "%",
        "interleaved 1F1B, (p - 1)/(v m) = 3/64 of the ideal time");
}

void stepTimes() {
  constexpr double peak = 989.4e12, tokens = 512.0 * 8192, devices = 1024;
  auto ideal = [&](AttentionFlops convention) {
    return modelFlops(k70b, convention).total() * tokens / (devices * peak);
  };
  double square = ideal(AttentionFlops::Square),
         causal = ideal(AttentionFlops::Causal);
  equal("70B: ideal step", 2.0, square, 0.05, "s",
        "6N without the input embedding + 12Lsh, 989.4 TFLOP/s, 1024 devices");
  equal("70B: step at 42 % MFU", 4.75, square / 0.42, 5e-3, "s",
        "the same convention");
  equal("70B: tokens/s", 880, tokens / (square / 0.42) / 1e3, 5, "k",
        "the same");
  // The other chapter counts N with the input embedding, attention causally.
  double other = (6.0 * static_cast<double>(k70b.parameters()) +
                  modelFlops(k70b, AttentionFlops::Causal).attention) *
                 tokens / (devices * peak);
  equal("70B: ideal step, the other convention", 1.886, other, 5e-4, "s",
        "6N with both embeddings + 6Lsh (causal)");
  differs("70B: MFU of 4.75 s by that convention", 42, 39.7, 100 * other / 4.75,
          0.05, "%", "1.886 / 4.75: below the series' own bar of 40 %");
  differs("70B: ideal step, as reckon counts", 2.0, 1.860, causal, 5e-4, "s",
          "6N without the input embedding + 6Lsh (causal)");
}

/// What one rank of TP8 x FSDP128 sends in a step with 4 micro-batches.
void shardedTraffic() {
  // Weights are gathered twice a micro-batch, gradients reduced once, in fp32.
  double shard = static_cast<double>(k70b.parameters()) / 8;
  double ring = 127.0 / 128;
  double bytes = (4 * 2 * 2.0 + 4.0) * shard * ring;
  equal("TP8 x FSDP128: traffic of a rank", 175, bytes / 1e9, 0.5, "GB",
        "4 micro-batches: 8 all-gathers of bf16 and one fp32 reduce-scatter");
  equal("the same at 50 GB/s", 3.5, bytes / 50e9, 0.05, "s",
        "one port of 400 Gbit/s a device, nothing hidden");
  differs("the same by \"3N\"", 175, 52.5, 3 * 2.0 * shard * ring / 1e9, 0.5,
          "GB", "3N counts one micro-batch; the factor is gathering again");
}

void perDevice() {
  Accountant accountant(job70b(Representation::Megatron));
  StageMemory m = accountant.memory(seriesChoice(), 0);
  // Bare: states, activations; embedding on the first rank.
  double bare = static_cast<double>(m.parameters + m.gradients + m.optimizer +
                                    m.activations) /
                1e9;
  double whole = static_cast<double>(m.total()) / 1e9;
  equal("70B, the series' choice, states and activations", 41.2, bare, 1.5,
        "GB",
        "14.06 GB states at 2 + 4 + 12/32 bytes, 34sbh/8 x 95 layers in "
        "flight; no logits, buffers or reserve");
  double reserve = static_cast<double>(m.reserve) / 1e9;
  auto fragmented = [&](double factor) {
    return (whole - reserve) * factor + reserve;
  };
  double low = fragmented(1.05), high = fragmented(1.10);
  equal("and logits, buffers, workspace, reserve", 45.3, whole, 0.5, "GB",
        "2 GiB of reserve; buffers of pipeline and data parallelism");
  equal("about 49 GB a device", 49, (low + high) / 2, (high - low) / 2, "GB",
        "a band: a caching allocator's 5 to 10 % on top; the text lists no "
        "parts, so this reading is one of several");
}

void faults() {
  using namespace reckon::goodput;
  struct Scenario {
    const char *name;
    double printed, delta, detect, restart, load;
  };
  double m = jobMtbf(50000 * 3600.0, 16384);
  for (Scenario s : {Scenario{"synchronous", 70.8, 300, 600, 300, 120},
                     {"asynchronous", 86.7, 10, 600, 300, 120},
                     {"and fast restart", 94.5, 10, 60, 30, 60}}) {
    Terms terms{m, s.delta, s.detect, s.restart, s.load};
    equal(std::string("goodput, 16384 devices, ") + s.name, s.printed,
          100 * goodput(terms, youngInterval(terms)), 0.05, "%",
          "M = 50000 h / 16384, tau = sqrt(2 delta M); delta, detect, restart, "
          "load = " +
              std::to_string(static_cast<int>(s.delta)) + ", " +
              std::to_string(static_cast<int>(s.detect)) + ", " +
              std::to_string(static_cast<int>(s.restart)) + ", " +
              std::to_string(static_cast<int>(s.load)) + " s");
  }
  auto waste = [](double delta) {
    return 100 * leastWaste(Terms{3.1 * 3600, delta, 0, 0, 0});
  };
  equal("waste of a 10-minute checkpoint", 33, waste(600), 0.5, "%",
        "sqrt(2 delta / M), M = 3.1 h");
  equal("waste of a 2-second checkpoint", 1.9, waste(2), 0.05, "%", "the same");
}

void money() {
  double days = 30.0 / 42;
  equal("one point of MFU", 0.71, days, 5e-3, "days",
        "1/42 of a 30-day job: the derivative at 42 %");
  equal("the same in money", 44, days * 24 * 1024 * 2.5 / 1e3, 0.5, "k$",
        "1024 devices at $2.5 an hour");
}

} // namespace

int main() {
  states();
  activations();
  schedule();
  stepTimes();
  shardedTraffic();
  perDevice();
  faults();
  money();
  std::printf("| number | the series | here | | assumptions |\n"
              "|---|---|---|---|---|\n");
  for (const Row &row : rows)
    std::printf("| %s | %.4g %s | %.4g %s | %s | %s |\n", row.number.c_str(),
                row.printed, row.unit, row.ours, row.unit,
                row.follows() ? "follows" : "does not follow",
                row.assumptions.c_str());
  if (failures)
    std::printf("%d numbers are not what they should be\n", failures);
  return failures ? 1 : 0;
}
