//===- MergeTest.cpp - several files, --set, and the merged text ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/spec/SpecTesting.h"

namespace reckon::testing_spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Merge, LaterFilesWinKeyByKey) {
  Loaded loaded =
      loadFiles({{"base.yaml", goodSpec},
                 {"more.yaml", "model:\n  num_hidden_layers: 6\n"
                               "training:\n  optimizer: {lr: 1.0e-3}\n"},
                 {"last.yaml", "training:\n  optimizer: {eps: 1.0e-6}\n"}});
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  const Spec &spec = *loaded.spec;
  EXPECT_EQ(*spec.model.numHiddenLayers, 6);
  EXPECT_EQ(spec.model.numHiddenLayers.loc.str(), "more.yaml:2:3");
  EXPECT_EQ(*spec.model.hiddenSize, 64);
  EXPECT_EQ(spec.model.hiddenSize.loc.str(), "base.yaml:4:3");
  EXPECT_EQ(*spec.training.optimizer.lr, 1e-3);
  EXPECT_EQ(*spec.training.optimizer.eps, 1e-6);
}

TEST(Merge, ListsReplace) {
  Loaded loaded = loadFiles(
      {{"a.yaml", goodAnd("parallelism: {tensor_parallel: [1, 2]}\n")},
       {"b.yaml", "parallelism: {tensor_parallel: [2]}\n"}});
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  EXPECT_THAT(loaded.spec->parallelism.tensorParallel.values, ElementsAre(2));
}

TEST(Merge, NullBringsTheDefaultBack) {
  Loaded loaded =
      loadFiles({{"a.yaml", goodAnd("search: {top: 9}\n")},
                 {"b.yaml", "search: {top: null}\nparallelism:\n"}});
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  EXPECT_EQ(*loaded.spec->search.top, 5);
}

TEST(Merge, UnknownKeysAreReportedInTheirOwnFile) {
  Loaded loaded =
      loadFiles({{"a.yaml", goodSpec}, {"b.yaml", "\nmodel:\n  nane: x\n"}});
  ASSERT_EQ(loaded.errors.size(), 1u) << loaded.text();
  EXPECT_EQ(loaded.errors[0].loc.str(), "b.yaml:3:3");
}

TEST(Merge, AnEmptyFileAddsNothing) {
  Loaded loaded = loadFiles({{"a.yaml", "# later\n"}, {"b.yaml", goodSpec}});
  EXPECT_TRUE(loaded.spec.ok()) << loaded.text();
}

TEST(Set, OverridesFilesAndHasAPlace) {
  Spec spec = loadGood(goodSpec, {"training.sequence_length=4096",
                                  "parallelism.tensor_parallel=[1, 2]",
                                  "model.name=a=b"});
  EXPECT_EQ(*spec.training.sequenceLength, 4096);
  EXPECT_EQ(spec.training.sequenceLength.loc.str(),
            "--set training.sequence_length=4096:1:10");
  EXPECT_THAT(spec.parallelism.tensorParallel.values, ElementsAre(1, 2));
  EXPECT_EQ(*spec.model.name, "a=b");
}

TEST(Set, LaterOnesWin) {
  Spec spec = loadGood(goodSpec, {"search.top=3", "search.top=4"});
  EXPECT_EQ(*spec.search.top, 4);
}

TEST(Set, Faults) {
  EXPECT_THAT(load(goodSpec, {"search.top"}).text(),
              HasSubstr("--set search.top:1:1: error: expected "
                        "section.key=value"));
  EXPECT_THAT(load(goodSpec, {"search..top=1"}).text(),
              HasSubstr(":1:8: error"));
  EXPECT_THAT(load(goodSpec, {"=1"}).text(), HasSubstr(":1:1: error"));
  EXPECT_THAT(load(goodSpec, {"search.tap=1"}).text(),
              HasSubstr("--set search.tap=1:1:8: error: expected a known key "
                        "under search, got \"tap\"; did you mean top?"));
  EXPECT_THAT(load(goodSpec, {"search.top=none at all"}).text(),
              HasSubstr(":1:12: error: expected a whole number"));
  EXPECT_THAT(load(goodSpec, {"search.top=[1"}).text(), HasSubstr("bracket"));
  EXPECT_THAT(load(goodSpec, {"search=1"}).text(), HasSubstr("a map of keys"));
}

