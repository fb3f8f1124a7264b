//===- Importer.h - the parts of the import -------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_IMPORT_MEGATRON_IMPORTER_H
#define RECKON_FRONTENDS_IMPORT_MEGATRON_IMPORTER_H

#include "frontends/import/megatron/Arguments.h"
#include "frontends/import/megatron/Import.h"
#include "frontends/spec/Node.h"

namespace reckon::megatron {

/// Builds the tree of a spec from arguments. Where a flag is absent,
/// Megatron's default of it is written, never the spec's.
class Importer {
public:
  Importer(Arguments &arguments, Imported &out) : args_(arguments), out_(out) {}

  void model();
  void training();
  void parallelism();
  void cluster(const std::string &accelerator);
  /// Refuses what has a bearing and was not read; notes the rest.
  void leftovers();

  const Node &root() const { return root_; }

private:
  void architecture();
  void positions();
  void attention();
  void experts();
  void batch();
  void learningRate();
  void precision();
  void stages();
  void recompute();

  void put(std::string_view path, std::string value, bool quoted = false);
  void put(std::string_view path, const char *value) {
    put(path, std::string(value));
  }
  void put(std::string_view path, int64_t value);
  void put(std::string_view path, double value);
  void put(std::string_view path, bool value);
  void put(std::string_view path, const std::vector<int64_t> &values);
  void put(std::string_view path, const std::vector<double> &values);
  Node &at(std::string_view path);
  void note(std::string text) { out_.notes.push_back(std::move(text)); }
  int64_t required(const char *flag);
  bool gpt2Tokenizer() {
    return args_.knownText("--tokenizer-type") == "GPT2BPETokenizer";
  }

  Arguments &args_;
  Imported &out_;
  Node root_;
  std::string architecture_;
  int64_t layers_ = 0, pp_ = 1, batch_ = 0;
};

/// 0 for dense and 1 for expert layers, of --moe-layer-freq: a whole number or
/// lists with + and *, such as "([0]*3+[1]*58)". Nothing when it is neither.
std::optional<std::vector<int64_t>> layerPattern(std::string_view text,
                                                 int64_t layers);

} // namespace reckon::megatron

#endif // RECKON_FRONTENDS_IMPORT_MEGATRON_IMPORTER_H
