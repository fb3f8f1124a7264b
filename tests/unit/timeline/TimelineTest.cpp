//===- TimelineTest.cpp - when everything of a step runs ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/timeline/Replay.h"
#include "passes/timeline/StepTimeline.h"
#include "passes/timeline/Trace.h"
#include "tests/unit/exec/TinyPlan.h"
#include "tests/unit/time/Jobs.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::timeline;

namespace {

constexpr int kMicroBatches = 4;

class Timeline : public testing::Test {
protected:
  Timeline()
      : time(model::test::machine("h100-sxm", 4)),
        stages(test::tinyPlan(
            {.dp = 2, .pp = 2, .microBatches = kMicroBatches, .zero1 = true})) {
    prediction.step = 1.5;
    prediction.pipeline = 1.2;
    prediction.update = 0.25;
    prediction.overhead = 0.05;
    prediction.message = 0.01;
    prediction.stages = {{0.05, 0.1}, {0.06, 0.12}};
  }

  std::vector<const StagePlanT *> pointers() const {
    return {stages[0].get(), stages[1].get()};
  }
  Result<StepTimeline> build() const {
    return stepTimeline(pointers(), prediction, time);
  }
  static const ActionT &action(const StageTimes &stage,
                               const ActionTimes &times) {
    return *stage.list->actions[times.action];
  }
  static const ActionTimes &find(const StageTimes &stage,
                                 const std::string &label) {
    for (const ActionTimes &times : stage.actions)
      if (action(stage, times).label == label)
        return times;
    ADD_FAILURE() << "no action " << label;
    return stage.actions.front();
  }

  InstructionTime time;
  std::vector<std::unique_ptr<StagePlanT>> stages;
  Prediction prediction;
};

} // namespace

TEST_F(Timeline, EndsWhenThePredictionSays) {
  auto line = build();
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_NEAR(line->pipelineEnd, 1.2, 1e-12);
  EXPECT_NEAR(line->updateEnd, 1.45, 1e-9);
  EXPECT_NEAR(line->stepEnd, prediction.step, 1e-9);
  double backward = 0, update = 0;
  for (const StageTimes &stage : line->stages)
    for (const ActionTimes &times : stage.actions) {
      bool last = action(stage, times).label == "update";
      (last ? update : backward) =
          std::max(last ? update : backward, times.span.end);
    }
  EXPECT_NEAR(backward, 1.2, 1e-12);
  EXPECT_NEAR(update, 1.45, 1e-9);
  // Twice the prediction is twice as long.
  prediction.pipeline *= 2;
  EXPECT_NEAR(build()->pipelineScale, 2 * line->pipelineScale, 1e-12);
}

TEST_F(Timeline, PassesTakeTheirPredictedTimes) {
  auto line = build();
  for (size_t s = 0; s < 2; ++s)
    for (const ActionTimes &times : line->stages[s].actions) {
      const std::string &label = action(line->stages[s], times).label;
      double seconds = label.find("_F") != std::string::npos ||
                               label.find("_B") != std::string::npos
                           ? prediction.message
                       : label[1] == 'F' ? prediction.stages[s].forward
                       : label[1] == 'B' ? prediction.stages[s].backward
                                         : -1;
      if (seconds > 0) {
        EXPECT_NEAR(times.span.length(), line->pipelineScale * seconds, 1e-12)
            << label;
      }
    }
}

TEST_F(Timeline, LeavesOutWhatNobodyPredicted) {
  auto line = build();
  size_t drawn = 0, actions = 0;
  for (const StageTimes &stage : line->stages) {
    actions += stage.list->actions.size();
    for (const ActionTimes &times : stage.actions) {
      ++drawn;
      EXPECT_NE(action(stage, times).kind, ActionKind::load);
      EXPECT_NE(action(stage, times).label, "begin");
    }
  }
  // Each stage loads every micro-batch and begins once.
  EXPECT_EQ(drawn + 2 * (kMicroBatches + 1), actions);
}