TEST(DataPath, StartsFromTheFileThatNamesIt) {
  Loaded loaded = loadFiles(
      {{"specs/model.yaml", goodSpec},
       {"other/train.yaml", "training: {data: {path: corpus.txt}}\n"}});
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  EXPECT_EQ(*loaded.spec->training.data.path, "corpus.txt");
  EXPECT_EQ(loaded.spec->training.data.folder, "other");
  EXPECT_EQ(loaded.spec->training.data.resolvedPath(), "other/corpus.txt");
}

TEST(DataPath, FromTheCommandLineStartsFromTheCurrentFolder) {
  Loaded loaded =
      loadFiles({{"a/b.yaml", goodSpec}}, {"training.data.path=x/y.txt"});
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  EXPECT_EQ(loaded.spec->training.data.resolvedPath(), "x/y.txt");
}

TEST(DataPath, AbsoluteStays) {
  Loaded loaded = loadFiles({{"/etc/b.yaml", goodSpec}},
                            {"training.data.path=/data/y.txt"});
  ASSERT_TRUE(loaded.spec.ok()) << loaded.text();
  EXPECT_EQ(loaded.spec->training.data.resolvedPath(), "/data/y.txt");
}

TEST(Canonical, DoesNotDependOnOrderFilesOrLayout) {
  Loaded one = loadFiles({{"a.yaml", goodSpec}}, {"search.top=3"});
  Loaded two = loadFiles(
      {{"far/away/b.yaml", "search: {\"top\": 3}\ntraining: "
                           "{global_batch_size: 16, sequence_length: 64}\n"},
       {"c.yaml", goodSpec}});
  ASSERT_TRUE(one.spec.ok() && two.spec.ok()) << one.text() << two.text();
  EXPECT_EQ(one.spec->canonical, two.spec->canonical);
  EXPECT_EQ(one.spec->canonical, goodAnd("search:\n  top: 3\n"));
}

TEST(Canonical, ReadsBackAsItself) {
  std::string text = goodAnd("parallelism:\n"
                             "  pipeline_layout: [1, 3]\n"
                             "  recompute: {layers: 2}\n"
                             "  tensor_parallel: [1, 2]\n");
  text = edited(text, "  nodes: 1\n",
                "  nodes: 1\n"
                "  slurm:\n"
                "    setup: |\n"
                "      module load \"x\"\n"
                "      export A=\\b\t# c\n"
                "    srun_args: [--mpi=none, 'a: b, [c]']\n"
                "    time: 01:00:00\n");
  text = edited(text, "architecture: llama",
                "architecture: llama\n  name: \"70\"");
  Spec first = loadGood(text);
  Spec second = loadGood(first.canonical);
  EXPECT_EQ(first.canonical, second.canonical);
  EXPECT_EQ(*second.cluster.slurm.setup,
            "module load \"x\"\nexport A=\\b\t# c\n");
  EXPECT_THAT(*second.cluster.slurm.srunArgs,
              ElementsAre("--mpi=none", "a: b, [c]"));
  EXPECT_EQ(*second.model.name, "70");
  EXPECT_THAT(*second.parallelism.pipelineLayout, ElementsAre(1, 3));
}

TEST(SourceLocs, ShortFormNamesNoFolder) {
  EXPECT_EQ((SourceLoc{"/home/x/model.yaml", 14, 3}).shortStr(),
            "model.yaml:14:3");
  EXPECT_EQ((SourceLoc{"--set training.data.path=/a/b", 1, 1}).shortStr(),
            "--set training.data.path=/a/b:1:1");
}

} // namespace
} // namespace reckon::testing_spec
