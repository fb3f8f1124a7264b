//===- TrainerTest.cpp - whole runs of hand-made plans --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/exec/TinyPlan.h"

#include "runtime/exec/Safetensors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

using namespace reckon;
using namespace reckon::test;

namespace {

std::string readFile(const std::string &path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void expectClose(const std::vector<double> &got,
                 const std::vector<double> &want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance * std::fabs(want[i])) << i;
}

void expectOk(const std::vector<RankResult> &results) {
  for (const RankResult &result : results)
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
}

struct Layout {
  const char *name;
  TinyOptions options;
};

const Layout kLayouts[] = {
    {"one", {.microBatches = 4}},
    {"one-microbatch", {.microBatches = 1, .microBatchSize = 8}},
    {"dp2", {.dp = 2, .microBatches = 2}},
    {"dp4-zero1", {.dp = 4, .microBatches = 1, .zero1 = true}},
    {"pp2", {.pp = 2, .microBatches = 4}},
    {"dp2-pp2-zero1", {.dp = 2, .pp = 2, .microBatches = 2, .zero1 = true}},
};

} // namespace

TEST(Trainer, EveryLayoutMatchesTheReference) {
  RankResult want =
      referenceTiny(8, 6, initialWeights("embed"), initialWeights("head"));
  EXPECT_LT(want.losses.back(), want.losses.front() - 0.1);
  for (const Layout &layout : kLayouts) {
    SCOPED_TRACE(layout.name);
    TemporaryFolder folder;
    auto results = trainTiny(layout.options, 6, folder);
    expectOk(results);
    for (const RankResult &result : results) {
      expectClose(result.losses, want.losses, 2e-6);
      expectClose(result.norms, want.norms, 2e-5);
    }
  }
}

TEST(Trainer, OtherOrdersOfTheQueuesGiveTheSameBits) {
  TinyOptions options{.dp = 2, .pp = 2, .microBatches = 3, .zero1 = true};
  std::vector<double> want;
  for (int seed = 0; seed < 12; ++seed) {
    TemporaryFolder folder;
    auto results =
        trainTiny(options, 3, folder, [&](int rank, exec::TrainOptions &o) {
          if (seed > 0)
            o.queueSeed = static_cast<uint64_t>(seed * 8 + rank);
        });
    expectOk(results);
    if (seed == 0)
      want = results[0].losses;
    EXPECT_EQ(results[0].losses, want) << seed;
    EXPECT_EQ(results[3].norms, results[0].norms) << seed;
  }
}

TEST(Trainer, RandomOrderShowsAMissingEvent) {
  TinyOptions good{.pp = 2, .microBatches = 3};
  TinyOptions bad = good;
  bad.messageEvents = false;
  TemporaryFolder folder;
  std::vector<double> want = trainTiny(good, 2, folder)[0].losses;
  int different = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    auto results =
        trainTiny(bad, 2, folder, [&](int rank, exec::TrainOptions &o) {
          o.queueSeed = seed * 2 + static_cast<uint64_t>(rank);
        });
    expectOk(results);
    different += results[0].losses != want;
  }
  EXPECT_GT(different, 0);
}

TEST(Trainer, TraceHasTheOrderOfExecution) {
  TemporaryFolder folder;
  TinyOptions options{.pp = 2, .microBatches = 2};
  auto results = trainTiny(options, 2, folder,
                           [](int, exec::TrainOptions &o) { o.trace = true; });
  expectOk(results);
  auto runs = [](const std::vector<std::string> &trace) {
    std::vector<std::string> kept;
    for (const std::string &label : trace)
      if (label.find("LOAD") == label.npos &&
          label.find("SEND") == label.npos && label.find("RECV") == label.npos)
        kept.push_back(label);
    return kept;
  };
  using Labels = std::vector<std::string>;
  EXPECT_EQ(runs(results[0].trace),
            (Labels{"begin", "0F0", "0F1", "0B0", "0B1", "update"}));
  EXPECT_EQ(runs(results[1].trace), (Labels{"begin", "1B0", "1B1", "update"}));
  EXPECT_EQ(results[0].trace.size(), 6u + 2 + 2 + 2);
}

