//===- Efficiency.cpp - how close to its nominal speed a machine runs -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Efficiency.h"

#include "frontends/spec/Scalars.h"
#include "runtime/base/Csv.h"

#include <array>
#include <cctype>
#include <cstdio>

using namespace reckon;
using namespace reckon::model;

namespace {

// The bytes of efficiency.csv, put here by CMake.
constexpr const char tableText[] =
#include "passes/model/time/EfficiencyData.inc"
    ;

struct Constant {
  std::string_view name;
  double Efficiency::*member;
};

constexpr Constant constants[] = {
    {"matmul_bf16_tflops", &Efficiency::matmulBf16Tflops},
    {"matmul_fp8_tflops", &Efficiency::matmulFp8Tflops},
    {"matmul_fraction", &Efficiency::matmulFraction},
    {"eta", &Efficiency::eta},
    {"multiprocessors", &Efficiency::multiprocessors},
    {"power", &Efficiency::power},
    {"fusion", &Efficiency::fusion},
    {"fused_norm", &Efficiency::fusedNorm},
    {"norm_eager", &Efficiency::normEager},
    {"host_tensor", &Efficiency::hostTensor},
    {"host_tensor_pipeline", &Efficiency::hostTensorPipeline},
    {"all_reduce_overlap", &Efficiency::allReduceOverlap},
    {"fused_loss", &Efficiency::fusedLoss},
    {"fused_accumulate", &Efficiency::fusedAccumulate},
    {"tensor_overlap", &Efficiency::tensorOverlap},
    {"plain_overlap", &Efficiency::plainOverlap},
    {"fsdp", &Efficiency::fsdp},
    {"eager_host", &Efficiency::eagerHost},
    {"elementwise_partly", &Efficiency::elementwisePartly},
    {"elementwise_eager", &Efficiency::elementwiseEager},
    {"logit_eager", &Efficiency::logitEager},
    {"accumulate_eager", &Efficiency::accumulateEager},
    {"tensor_split", &Efficiency::tensorSplit},
    {"plain_split", &Efficiency::plainSplit},
    {"shard_contention_1", &Efficiency::shardContention1},
    {"shard_contention_2", &Efficiency::shardContention2},
    {"host_graph", &Efficiency::hostGraph},
    {"host_eager", &Efficiency::hostEager},
    {"matmul_ramp", &Efficiency::matmulRamp},
    {"matmul_memory", &Efficiency::matmulMemory},
    {"kernel_latency", &Efficiency::kernelLatency},
    {"split_latency", &Efficiency::splitLatency},
    {"misaligned", &Efficiency::misaligned},
    {"attention_kernel", &Efficiency::attentionKernel},
    {"flash1_forward", &Efficiency::flash1Forward},
    {"flash1_backward", &Efficiency::flash1Backward},
    {"flash2_forward", &Efficiency::flash2Forward},
    {"flash2_backward", &Efficiency::flash2Backward},
    {"flash3_forward", &Efficiency::flash3Forward},
    {"flash3_backward", &Efficiency::flash3Backward},
    {"attention_half", &Efficiency::attentionHalf},
    {"small_head", &Efficiency::smallHead},
    {"unfused_forward_bytes", &Efficiency::unfusedForwardBytes},
    {"unfused_backward_bytes", &Efficiency::unfusedBackwardBytes},
    {"memory", &Efficiency::memory},
    {"norm_bytes", &Efficiency::normBytes},
    {"rotary_bytes", &Efficiency::rotaryBytes},
    {"gated_bytes", &Efficiency::gatedBytes},
    {"gelu_bytes", &Efficiency::geluBytes},
    {"elementwise_backward", &Efficiency::elementwiseBackward},
    {"logit_bytes", &Efficiency::logitBytes},
    {"cast_bytes", &Efficiency::castBytes},
    {"selective_matmul", &Efficiency::selectiveMatmul},
    {"selective_elementwise", &Efficiency::selectiveElementwise},
    {"intra", &Efficiency::intra},
    {"inter", &Efficiency::inter},
    {"intra_latency", &Efficiency::intraLatency},
    {"inter_latency", &Efficiency::interLatency},
    {"intra_hop", &Efficiency::intraHop},
    {"inter_hop", &Efficiency::interHop},
    {"inter_scale", &Efficiency::interScale},
    {"tensor_inter", &Efficiency::tensorInter},
    {"tensor_inter_hop", &Efficiency::tensorInterHop},
    {"context_exposed", &Efficiency::contextExposed},
    {"expert_exposed", &Efficiency::expertExposed},
    {"pipeline_split", &Efficiency::pipelineSplit},
    {"pipeline_hidden", &Efficiency::pipelineHidden},
    {"data_overlap", &Efficiency::dataOverlap},
    {"data_backward", &Efficiency::dataBackward},
    {"data_forward", &Efficiency::dataForward},
    {"data_always", &Efficiency::dataAlways},
    {"gradient_bytes", &Efficiency::gradientBytes},
    {"bucket_bytes", &Efficiency::bucketBytes},
    {"permute_bytes", &Efficiency::permuteBytes},
    {"imbalance", &Efficiency::imbalance},
    {"expert_latency", &Efficiency::expertLatency},
    {"expert_inter", &Efficiency::expertInter},
    {"grouped_matmul", &Efficiency::groupedMatmul},
    {"optimizer_shard_bytes", &Efficiency::optimizerShardBytes},
    {"optimizer_local_bytes", &Efficiency::optimizerLocalBytes},
    {"step_overhead", &Efficiency::stepOverhead},
    {"host_expert", &Efficiency::hostExpert},
    {"host_micro_batch", &Efficiency::hostMicroBatch},
    {"jitter", &Efficiency::jitter},
    {"factor", &Efficiency::factor},
    {"error_band", &Efficiency::errorBand},
};

const Constant *findConstant(std::string_view name) {
  for (const Constant &constant : constants)
    if (constant.name == name)
      return &constant;
  return nullptr;
}

const std::string kFile = "efficiency.csv";

constexpr std::array<std::string_view, 7> header = {
    "scope", "key", "constant", "value", "tag", "date", "source"};

Error tableError(size_t line, const std::string &what) {
  return csvError(kFile, line, what);
}

bool isScope(std::string_view scope) {
  return scope == "global" || scope == "generation" || scope == "chip" ||
         scope == "family" || scope == "release" || scope == "factor";
}

/// `NeMo` begins `NeMo 24.03`, not `NeMoX`.
bool begins(std::string_view key, std::string_view profile) {
  if (!profile.starts_with(key))
    return false;
  return profile.size() == key.size() ||
         !std::isalnum(static_cast<unsigned char>(profile[key.size()]));
}

/// The microarchitecture, which decides what kernels exist.
std::string_view generation(const Accelerator &device) {
  std::string_view name = device.name;
  if (name.starts_with("a100"))
    return "ampere";
  if (name.starts_with("h100") || name.starts_with("h200") ||
      name.starts_with("h800"))
    return "hopper";
  if (name.starts_with("b200") || name.starts_with("b300") ||
      name.starts_with("gb200") || name.starts_with("gb300"))
    return "blackwell";
  return device.isCpu() ? "cpu" : "";
}

} // namespace

