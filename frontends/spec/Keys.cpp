//===- Keys.cpp - look-ups in the table of keys ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Keys.h"

#include "frontends/spec/Suggest.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace reckon {
namespace {

/// Names that other frameworks give to our keys.
constexpr std::pair<std::string_view, std::string_view> synonyms[] = {
    {"model_type", "model.architecture"},
    {"arch", "model.architecture"},
    {"num_layers", "model.num_hidden_layers"},
    {"n_layers", "model.num_hidden_layers"},
    {"n_layer", "model.num_hidden_layers"},
    {"layers", "model.num_hidden_layers"},
    {"num_heads", "model.num_attention_heads"},
    {"n_heads", "model.num_attention_heads"},
    {"n_head", "model.num_attention_heads"},
    {"n_kv_heads", "model.num_key_value_heads"},
    {"num_kv_heads", "model.num_key_value_heads"},
    {"num_query_groups", "model.num_key_value_heads"},
    {"ffn_hidden_size", "model.intermediate_size"},
    {"ffn_dim", "model.intermediate_size"},
    {"dim", "model.hidden_size"},
    {"d_model", "model.hidden_size"},
    {"n_embd", "model.hidden_size"},
    {"kv_channels", "model.head_dim"},
    {"norm_epsilon", "model.rms_norm_eps"},
    {"gpu", "cluster.accelerator"},
    {"gpu_type", "cluster.accelerator"},
    {"num_nodes", "cluster.nodes"},
    {"nnodes", "cluster.nodes"},
    {"nproc_per_node", "cluster.gpus_per_node"},
    {"ntasks_per_node", "cluster.gpus_per_node"},
    {"seq_len", "training.sequence_length"},
    {"seq_length", "training.sequence_length"},
    {"max_seq_len", "training.sequence_length"},
    {"batch_size", "training.global_batch_size"},
    {"train_iters", "training.train_steps"},
    {"max_steps", "training.train_steps"},
    {"steps", "training.train_steps"},
    {"dtype", "training.precision"},
    {"learning_rate", "training.optimizer.lr"},
    {"grad_clip", "training.optimizer.clip_grad"},
    {"max_norm", "training.optimizer.clip_grad"},
    {"tp", "parallelism.tensor_parallel"},
    {"sp", "parallelism.sequence_parallel"},
    {"cp", "parallelism.context_parallel"},
    {"pp", "parallelism.pipeline_parallel"},
    {"vpp", "parallelism.virtual_pipeline"},
    {"ep", "parallelism.expert_parallel"},
    {"dp", "parallelism.data_parallel"},
    {"mbs", "parallelism.micro_batch_size"},
    {"schedule", "parallelism.pipeline_schedule"},
    {"activation_checkpointing", "parallelism.recompute"},
};

std::string typeText(const KeyRow &row) {
  switch (row.kind) {
  case KeyKind::Section:
    return "map";
  case KeyKind::Integer:
    return "whole number";
  case KeyKind::Real:
    return "number";
  case KeyKind::Switch:
    return "true or false";
  case KeyKind::Word:
    return listWords(splitWords(row.words));
  case KeyKind::Text:
    return "text";
  case KeyKind::Texts:
    return "text or list of texts";
  case KeyKind::Degrees:
    return "auto, whole number, or list";
  case KeyKind::Switches:
    return "auto, true, false, or list";
  case KeyKind::Words:
    return "auto, or one or a list of: " + listWords(splitWords(row.words));
  case KeyKind::Special:
    return std::string(row.type);
  }
  return "";
}

std::string rangeText(const KeyRow &row) {
  if (row.high <= row.low)
    return "";
  return "from " + formatNumber(row.low) + " to " + formatNumber(row.high);
}

/// A cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c == '|')
      out += "\\|";
    else
      out += c;
  return out;
}

} // namespace

std::string_view KeyRow::name() const {
  size_t dot = path.rfind('.');
  return dot == path.npos ? path : path.substr(dot + 1);
}

std::string_view KeyRow::parent() const {
  size_t dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : path.substr(0, dot);
}