TEST_F(Timeline, StreamsAndEventsAreKept) {
  auto line = build();
  for (const StageTimes &stage : line->stages) {
    std::map<uint32_t, double> clock, recorded;
    for (const ActionTimes &times : stage.actions) {
      const ActionT &a = action(stage, times);
      EXPECT_GE(times.span.start, clock[a.stream] - 1e-12) << a.label;
      for (uint32_t event : a.waits)
        EXPECT_GE(times.span.start, recorded[event] - 1e-12) << a.label;
      clock[a.stream] = times.span.end;
      for (uint32_t event : a.records)
        recorded[event] = times.span.end;
    }
  }
  EXPECT_EQ(line->messages.size(), 2u * kMicroBatches);
  for (const MessageEnds &ends : line->messages) {
    const ActionTimes &send = line->stages[ends.sender].actions[ends.send];
    const ActionTimes &receive =
        line->stages[ends.receiver].actions[ends.receive];
    EXPECT_EQ(send.span.start, receive.span.start);
    EXPECT_EQ(send.span.end, receive.span.end);
    EXPECT_EQ(action(line->stages[ends.sender], send).kind, ActionKind::send);
    EXPECT_EQ(action(line->stages[ends.receiver], receive).kind,
              ActionKind::recv);
  }
}

// The check above is about the plan's events: without those before the sends,
// a message leaves before it is computed.
TEST_F(Timeline, AMissingEventShows) {
  auto with = build();
  EXPECT_GE(find(with->stages[0], "0SEND_F0").span.start,
            find(with->stages[0], "0F0").span.end);
  stages = test::tinyPlan({.dp = 2,
                           .pp = 2,
                           .microBatches = kMicroBatches,
                           .messageEvents = false});
  auto without = build();
  EXPECT_LT(find(without->stages[0], "0SEND_F0").span.start,
            find(without->stages[0], "0F0").span.end);
}

TEST_F(Timeline, InstructionsFillTheirRunAndDoNotOverlap) {
  auto line = build();
  size_t runs = 0;
  for (const StageTimes &stage : line->stages)
    for (const ActionTimes &times : stage.actions) {
      const ActionT &a = action(stage, times);
      if (a.kind != ActionKind::run)
        continue;
      ++runs;
      const FragmentT &fragment = *stage.plan->fragments[a.fragment];
      ASSERT_EQ(times.instructions.size(), fragment.instructions.size());
      std::map<uint32_t, double> clock;
      double end = times.span.start;
      for (size_t i = 0; i < times.instructions.size(); ++i) {
        const Span &span = times.instructions[i];
        double &now = clock[fragment.instructions[i]->stream];
        EXPECT_GE(span.start, std::max(now, times.span.start) - 1e-12);
        EXPECT_GE(span.length(), 0);
        now = span.end;
        end = std::max(end, now);
      }
      EXPECT_NEAR(end, times.span.end, 1e-12) << a.label;
    }
  EXPECT_EQ(runs, 3u * kMicroBatches + 2);
}

TEST_F(Timeline, StagesMeetInTheNorm) {
  prediction.stages[0] = {0.05, 0.3}; // stage 0 is late
  auto line = build();
  std::vector<double> starts, arrivals;
  for (const StageTimes &stage : line->stages) {
    const ActionTimes &update = find(stage, "update");
    const FragmentT &fragment =
        *stage.plan->fragments[action(stage, update).fragment];
    std::vector<size_t> met = meetings(*stage.plan, fragment);
    ASSERT_EQ(met.size(), 1u);
    starts.push_back(update.instructions[met[0]].start);
    arrivals.push_back(
        fragmentTimes(fragment, instructionSeconds(time, *stage.plan, fragment),
                      update.span.start, line->updateScale)
            .instructions[met[0]]
            .start);
  }
  EXPECT_NEAR(starts[0], starts[1], 1e-9);
  // Alone, the other stage would not have waited.
  EXPECT_LT(arrivals[1], starts[1] - 0.01);
}

TEST_F(Timeline, SaysWhatIsMissing) {
  Prediction known = prediction;
  prediction = {};
  EXPECT_EQ(build().error().code, ExitCode::BadSpec);
  prediction = known;
  auto &actions = stages[1]->lists[0]->actions;
  for (size_t i = 0; i < actions.size(); ++i)
    if (actions[i]->label == "1RECV_F3")
      actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(i));
  auto line = build();
  ASSERT_FALSE(line.ok());
  EXPECT_EQ(line.error().code, ExitCode::Corrupt);
  EXPECT_NE(line.error().message.find("stage 0 never comes past 0SEND_F3"),
            std::string::npos)
      << line.error().message;
}