Result<std::vector<EfficiencyRow>>
model::parseEfficiency(std::string_view csv) {
  Result<std::vector<CsvRow>> rows = readCsv(csv, kFile, header);
  if (!rows)
    return rows.error();
  std::vector<EfficiencyRow> table;
  for (const auto &[number, cells] : *rows) {
    std::optional<double> value = parseReal(cells[3]);
    if (!isScope(cells[0]))
      return tableError(number, "expected a scope, got " + cells[0]);
    if (!findConstant(cells[2]))
      return tableError(number, "expected a constant, got " + cells[2]);
    if (!value || *value < 0)
      return tableError(number, "expected a number, got " + cells[3]);
    if (cells[4].size() != 1 ||
        std::string_view("PGFAM").find(cells[4][0]) == std::string_view::npos)
      return tableError(number,
                        "expected one of P, G, F, A, M, got " + cells[4]);
    table.push_back({cells[0], cells[1], cells[2], *value, cells[4][0],
                     cells[5], cells[6]});
  }
  return table;
}

const std::vector<EfficiencyRow> &model::efficiencyTable() {
  static const std::vector<EfficiencyRow> table = [] {
    auto parsed = parseEfficiency(tableText);
    if (!parsed.ok())
      std::fprintf(stderr, "reckon: %s\n", parsed.error().message.c_str());
    RECKON_CHECK(parsed.ok());
    return *parsed;
  }();
  return table;
}

