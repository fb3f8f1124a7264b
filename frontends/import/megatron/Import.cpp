//===- Import.cpp - Megatron arguments as a spec --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/import/megatron/Import.h"

#include "frontends/import/megatron/Flags.h"
#include "frontends/import/megatron/Importer.h"
#include "frontends/spec/Reader.h"

#include <charconv>

using namespace reckon;
using namespace reckon::megatron;

Node &Importer::at(std::string_view path) {
  Node *node = &root_;
  while (!path.empty()) {
    std::string key(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    node->kind = Node::Kind::Map;
    Entry *entry = node->find(key);
    if (!entry) {
      node->entries.push_back({key, {}, {}});
      entry = &node->entries.back();
    }
    node = &entry->value;
  }
  return *node;
}

void Importer::put(std::string_view path, std::string value, bool quoted) {
  Node &node = at(path);
  node.kind = Node::Kind::Scalar;
  node.text = std::move(value);
  node.quoted = quoted;
}

/// The shortest text that reads back as the same number.
static std::string text(double value) {
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}
static std::string text(int64_t value) { return std::to_string(value); }

void Importer::put(std::string_view path, int64_t value) {
  put(path, text(value));
}

void Importer::put(std::string_view path, double value) {
  put(path, text(value));
}

void Importer::put(std::string_view path, bool value) {
  put(path, std::string(value ? "true" : "false"));
}

template <typename T>
static void fill(Node &node, const std::vector<T> &values) {
  node.kind = Node::Kind::List;
  for (T value : values) {
    Node item;
    item.kind = Node::Kind::Scalar;
    item.text = text(value);
    node.items.push_back(std::move(item));
  }
}

void Importer::put(std::string_view path, const std::vector<int64_t> &values) {
  fill(at(path), values);
}

void Importer::put(std::string_view path, const std::vector<double> &values) {
  fill(at(path), values);
}

int64_t Importer::required(const char *flag) {
  if (std::optional<int64_t> value = args_.integer(flag))
    return *value;
  if (!args_.has(flag))
    args_.error(flag, std::string("expected ") + flag +
                          ", which has no default, got nothing; add it");
  return 0;
}

void Importer::leftovers() {
  for (const auto &[flag, remedy] : refusedFlags())
    if (args_.has(flag))
      args_.error(flag, "expected flags that the spec has keys for, got " +
                            flag + "; " + remedy);
  for (const char *flag : {"--main-grads-dtype", "--main-params-dtype",
                           "--exp-avg-dtype", "--exp-avg-sq-dtype"})
    if (std::optional<std::string> type = args_.text(flag);
        type && *type != "fp32")
      args_.error(flag, std::string("expected ") + flag +
                            " fp32, which is what the planner knows, got " +
                            *type + "; remove it");
  std::string flags;
  for (const std::string &flag : args_.unused())
    flags += (flags.empty() ? "" : " ") + flag;
  if (!flags.empty())
    note("without a bearing on a plan: " + flags);
}

Imported megatron::importArguments(const std::string &file,
                                   std::string_view text,
                                   const std::string &accelerator) {
  Imported out;
  Arguments arguments(out.errors);
  arguments.read(file, text);
  if (arguments.empty())
    return out;
  Importer importer(arguments, out);
  importer.model();
  importer.training();
  importer.parallelism();
  importer.cluster(accelerator);
  importer.leftovers();
  if (!out.errors.empty())
    return out;
  out.yaml = "# From the Megatron-LM arguments in " +
             SourceLoc{file, 1, 1}.shortStr().substr(
                 0, SourceLoc{file, 1, 1}.shortStr().find(':')) +
             ".\n";
  for (const std::string &note : out.notes)
    out.yaml += "# " + note + "\n";
  out.yaml += canonicalYaml(importer.root());
  return out;
}