std::string KeyRow::expected() const {
  std::string range = rangeText(*this);
  if (!range.empty())
    range = " " + range;
  switch (kind) {
  case KeyKind::Section:
    return "a map of keys";
  case KeyKind::Integer:
    return "a whole number" + range;
  case KeyKind::Real:
    return "a number" + range;
  case KeyKind::Switch:
    return "true or false";
  case KeyKind::Word:
    return listWords(splitWords(words));
  case KeyKind::Text:
    return "a text";
  case KeyKind::Texts:
    return "a text or a list of texts";
  case KeyKind::Degrees:
    return "auto, a whole number" + range + ", or a list of them";
  case KeyKind::Switches:
    return "auto, true, false, or a list of them";
  case KeyKind::Words:
    return "auto, " + listWords(splitWords(words)) + ", or a list of them";
  case KeyKind::Special:
    return std::string(type);
  }
  return "";
}

const KeyRow *findKey(std::string_view path) {
  for (const KeyRow &row : keyTable())
    if (row.path == path)
      return &row;
  return nullptr;
}

std::vector<const KeyRow *> keysBelow(std::string_view section) {
  std::vector<const KeyRow *> rows;
  for (const KeyRow &row : keyTable())
    if (row.parent() == section)
      rows.push_back(&row);
  return rows;
}

std::string nearestKey(std::string_view section, std::string_view key) {
  // A known name in the wrong section is surer than a similar one here.
  for (const KeyRow &row : keyTable())
    if (row.name() == key)
      return std::string(row.path);
  for (const auto &[theirs, ours] : synonyms)
    if (key == theirs)
      return std::string(ours);
  auto search = [&](bool here) -> std::string {
    std::vector<std::string> names;
    for (const KeyRow &row : keyTable())
      if (!here || row.parent() == section)
        names.emplace_back(row.name());
    std::string name = nearestWord(key, names);
    if (name.empty())
      return "";
    for (const KeyRow &row : keyTable())
      if (row.name() == name && (!here || row.parent() == section))
        return std::string(row.path);
    return "";
  };
  std::string found = search(/*here=*/true);
  return found.empty() ? search(/*here=*/false) : found;
}

std::vector<std::string> splitWords(std::string_view words) {
  std::vector<std::string> parts;
  while (!words.empty()) {
    size_t bar = words.find('|');
    parts.emplace_back(words.substr(0, bar));
    words.remove_prefix(bar == words.npos ? words.size() : bar + 1);
  }
  return parts;
}

std::string formatNumber(double value) {
  char text[40];
  if (value == std::floor(value) && std::fabs(value) < 1e15)
    std::snprintf(text, sizeof text, "%.0f", value);
  else
    std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

std::string keyTableMarkdown() {
  std::string out;
  for (const KeyRow &section : keyTable()) {
    std::vector<const KeyRow *> keys = keysBelow(section.path);
    if (keys.empty())
      continue;
    out += "### `" + std::string(section.path) + "`\n\n";
    out += std::string(section.doc) + "\n\n";
    out += "| key | type | range | default | meaning | compiled now |\n";
    out += "|---|---|---|---|---|---|\n";
    for (const KeyRow *row : keys) {
      std::string fallback(row->fallback);
      if (!fallback.empty() && fallback != "required" && fallback[0] != '(')
        fallback = "`" + fallback + "`";
      std::string compiles =
          row->compiles.empty()
              ? "all"
              : "`" + listWords(splitWords(row->compiles)) + "`";
      if (row->kind == KeyKind::Section)
        compiles = "see below";
      std::string doc(row->doc);
      if (!row->applies.empty())
        doc += " Only: " + listWords(splitWords(row->applies)) + ".";
      out += "| `" + std::string(row->path) + "` | " + cell(typeText(*row)) +
             " | " + rangeText(*row) + " | " + cell(fallback) + " | " +
             cell(doc) + " | " + cell(compiles) + " |\n";
    }
    out += "\n";
  }
  return out;
}

} // namespace reckon
