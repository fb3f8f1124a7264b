//===- PublishedRow.cpp - a row of the table of published runs ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/accuracy/PublishedRow.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>

using namespace reckon;
using namespace reckon::accuracy;

std::vector<Row> accuracy::readCsv(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      cells.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c == '\n' && !quoted) {
      lines.push_back(std::move(cells));
      cells.assign(1, "");
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (cells.size() > 1)
    lines.push_back(std::move(cells));
  std::vector<Row> rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    Row row;
    for (size_t k = 0; k < lines[0].size() && k < lines[i].size(); ++k)
      row[lines[0][k]] = lines[i][k];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<double> accuracy::number(const Row &row,
                                       const std::string &column) {
  auto cell = row.find(column);
  if (cell == row.end() || cell->second.empty())
    return std::nullopt;
  return std::strtod(cell->second.c_str(), nullptr);
}

namespace {

const std::map<std::string, std::string> chips = {
    {"A100-SXM-40GB", "a100-sxm-40gb"},
    {"A100-SXM-80GB", "a100-sxm-80gb"},
    {"A100-class (NVIDIA Ampere, model not named)", "a100-sxm-80gb"},
    {"H100-SXM-80GB", "h100-sxm"},
    {"H200-SXM-141GB", "h200-sxm"},
    {"H800-SXM-80GB", "h800-sxm"},
    {"H100-SXM-96GB-HBM2e-500W", "h100-sxm-96gb-hbm2e"},
    {"H100-SXM-94GB-HBM2e-500W", "h100-sxm-94gb-hbm2e"},
    {"B200-SXM-180GB", "b200-sxm"},
    {"B300-SXM", "b300-sxm"},
    {"GB200-NVL72", "gb200-nvl72"},
    {"GB300-NVL72", "gb300-nvl72"}};

std::string lower(std::string text) {
  for (char &c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool has(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

int64_t integer(const Row &row, const char *column, int64_t otherwise = 0) {
  return static_cast<int64_t>(number(row, column).value_or(otherwise));
}

double parameters(const Row &row, int matrices, int embeddings) {
  auto h = double(integer(row, "hidden"));
  auto heads = double(integer(row, "heads"));
  auto kv = double(integer(row, "kv_heads", integer(row, "heads")));
  double attention = 2 * h * h + 2 * h * h * kv / heads;
  return double(integer(row, "layers")) *
             (attention + matrices * h * double(integer(row, "ffn"))) +
         embeddings * double(integer(row, "vocab")) * h;
}

void setModel(const Row &row, model::ModelShape &m) {
  std::string name = lower(row.at("model"));
  int64_t experts = integer(row, "experts");
  bool gated = true, tied = false;
  if (auto billions = number(row, "params_b"); experts == 0 && billions) {
    double best = INFINITY;
    for (int matrices : {2, 3}) {
      if (matrices == 2 && has(name, "llama"))
        continue;
      for (int embeddings : {1, 2}) {
        double off =
            std::abs(parameters(row, matrices, embeddings) - *billions * 1e9);
        if (off < best) {
          best = off;
          gated = matrices == 3;
          tied = embeddings == 1;
        }
      }
    }
  }
  m.name = row.at("model");
  m.architecture = experts ? "mixtral" : gated ? "llama" : "gpt2";
  m.vocab = integer(row, "vocab");
  m.hidden = integer(row, "hidden");
  m.ffn = integer(row, "ffn");
  m.layers = integer(row, "layers");
  m.heads = integer(row, "heads");
  m.kvHeads = integer(row, "kv_heads", m.heads);
  m.headDim = m.hidden / m.heads;
  m.sequence = integer(row, "seq_len");
  m.gated = gated;
  m.layerNorm = m.linearBias = !gated;
  m.learnedPositions = gated ? 0 : m.sequence;
  m.tied = tied;
  if (experts > 0) {
    m.experts = experts;
    m.topK = integer(row, "top_k", 2);
    m.expertFfn = m.ffn;
  }
  bool deepseek = has(name, "deepseek-v3"), kimi = has(name, "kimi");
  if (deepseek || kimi) {
    m.architecture = "deepseek_v3";
    m.mla = {1536, 512, 128, 64, 128};
    m.sharedExperts = 1;
    m.firstDense = deepseek ? 3 : 1;
    m.ffn = 18432;
    m.kvHeads = m.heads;
  }
  if (has(name, "qwen3"))
    m.headDim = 128;
  if (has(name, "gpt-oss") || has(name, "gpt_oss"))
    m.headDim = 64;
}

} // namespace

Case accuracy::makeCase(const Row &row) {
  Case result;
  for (const char *column :
       {"layers", "hidden", "ffn", "heads", "vocab", "seq_len", "num_gpus",
        "tp", "pp", "dp", "global_batch_sequences", "micro_batch"})
    if (!number(row, column))
      result.why +=
          (result.why.empty() ? "row lacks " : ",") + std::string(column);
  if (!result.why.empty())
    return result;
  auto chip = chips.find(row.at("gpu"));
  const std::string &sharding = row.at("zero_stage_or_sharding");
  if (chip == chips.end())
    result.why = "unknown chip " + row.at("gpu");
  else if (has(sharding, "offload"))
    result.why = "optimizer offload";
  else if (row.at("precision").empty())
    result.why = "no precision";
  if (!result.why.empty())
    return result;

  model::Job &job = result.job;
  setModel(row, job.model);
  job.device = *findAccelerator(chip->second);
  int64_t gpus = integer(row, "num_gpus");
  int64_t domain = has(row.at("gpu"), "NVL72") ? 72 : 8;
  job.nodes = std::max<int64_t>(1, (gpus + domain - 1) / domain);
  job.gpusPerNode = std::min(gpus, domain);
  if (job.devices() != gpus) {
    job.gpusPerNode = std::gcd(gpus, job.gpusPerNode);
    job.nodes = gpus / job.gpusPerNode;
  }
  job.intraBandwidth = job.device.intraNodeBwGbs * 1e9;
  job.interBandwidth = job.device.interNodeBwGbsPerGpu * 1e9;
  job.memoryBandwidth = job.device.memBwGbs * 1e9;
  job.reserveBytes =
      static_cast<uint64_t>(job.device.memoryReserveGib * 1073741824.0);
  job.limitBytes =
      static_cast<uint64_t>(job.device.memoryBytes()) - job.reserveBytes;
  job.globalBatch = integer(row, "global_batch_sequences");
  job.precision =
      row.at("precision") == "fp8" ? Precision::Fp8 : Precision::Bf16;
  job.profile = row.at("framework");
  std::string framework = lower(job.profile);
  job.representation = Representation::Megatron;
  if (has(sharding, "fsdp") || has(framework, "torchtitan"))
    job.representation = Representation::TorchTitan;
  else if (has(framework, "hf + liger"))
    job.representation = Representation::DeepSpeed;

  model::Choice &c = result.choice;
  c.tp = integer(row, "tp");
  c.sequenceParallel = row.at("sp") == "yes" && c.tp > 1;
  c.cp = integer(row, "cp", 1);
  c.contextMethod = c.cp > 1 ? ContextMethod::Ring : ContextMethod::None;
  c.pp = integer(row, "pp");
  c.v = integer(row, "vpp", 1);
  c.schedule =
      c.v > 1 ? PipelineSchedule::Interleaved : PipelineSchedule::OneFOneB;
  c.dp = integer(row, "dp");
  c.ep = integer(row, "ep", 1);
  c.microBatch = integer(row, "micro_batch");
  c.precision = job.precision;
  c.zero = has(sharding, "zero3") || has(sharding, "fsdp2") ? 3
           : has(sharding, "zero2")                         ? 2
           : has(sharding, "zero1")                         ? 1
                                                            : 0;
  const std::string &recompute = row.at("recompute");
  result.recomputeOpen = recompute.empty();
  c.recompute = recompute == "full"        ? Recompute::Full
                : recompute == "selective" ? Recompute::Selective
                                           : Recompute::None;
  if (job.globalBatch % (c.dp * c.microBatch) != 0)
    result.why = "the batch does not divide";
  else
    c.numMicroBatches = job.globalBatch / (c.dp * c.microBatch);
  return result;
}
