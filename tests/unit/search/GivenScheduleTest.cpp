//===- GivenScheduleTest.cpp - schedules of files and of the solver -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Given.h"

#include "frontends/spec/Load.h"
#include "passes/model/schedule/Checker.h"
#include "passes/search/Evaluate.h"
#include "passes/search/Synthesized.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace reckon;
using namespace reckon::search;
using model::PipelineOrders;
using model::ScheduleKind;
using model::ScheduleShape;

namespace {

constexpr const char *k8B = R"(
model: {name: llama3-8b, architecture: llama, vocab_size: 128256,
        hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32,
        num_attention_heads: 32, num_key_value_heads: 8}
cluster: {accelerator: h100-sxm, nodes: 1, gpus_per_node: 8}
training: {sequence_length: 4096, global_batch_size: 16}
parallelism:
  tensor_parallel: 2
  pipeline_parallel: 4
  micro_batch_size: 1
  recompute: none
constraints: {max_bubble: 1}
)";

class GivenSchedules : public testing::Test {
protected:
  void SetUp() override {
    setenv("RECKON_SCHEDULE_CACHE", "off", 1);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string &text) {
    std::string path = folder_ / "s.csv";
    std::ofstream(path) << text;
    return path;
  }
  static Spec load(std::vector<std::string> sets) {
    FakeFileSystem files;
    files.files["spec.yaml"] = k8B;
    std::vector<Diagnostic> errors;
    Result<Spec> spec = loadSpec({"spec.yaml"}, sets, errors, files);
    if (!spec) {
      ADD_FAILURE() << spec.error().message;
      std::abort();
    }
    return *spec;
  }
  static Spec withCsv(const std::string &path,
                      std::vector<std::string> sets = {}) {
    sets.push_back("parallelism.pipeline_schedule=csv:" + path);
    return load(sets);
  }
  static Candidate best(const Spec &spec) {
    SearchResult result =
        searchAndExplain(spec, SearchOptions{.top = 1, .refine = false});
    if (result.candidates.empty()) {
      ADD_FAILURE() << "nothing fits";
      std::abort();
    }
    return result.candidates.front();
  }

private:
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() /
                                  ("reckon-given-" + std::to_string(getpid()));
};

// A file that says what a name says has the name's memory and bubble, and the
// time of its simulation, messages included.
TEST_F(GivenSchedules, FilesAreTimedAndAccountedByTheirOrder) {
  struct {
    ScheduleKind kind;
    const char *name;
    int64_t v;
  } all[] = {{ScheduleKind::GPipe, "gpipe", 1},
             {ScheduleKind::OneFOneB, "1f1b", 1},
             {ScheduleKind::ZbH1, "zb_h1", 1},
             {ScheduleKind::ZbV, "zbv", 2},
             {ScheduleKind::Interleaved, "interleaved_1f1b", 2}};
  for (auto [kind, name, v] : all) {
    ScheduleShape shape{kind, 4, v, 16};
    Candidate read = best(withCsv(file(model::scheduleCsv(shape))));
    Candidate same =
        best(load({std::string("parallelism.pipeline_schedule=") + name,
                   "parallelism.virtual_pipeline=" + std::to_string(v)}));
    EXPECT_EQ(read.choice.v, v);
    EXPECT_NEAR(read.bubbleFraction, model::scheduleBubble(shape), 1e-12)
        << name;
    for (size_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(read.stages[rank].activations, same.stages[rank].activations)
          << name << rank;
    PipelineOrders orders = model::makeOrders(shape);
    auto makespan = [&](double transfer) {
      return model::simulateOrders(orders, read.time.stages, transfer)
          ->makespan;
    };
    double work = model::busiestWork(shape, read.time.stages);
    EXPECT_GT(read.time.message, 0);
    EXPECT_NEAR(read.time.bubble, makespan(0) - work, 1e-9) << name;
    double messages = 0;
    for (const model::CommunicationTime &each : read.time.communication)
      if (each.dimension == "pipeline")
        messages = each.exposed;
    EXPECT_NEAR(messages, makespan(read.time.message) - makespan(0), 1e-9)
        << name;
  }
}

TEST_F(GivenSchedules, SizesOfTheFileChooseAmongTheDegrees) {
  std::string path = file(model::scheduleCsv({ScheduleKind::ZbH1, 2, 1, 8}));
  SearchResult result =
      searchAndExplain(withCsv(path, {"parallelism.pipeline_parallel=auto",
                                      "parallelism.micro_batch_size=auto",
                                      "parallelism.tensor_parallel=auto"}),
                       20);
  ASSERT_FALSE(result.candidates.empty());
  for (const Candidate &candidate : result.candidates) {
    if (candidate.choice.pp > 1) {
      EXPECT_EQ(candidate.choice.pp, 2);
      EXPECT_EQ(candidate.choice.numMicroBatches, 8);
      EXPECT_TRUE(model::givenOf(candidate.choice));
    }
  }
}

TEST_F(GivenSchedules, ErrorsNameTheSpecAndTheFile) {
  auto problem = [&](const Spec &spec) {
    auto read = model::readScheduleFile(spec);
    EXPECT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, ExitCode::BadSpec);
    return read.error().message;
  };
  std::string path = file("0F0,0X0\n");
  std::string text = problem(withCsv(path));
  EXPECT_NE(text.find("parallelism.pipeline_schedule"), std::string::npos)
      << text;
  EXPECT_NE(text.find(path + ":1:5: expected an action"), std::string::npos)
      << text;
  path = file(model::scheduleCsv({ScheduleKind::OneFOneB, 2, 1, 8}));
  text = problem(withCsv(path));
  EXPECT_NE(text.find("expected parallelism.pipeline_parallel 2, the rows of " +
                      path + ", got 4"),
            std::string::npos)
      << text;
  text = problem(withCsv(path, {"parallelism.pipeline_parallel=2",
                                "parallelism.virtual_pipeline=2"}));
  EXPECT_NE(text.find("expected parallelism.virtual_pipeline 1"),
            std::string::npos)
      << text;
  text = problem(withCsv(path + "x"));
  EXPECT_NE(text.find("expected a schedule file behind csv:"),
            std::string::npos)
      << text;
}