std::string model::profileFamily(std::string_view profile,
                                 const std::vector<EfficiencyRow> &table) {
  std::string best;
  for (const EfficiencyRow &row : table)
    if (row.scope == "family" && row.key.size() > best.size() &&
        begins(row.key, profile))
      best = row.key;
  return best;
}

bool model::isEfficiencyConstant(std::string_view name) {
  return findConstant(name) != nullptr;
}

std::string model::factorKey(const Job &job, std::string_view family) {
  return job.device.name + "/" + toString(job.precision) + "/" +
         std::string(family);
}

Efficiency model::efficiencyFor(const Job &job,
                                const std::vector<EfficiencyRow> &table) {
  Efficiency result;
  result.family = profileFamily(job.profile, table);
  result.known = !result.family.empty();
  std::string factor = factorKey(job, result.family);
  std::string_view chip = job.device.name, kind = generation(job.device);

  auto apply = [&](const EfficiencyRow &row) {
    result.*findConstant(row.constant)->member = row.value;
    result.rows.push_back(&row);
  };
  auto applyAll = [&](std::string_view scope, auto matches) {
    for (const EfficiencyRow &row : table)
      if (row.scope == scope && matches(row.key))
        apply(row);
  };
  applyAll("global", [](const std::string &) { return true; });
  applyAll("generation", [&](const std::string &k) { return k == kind; });
  applyAll("chip", [&](const std::string &k) { return k == chip; });
  if (result.known) {
    applyAll("family",
             [&](const std::string &k) { return k == result.family; });
    // Releases in the file's order: general ones first.
    applyAll("release", [&](std::string_view key) {
      size_t at = key.find('@');
      if (at != key.npos && key.substr(at + 1) != kind)
        return false;
      return begins(key.substr(0, at), job.profile);
    });
    size_t before = result.rows.size();
    applyAll("factor", [&](const std::string &k) { return k == factor; });
    result.fitted = result.rows.size() > before;
  }
  for (const auto &[name, value] : job.calibration)
    if (const Constant *constant = findConstant(name))
      result.*constant->member = value;
  // What the switches select.
  result.elementwise = result.fusion >= 2   ? 1
                       : result.fusion >= 1 ? result.elementwisePartly
                                            : result.elementwiseEager;
  if (result.fusedNorm < 1)
    result.normBytes *= result.normEager;
  if (result.fusedLoss < 1)
    result.logitBytes = result.logitEager;
  result.weightGradBytes = result.fusedAccumulate > 0 ? 8 : 2;
  result.accumulateBytes =
      result.fusedAccumulate > 0 ? 0 : result.accumulateEager;
  result.tensorForward = result.tensorBackward =
      1 - result.tensorOverlap * (1 - result.tensorSplit);
  result.tensorPlainForward = 1;
  result.tensorPlainBackward =
      1 - result.plainOverlap * (1 - result.plainSplit);
  result.shardContention =
      result.fsdp >= 2 ? result.shardContention2 : result.shardContention1;
  result.hostLayer = result.eagerHost > 0 ? result.hostEager : result.hostGraph;
  if (result.eagerHost <= 0)
    result.hostTensor = result.hostTensorPipeline = 0;
  return result;
}