TEST(Trainer, RunWritesMetricsEventsAndLogs) {
  TemporaryFolder folder;
  TinyOptions options{.dp = 2};
  auto ran = trainTiny(
      options, 3, folder,
      [](int, exec::TrainOptions &o) {
        o.steps = 3;
        o.trace = o.profile = true;
      },
      [](int, exec::Trainer &trainer) {
        Status status = trainer.run();
        ASSERT_TRUE(status.ok()) << status.error().message;
        trainer.recordEnd(status);
      });
  expectOk(ran);
  std::stringstream metrics(readFile(folder / "run/metrics.jsonl"));
  int step = 0;
  for (std::string line; std::getline(metrics, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    EXPECT_EQ(json["step"], ++step);
    for (const char *key :
         {"loss", "grad_norm", "lr", "step_s", "tokens_per_s", "mfu"})
      EXPECT_TRUE(json[key].is_number()) << key;
    EXPECT_EQ(json["lr"].get<double>(), kRate);
    EXPECT_EQ(json["tokens"], 8 * kSequence);
    auto plans = tinyPlan(options);
    EXPECT_EQ(json["memory_peak_bytes"], plans[0]->arena_bytes);
    const auto &buckets = json["buckets"];
    double sum = 0;
    for (const auto &[name, value] : buckets.items())
      sum += value.get<double>();
    EXPECT_NEAR(sum, json["step_s"].get<double>(), 1e-6);
  }
  EXPECT_EQ(step, 3);
  std::stringstream events(readFile(folder / "run/events.jsonl"));
  std::vector<std::string> kinds;
  for (std::string line; std::getline(events, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    kinds.push_back(json["event"]);
    if (kinds.back() == "start") {
      EXPECT_EQ(json["arena_bytes"].size(), 2u);
      EXPECT_EQ(json["arena_bytes"][1], json["arena_bytes"][0]);
    }
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"start", "end"}));
  for (const char *log : {"run/rank-00000.log", "run/rank-00001.log"})
    EXPECT_NE(readFile(folder / log).find("step 3 loss"), std::string::npos);
  EXPECT_EQ(readFile(folder / "run/trace-00001.csv").substr(0, 34),
            "step,stage,label\n1,0,begin\n1,0,0LO");

  std::stringstream profile(readFile(folder / "run/profile-00001.jsonl"));
  step = 0;
  for (std::string line; std::getline(profile, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    EXPECT_EQ(json["step"], ++step);
    EXPECT_EQ(json["rank"], 1);
    double sum = 0;
    for (const auto &[name, time] : json["kernels"].items())
      sum += time["s"].get<double>();
    EXPECT_NEAR(sum, json["compute_s"].get<double>(), 1e-9);
    EXPECT_LE(sum, json["step_s"].get<double>());
    // Two micro-batches of the head, one update of two parameters.
    EXPECT_EQ(json["kernels"]["cross_entropy_grad"]["calls"], 2);
    EXPECT_EQ(json["kernels"]["adamw"]["calls"], 2);
  }
  EXPECT_EQ(step, 3);
}

TEST(Trainer, DumpsAreEqualInEveryLayout) {
  std::string initial;
  std::vector<std::vector<float>> gradients;
  for (const Layout &layout : kLayouts) {
    SCOPED_TRACE(layout.name);
    TemporaryFolder folder;
    auto adjust = [&](int, exec::TrainOptions &o) {
      o.steps = 2;
      o.dumps = {*exec::parseDump("0:weights", folder / "start"),
                 *exec::parseDump("2:weights,gradients", folder / "end")};
    };
    auto during = [](int, exec::Trainer &trainer) {
      Status status = trainer.run();
      ASSERT_TRUE(status.ok()) << status.error().message;
    };
    expectOk(trainTiny(layout.options, 2, folder, adjust, during));
    std::string bytes = readFile(folder / "start/weights.safetensors");
    ASSERT_FALSE(bytes.empty());
    if (initial.empty())
      initial = bytes;
    EXPECT_EQ(bytes, initial); // to the bit
    auto file =
        exec::SafetensorsFile::open(folder / "end/gradients.safetensors");
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_EQ((*file)->tensors().size(), 2u);
    std::vector<float> values(2 * kVocab * kHidden);
    (*file)->read(*(*file)->find("embed"), 0, kVocab * kHidden, values.data());
    (*file)->read(*(*file)->find("head"), 0, kVocab * kHidden,
                  values.data() + kVocab * kHidden);
    gradients.push_back(values);
    double error = 0;
    double norm = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      double want = gradients.front()[i];
      error += (values[i] - want) * (values[i] - want);
      norm += want * want;
    }
    EXPECT_LE(std::sqrt(error), 1e-5 * std::sqrt(norm));
    EXPECT_GT(norm, 1e-4);
  }
}