TEST_F(Timeline, CountsTheSlotsOfBoundActions) {
  // The tiny plan marks no uses; here two actions hold 1 KiB between them.
  auto &list = *stages[0]->lists[0];
  SlotBindingT *first = nullptr, *last = nullptr;
  for (const auto &a : list.actions)
    for (const auto &binding : a->bindings)
      if (stages[0]->slot_classes[binding->slot_class]->name == "grad_in" &&
          binding->index == 1)
        (first ? last : first) = binding.get();
  ASSERT_TRUE(first && last);
  first->acquire = last->release = true;
  auto line = build();
  const std::vector<MemorySample> &slots = line->stages[0].slots;
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].bytes, 1024);
  EXPECT_EQ(slots[1].bytes, 0);
  EXPECT_EQ(slots[0].time, find(line->stages[0], "0RECV_B1").span.start);
  EXPECT_EQ(slots[1].time, find(line->stages[0], "0B1").span.end);
}

TEST_F(Timeline, PricesFollowTheModel) {
  const StagePlanT &plan = *stages[1];
  InstructionT op;
  auto buffer = [](std::vector<int64_t> shape) {
    auto b = std::make_unique<BufferT>();
    b->region = Region::lane;
    b->dtype = DType::bf16;
    b->shape = std::move(shape);
    return b;
  };
  op.op = Opcode::record;
  EXPECT_EQ(time.seconds(plan, op), 0);

  // A large product: near twice as long with twice the tokens, and the same
  // for its two gradients, which are as many operations.
  op.op = Opcode::launch;
  auto product = [&](Kernel kernel, int64_t tokens) {
    op.kernel = kernel;
    op.inputs.clear();
    op.inputs.push_back(
        buffer({tokens, kernel == Kernel::linear ? 8192 : 28672}));
    op.args.clear();
    op.args.push_back(constantExpr(28672)); // N
    op.args.push_back(constantExpr(8192));  // K
    return time.seconds(plan, op);
  };
  double once = product(Kernel::linear, 8192);
  double tflops = 2.0 * 8192 * 28672 * 8192 / once / 1e12;
  EXPECT_GT(tflops, 400);
  EXPECT_LT(tflops, 989);
  EXPECT_NEAR(product(Kernel::linear, 16384) / once, 2, 0.1);
  EXPECT_NEAR(product(Kernel::linear_grad_input, 8192) / once, 1, 0.1);
  EXPECT_NEAR(product(Kernel::linear_grad_weight, 8192) / once, 1, 0.15);

  // Memory-bound: bytes over less than the data sheet's 3.35e12 B/s.
  op.kernel = Kernel::swiglu;
  double bytes = 2.0 * 8192 * 28672;
  double rate = bytes / time.seconds(plan, op);
  EXPECT_GT(rate, 1.5e12);
  EXPECT_LT(rate, 3.35e12);

  // Two passes for a sum over all, one for a gather of as many bytes.
  op.group = 0; // dp
  op.op = Opcode::all_reduce;
  op.inputs[0] = buffer({1 << 20});
  double sum = time.seconds(plan, op);
  op.op = Opcode::all_gather;
  op.outputs.push_back(buffer({1 << 20}));
  EXPECT_NEAR(sum, 2 * time.seconds(plan, op), 1e-12);
  EXPECT_GT(sum, 0);
}

TEST_F(Timeline, TraceHasEveryProcessAskedFor) {
  auto line = build();
  Manifest manifest = test::tinyManifest(*stages[0]);
  auto trace = [&](const TraceOptions &options) {
    return nlohmann::json::parse(traceJson(manifest, *line, options));
  };
  auto all = trace({});
  std::map<int, int> slices;
  size_t begins = 0, ends = 0;
  for (const auto &event : all["traceEvents"]) {
    slices[event["pid"]] += event["ph"] == "X";
    begins += event["ph"] == "s";
    ends += event["ph"] == "f";
  }
  EXPECT_EQ(slices.size(), 2u);
  EXPECT_EQ(begins, 2u * kMicroBatches);
  EXPECT_EQ(ends, begins);
  EXPECT_EQ(all["otherData"]["plan"], manifest.digest);

  // Ranks 2 and 3 are the replicas of stage 1; arrows need both ends.
  for (int rank : {2, 3}) {
    auto one = trace({1u, rank});
    int count = 0;
    for (const auto &event : one["traceEvents"]) {
      EXPECT_EQ(event["pid"], rank);
      count += event["ph"] == "X";
      EXPECT_NE(event["ph"], "s");
      EXPECT_NE(event["ph"], "f");
    }
    EXPECT_EQ(count, slices[1]);
  }
}
