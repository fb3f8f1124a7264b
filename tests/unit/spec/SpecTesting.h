//===- SpecTesting.h - specs in memory for tests --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_SPEC_SPECTESTING_H
#define RECKON_TESTS_UNIT_SPEC_SPECTESTING_H

#include "frontends/spec/Load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reckon::testing_spec {

/// A small spec without faults: 8 GPUs, 4 layers, 4 heads of 16.
inline const char *goodSpec = R"(model:
  architecture: llama
  vocab_size: 256
  hidden_size: 64
  intermediate_size: 176
  num_hidden_layers: 4
  num_attention_heads: 4
  num_key_value_heads: 2
cluster:
  accelerator: h100-sxm
  nodes: 1
  gpus_per_node: 8
training:
  sequence_length: 64
  global_batch_size: 16
)";

/// The text with the first `find` replaced; fails the test when absent.
inline std::string edited(std::string text, const std::string &find,
                          const std::string &replacement) {
  size_t at = text.find(find);
  EXPECT_NE(at, std::string::npos) << find;
  return at == std::string::npos ? text
                                 : text.replace(at, find.size(), replacement);
}

/// The good spec with more text after it.
inline std::string goodAnd(const std::string &more) { return goodSpec + more; }

/// What loading gave, from files that exist only here.
struct Loaded {
  Result<Spec> spec;
  std::vector<Diagnostic> errors;

  /// All errors as they would be printed.
  std::string text() const { return joinDiagnostics(errors); }
  std::string warnings() const {
    return spec.ok() ? joinDiagnostics(spec->warnings) : "";
  }
};

inline Loaded
loadFiles(const std::vector<std::pair<std::string, std::string>> &files,
          const std::vector<std::string> &sets = {}) {
  FakeFileSystem fileSystem;
  std::vector<std::string> names;
  for (const auto &[name, text] : files) {
    fileSystem.files[name] = text;
    names.push_back(name);
  }
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(names, sets, errors, fileSystem);
  return {std::move(spec), std::move(errors)};
}

inline Loaded load(const std::string &text,
                   const std::vector<std::string> &sets = {}) {
  return loadFiles({{"spec.yaml", text}}, sets);
}

/// The spec, or an empty one and a failed test.
inline Spec loadGood(const std::string &text,
                     const std::vector<std::string> &sets = {}) {
  Loaded loaded = load(text, sets);
  EXPECT_TRUE(loaded.spec.ok()) << loaded.text();
  return loaded.spec.ok() ? *loaded.spec : Spec();
}

} // namespace reckon::testing_spec

#endif // RECKON_TESTS_UNIT_SPEC_SPECTESTING_H