TEST(Trainer, WeightsFromAFileContinueARun) {
  TemporaryFolder folder;
  auto dump = [&](int, exec::TrainOptions &o) {
    o.steps = 1;
    o.dumps = {*exec::parseDump("1:weights", folder / "dump")};
  };
  auto run = [](int, exec::Trainer &trainer) {
    Status status = trainer.run();
    ASSERT_TRUE(status.ok()) << status.error().message;
  };
  expectOk(trainTiny({.microBatches = 4}, 1, folder, dump, run));
  // Into another layout, and out again before the first step.
  auto again = [&](int, exec::TrainOptions &o) {
    o.steps = 0;
    o.initWeights = folder / "dump/weights.safetensors";
    o.dumps = {*exec::parseDump("0:weights", folder / "again")};
  };
  TinyOptions other{.dp = 2, .pp = 2, .zero1 = true};
  expectOk(trainTiny(other, 0, folder, again, run));
  std::string want = readFile(folder / "dump/weights.safetensors");
  EXPECT_EQ(readFile(folder / "again/weights.safetensors"), want);
  EXPECT_NE(want, "");
}

TEST(Trainer, WrongWeightsAreRefusedOnEveryRank) {
  TemporaryFolder folder;
  std::map<std::string, exec::TensorEntry> tensors;
  tensors["embed"].shape = {kVocab, kHidden};
  tensors["head"].shape = {kVocab, kHidden + 1};
  std::string bytes = exec::safetensorsHeader(tensors);
  bytes.resize(tensors["head"].end);
  std::ofstream(folder / "weights.safetensors") << bytes;
  TinyOptions options{.pp = 2};
  auto results = trainTiny(options, 1, folder, [&](int, exec::TrainOptions &o) {
    o.initWeights = folder / "weights.safetensors";
  });
  for (const RankResult &result : results) {
    ASSERT_FALSE(result.status.ok());
    EXPECT_EQ(result.status.error().code, ExitCode::Incompatible);
    EXPECT_NE(result.status.error().message.find(
                  "expected shape [128, 15] for tensor head, found [128, 16]"),
              std::string::npos)
        << result.status.error().message;
  }
}

TEST(Trainer, MissingDataIsAnErrorOfAllRanks) {
  TemporaryFolder folder;
  auto results =
      trainTiny({.dp = 2}, 1, folder, [&](int, exec::TrainOptions &o) {
        o.data = folder / "nothing.txt";
      });
  for (const RankResult &result : results) {
    ASSERT_FALSE(result.status.ok());
    EXPECT_EQ(result.status.error().code, ExitCode::Environment);
    EXPECT_NE(result.status.error().message.find("--data"), std::string::npos);
  }
}

TEST(Trainer, StopFlagInterrupts) {
  TemporaryFolder folder;
  std::atomic<bool> stop{true};
  auto results = trainTiny({}, 1, folder,
                           [&](int, exec::TrainOptions &o) { o.stop = &stop; });
  ASSERT_FALSE(results[0].status.ok());
  EXPECT_EQ(results[0].status.error().code, ExitCode::Interrupted);
}

TEST(Trainer, AFailingRankIsSeenByTheOthers) {
  TemporaryFolder folder;
  std::atomic<bool> stop{true};
  TinyOptions options{.dp = 2, .pp = 2};
  auto results =
      trainTiny(options, 2, folder, [&](int rank, exec::TrainOptions &o) {
        if (rank == 3)
          o.stop = &stop;
      });
  EXPECT_EQ(results[3].status.error().code, ExitCode::Interrupted);
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_FALSE(results[rank].status.ok()) << rank;
    // The reason that a rank gives for its end is passed on.
    EXPECT_EQ(results[rank].status.error().code, ExitCode::Interrupted);
    EXPECT_NE(results[rank].status.error().message.find("rank 3"),
              std::string::npos)
        << results[rank].status.error().message;
  }
}