// The synthesized step is simulated with its own durations and messages, holds
// what its order holds, and is not slower than ZB-H1, which fits as well.
TEST_F(GivenSchedules, SynthesizedIsPricedByItsOwnOrder) {
  Spec spec = load({"parallelism.pipeline_schedule=synthesized"});
  SearchResult result = searchAndExplain(spec, 1);
  ASSERT_EQ(result.candidates.size(), 1u);
  const Candidate &made = result.candidates.front();
  const model::GivenSchedule *given = model::givenOf(made.choice);
  ASSERT_TRUE(given);
  for (ScheduleKind kind : {ScheduleKind::ZbH1, ScheduleKind::OneFOneB}) {
    Candidate other =
        best(withCsv(file(model::scheduleCsv(ScheduleShape{kind, 4, 1, 16}))));
    EXPECT_LE(made.time.step, other.time.step * (1 + 1e-9))
        << model::scheduleName(kind);
  }
  auto table = model::simulateOrders(given->orders, made.time.stages, 0);
  ASSERT_TRUE(table.ok());
  EXPECT_NEAR(made.time.bubble * (1 + table->bubbleFraction),
              table->bubbleFraction * (table->makespan), 1e-9);

  Evaluator evaluator(spec);
  model::ClaimTerms terms{.durations = made.time.stages,
                          .rankOfStage = given->orders.rankOfStage,
                          .slots = slotsWithin(made.choice, evaluator),
                          .horizon = table->makespan};
  EXPECT_TRUE(
      model::checkClaim(model::claimOf(given->orders, *table), terms).ok());
  ASSERT_TRUE(result.schedule);
  EXPECT_TRUE(result.schedule->certificate.proved)
      << result.schedule->certificate.reason;
}

// Memory for more stashes is used: with a card of no limit 2p-1 a rank.
TEST_F(GivenSchedules, SlotsAreWhatTheMemoryHolds) {
  Spec spec = load({"parallelism.pipeline_schedule=synthesized"});
  Candidate candidate = best(spec);
  spec.constraints.memoryLimitGib.value = 1e6;
  Evaluator wide(spec);
  EXPECT_EQ(slotsWithin(candidate.choice, wide),
            (std::vector<int64_t>{7, 7, 7, 7}));
  // Room for half a stash more than ZB-H1 needs: none.
  model::Choice h1 = candidate.choice;
  h1.schedule = ScheduleKind::ZbH1;
  h1.given = nullptr;
  Peak peak = wide.peak(h1);
  spec.constraints.memoryLimitGib.value =
      static_cast<double>(peak.bytes + 1) / (1024.0 * 1024 * 1024);
  Evaluator narrow(spec);
  EXPECT_EQ(slotsWithin(candidate.choice, narrow)[peak.rank], 4);
}

} // namespace
