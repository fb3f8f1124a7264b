//===- BadSpecsTest.cpp - every fault has a place and a remedy ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Keys.h"
#include "tests/unit/spec/SpecTesting.h"

#include <random>

namespace reckon::testing_spec {
namespace {

using ::testing::HasSubstr;

/// One fault: what to change in the good spec, where the error must be, and
/// which words it must hold.
struct Fault {
  const char *name;
  std::string find, replacement;
  unsigned line, column;
  std::vector<std::string> words;
};

class BadSpec : public ::testing::TestWithParam<Fault> {};

TEST_P(BadSpec, IsLocatedAndExplained) {
  const Fault &fault = GetParam();
  Loaded loaded = load(edited(goodSpec, fault.find, fault.replacement));
  ASSERT_FALSE(loaded.spec.ok());
  EXPECT_EQ(loaded.spec.error().code, ExitCode::BadSpec);
  EXPECT_EQ(loaded.spec.error().message, loaded.text());
  bool found = false;
  for (const Diagnostic &error : loaded.errors)
    found |= error.loc == SourceLoc{"spec.yaml", fault.line, fault.column};
  EXPECT_TRUE(found) << loaded.text();
  for (const std::string &word : fault.words)
    EXPECT_THAT(loaded.text(), HasSubstr(word));
  for (const Diagnostic &error : loaded.errors)
    EXPECT_NE(error.message.find("; "), std::string::npos)
        << "no remedy: " << error.message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSpec,
    ::testing::Values(
        Fault{"UnknownKey",
              "hidden_size",
              "hiden_size",
              4,
              3,
              {"hiden_size", "did you mean hidden_size?"}},
        Fault{"WrongType",
              "num_hidden_layers: 4",
              "num_hidden_layers: four",
              6,
              22,
              {"whole number", "model.num_hidden_layers", "four"}},
        Fault{"ListForNumber",
              "num_hidden_layers: 4",
              "num_hidden_layers: [4]",
              6,
              22,
              {"model.num_hidden_layers", "a list"}},
        Fault{"MapForNumber",
              "num_hidden_layers: 4",
              "num_hidden_layers: {a: 4}",
              6,
              22,
              {"a map"}},
        Fault{"QuotedNumber",
              "num_hidden_layers: 4",
              "num_hidden_layers: \"4\"",
              6,
              22,
              {"remove the quotes"}},
        Fault{"Negative",
              "num_hidden_layers: 4",
              "num_hidden_layers: -4",
              6,
              22,
              {"num_hidden_layers", "-4", "positive"}},
        Fault{"Zero",
              "hidden_size: 64",
              "hidden_size: 0",
              4,
              16,
              {"hidden_size", "positive"}},
        Fault{"Fraction",
              "gpus_per_node: 8",
              "gpus_per_node: 7.5",
              12,
              18,
              {"gpus_per_node", "7.5", "fraction"}},
        Fault{"Exponent",
              "gpus_per_node: 8",
              "gpus_per_node: 8e0",
              12,
              18,
              {"gpus_per_node", "exponent"}},
        Fault{"Huge",
              "hidden_size: 64",
              "hidden_size: 99999999999999999999",
              4,
              16,
              {"hidden_size", "99999999999999999999", "too large"}},
        Fault{"Overflow",
              "vocab_size: 256",
              "vocab_size: 9223372036854775807",
              3,
              15,
              {"vocab_size", "too large"}},
        Fault{"HeadsDoNotDivide",
              "num_attention_heads: 4",
              "num_attention_heads: 5",
              7,
              3,
              {"num_attention_heads", "hidden_size 64", "got 5"}},
        // 4 heads in groups of 1, 2 or 4.
        Fault{
            "KvHeadsDoNotDivide",
            "num_key_value_heads: 2",
            "num_key_value_heads: 3",
            8,
            3,
            {"num_key_value_heads", "num_attention_heads 4", "use 1, 2 or 4"}},
        Fault{"MissingKey",
              "  vocab_size: 256\n",
              "",
              1,
              1,
              {"model.vocab_size", "add `vocab_size:`"}},
        Fault{"KeyWithoutValue",
              "vocab_size: 256",
              "vocab_size:",
              1,
              1,
              {"model.vocab_size"}},
        Fault{"UnknownArchitecture",
              "architecture: llama",
              "architecture: lama",
              2,
              17,
              {"lama", "did you mean llama?"}},
        Fault{"UnknownAccelerator",
              "h100-sxm",
              "h100-smx",
              10,
              16,
              {"h100-smx", "did you mean h100-sxm?"}},
        Fault{"KeyTwice",
              "  vocab_size: 256\n",
              "  vocab_size: 256\n  vocab_size: 512\n",
              4,
              3,
              {"vocab_size", "spec.yaml:3:3"}},
        Fault{"BrokenYaml",
              "cluster:\n",
              "cluster: [\n",
              9,
              10,
              {"bracket", "close it"}},
        Fault{
            "TabIndent", "  nodes: 1", "\tnodes: 1", 11, 1, {"tab", "spaces"}},
        Fault{"TensorParallelDoesNotDivide",
              "training:\n",
              "parallelism:\n  tensor_parallel: 3\ntraining:\n",
              14,
              3,
              {"tensor_parallel", "num_attention_heads 4",
               "num_key_value_heads 2", "world size 8", "got 3", "use 1, 2 or 4"}},
        // 4 * 4 = 16 ranks on 1 * 8.
        Fault{"WorldMismatch",
              "training:\n",
              "parallelism: {tensor_parallel: 4, data_parallel: 4}\n"
              "training:\n",
              13,
              35,
              {"tensor_parallel 4 * data_parallel 4", "world size 8",
               "got 16 ranks"}},
        // 15 = 8 + 7.
        Fault{
            "BatchDoesNotDivide",
            "global_batch_size: 16",
            "global_batch_size: 15\nparallelism: {data_parallel: 8}",
            15,
            3,
            {"global_batch_size", "data_parallel 8", "got 15", "use 8 or 16"}},
        Fault{"AliasBomb",
              "training:\n",
              "x: &a [1,1,1,1,1,1,1,1,1]\n"
              "y: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\ntraining:\n",
              13,
              1,
              {"\"x\"", "\"y\""}},
        Fault{"SectionIsText",
              "  sequence_length: 64\n  global_batch_size: 16",
              "  hello",
              14,
              3,
              {"a map of keys for training", "hello"}},
        Fault{"KeyOfAnotherSection",
              "  nodes: 1",
              "  nodes: 1\n  sequence_length: 64",
              12,
              3,
              {"under cluster", "did you mean training.sequence_length?"}},
        Fault{"NameOfAnotherFramework",
              "num_hidden_layers",
              "n_layers",
              6,
              3,
              {"did you mean num_hidden_layers?"}},
        Fault{"NothingNear",
              "  nodes: 1",
              "  nodes: 1\n  qqqqqqqq: 64",
              12,
              3,
              {"the keys here are", "gpus_per_node"}},
        Fault{"MergeKey",
              "  nodes: 1",
              "  nodes: 1\n  <<: {qos: a}",
              12,
              3,
              {"merge keys are not read"}}),
    [](const ::testing::TestParamInfo<Fault> &info) {
      return std::string(info.param.name);
    });

struct Raw {
  const char *name;
  std::string bytes;
  std::string place, words;
};

class RawSpec : public ::testing::TestWithParam<Raw> {};

TEST_P(RawSpec, IsRefused) {
  Loaded loaded = load(GetParam().bytes);
  ASSERT_FALSE(loaded.spec.ok());
  EXPECT_EQ(loaded.spec.error().code, ExitCode::BadSpec);
  ASSERT_FALSE(loaded.errors.empty());
  EXPECT_THAT(loaded.errors[0].loc.str(),
              ::testing::StartsWith(GetParam().place));
  EXPECT_THAT(loaded.errors[0].message, HasSubstr(GetParam().words));
}

std::string allBytes() {
  std::string bytes;
  for (int copy = 0; copy < 64; ++copy)
    for (int byte = 0; byte < 256; ++byte)
      bytes += static_cast<char>(byte);
  return bytes;
}

INSTANTIATE_TEST_SUITE_P(
    All, RawSpec,
    ::testing::Values(
        Raw{"Empty", "", "spec.yaml:1:1", "an empty spec"},
        Raw{"Binary", allBytes(), "spec.yaml:1:1", "control character 0x00"},
        Raw{"EscapedNul", "model:\n  name: \"a\\0b\"\n", "spec.yaml:2:9",
            "a\\x00b"},
        Raw{"List", "- 1\n- 2\n", "spec.yaml:1:1", "a list"},
        Raw{"Text", "hello\n", "spec.yaml:1:1", "\"hello\""},
        Raw{"OnlyComment", "# nothing\n", "spec.yaml:1:1", "an empty spec"},
        Raw{"NotUtf8", "model:\n  name: \xff\xfe\n", "spec.yaml:2:9",
            "byte 0xff"},
        Raw{"DeepFlow", std::string(100000, '['), "spec.yaml:1:", "32 levels"},
        Raw{"TwoDocuments", "model: {}\n---\nmodel: {}\n", "spec.yaml:3:1",
            "one YAML document"}),
    [](const ::testing::TestParamInfo<Raw> &info) {
      return std::string(info.param.name);
    });

TEST(BadSpecs, MissingFileIsAnEnvironmentError) {
  FakeFileSystem empty;
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec({"gone.yaml"}, {}, errors, empty);
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.error().code, ExitCode::Environment);
  EXPECT_THAT(spec.error().message, HasSubstr("gone.yaml"));
  // Keys cannot be missing from a file that nobody has seen.
  EXPECT_EQ(errors.size(), 1u);
}

TEST(BadSpecs, NoFileAtAll) {
  std::vector<Diagnostic> errors;
  FakeFileSystem empty;
  EXPECT_EQ(loadSpec({}, {}, errors, empty).error().code, ExitCode::BadSpec);
}

TEST(BadSpecs, AllErrorsAtOnceInTheOrderOfTheFiles) {
  Loaded loaded = loadFiles(
      {{"model.yaml", "model:\n"
                      "  architecture: lama\n" // 2: unknown word
                      "  vocab_size: 256\n"
                      "  hidden_size: 0\n" // 4: not positive
                      "  intermediate_size: 176\n"
                      "  num_hidden_layers: 4\n"
                      "  num_attention_heads: 4\n"
                      "  colour: blue\n"}, // 8: unknown key
       {"a-cluster.yaml", "cluster:\n"
                          "  accelerator: h100-smx\n" // 2: unknown
                          "  nodes: 1\n"
                          "  gpus_per_node: 8\n"},
       {"train.yaml", "training:\n"                  // 1: key missing below
                      "  sequence_length: many\n"}}, // 2: not a number
      {"search.top=0"});
  std::vector<std::string> places;
  for (const Diagnostic &error : loaded.errors)
    places.push_back(error.loc.str());
  EXPECT_THAT(places,
              ::testing::ElementsAre("model.yaml:2:17", "model.yaml:4:16",
                                     "model.yaml:8:3", "a-cluster.yaml:2:16",
                                     "train.yaml:1:1", "train.yaml:2:20",
                                     "--set search.top=0:1:12"));
}

TEST(BadSpecs, AMisspeltRequiredKeyIsReportedOnce) {
  Loaded loaded = load(edited(goodSpec, "vocab_size", "vocab_sise"));
  EXPECT_EQ(loaded.errors.size(), 1u) << loaded.text();
}

TEST(BadSpecs, AMissingSectionIsReportedOnce) {
  std::string text = goodSpec;
  Loaded loaded = load(text.substr(0, text.find("training:")));
  ASSERT_EQ(loaded.errors.size(), 1u) << loaded.text();
  EXPECT_THAT(loaded.text(), HasSubstr("sequence_length, global_batch_size"));
}

TEST(BadSpecs, DamagedSpecsEndInASpecOrInPlaces) {
  // Values that break one check or another, put where some value was.
  const char *values[] = {"0",          "-1",    "3",      "1.5",   "auto",
                          "none",       "[]",    "[1, 2]", "{}",    "{a: 1}",
                          "~",          "\"1\"", "x",      "1e400", "16777216",
                          "2147483647", "full",  "llama",  "cpu",   "true"};
  std::vector<std::string> paths;
  for (const KeyRow &row : keyTable())
    paths.emplace_back(row.path);
  std::mt19937 random(11);
  int good = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> sets;
    for (unsigned n = 1 + random() % 4; n-- > 0;)
      sets.push_back(paths[random() % paths.size()] + "=" +
                     values[random() % std::size(values)]);
    Loaded loaded = load(goodSpec, sets);
    good += loaded.spec.ok();
    ASSERT_EQ(loaded.spec.ok(), loaded.errors.empty());
    for (const Diagnostic &error : loaded.errors) {
      ASSERT_GT(error.loc.line, 0u) << error.str();
      ASSERT_FALSE(error.loc.file.empty()) << error.str();
    }
    if (loaded.spec.ok()) {
      ASSERT_GT(loaded.spec->cluster.worldSize(), 0);
      Loaded again = load(loaded.spec->canonical);
      ASSERT_TRUE(again.spec.ok()) << again.text();
      ASSERT_EQ(again.spec->canonical, loaded.spec->canonical);
    }
  }
  EXPECT_GT(good, 200);
}

TEST(BadSpecs, ManyErrorsAreCutOff) {
  std::string text = goodSpec;
  for (int i = 0; i < 250; ++i)
    text += "zzzzzz" + std::to_string(i) + ": 1\n";
  Loaded loaded = load(text);
  EXPECT_EQ(loaded.errors.size(), 100u);
  EXPECT_THAT(loaded.spec.error().message, HasSubstr("and 150 more errors"));
}

} // namespace
} // namespace reckon::testing_spec
