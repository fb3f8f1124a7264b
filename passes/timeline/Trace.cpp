//===- Trace.cpp - a timeline for ui.perfetto.dev -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The format is that of Chrome's "Trace Event Format" document. Times become
// whole nanoseconds before anything is subtracted: rounding keeps their order,
// so that what does not overlap in the timeline does not in the file, and what
// lies within stays within.
//
//===----------------------------------------------------------------------===//
#include "passes/timeline/Trace.h"

#include "passes/listing/PlanText.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::timeline;

namespace {

int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

/// `1234.567`: microseconds.
std::string micros(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld",
                static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

std::string jsonText(const std::string &text) {
  return nlohmann::json(text).dump();
}

/// What an instruction is called: its kernel or its opcode.
const char *nameOf(const InstructionT &op) {
  return op.op == Opcode::launch ? EnumNameKernel(op.kernel)
                                 : EnumNameOpcode(op.op);
}

class Writer {
public:
  Writer(const Manifest &manifest, const StepTimeline &timeline,
         const TraceOptions &options)
      : manifest_(manifest), timeline_(timeline), options_(options) {}

  std::string text() {
    for (size_t s = 0; s < timeline_.stages.size(); ++s) {
      if (!shown(s))
        continue;
      names(s);
      for (const ActionTimes &times : timeline_.stages[s].actions)
        action(s, times);
      host(s);
      memory(s);
    }
    flows();
    out_ +=
        "\n],\n\"displayTimeUnit\": \"ms\",\n\"otherData\": " + facts() + "}\n";
    return std::move(out_);
  }

private:
  bool shown(size_t stage) const {
    return !options_.onlyStage ||
           *options_.onlyStage == timeline_.stages[stage].plan->stage;
  }

  /// The process of a stage: the rank's number, or the stage's.
  std::string process(size_t stage) const {
    return std::to_string(options_.rank
                              ? *options_.rank
                              : int64_t{timeline_.stages[stage].plan->stage});
  }

  /// `"pid": 0, "tid": 1`; streams are threads from 1 on, as 0 is a thread
  /// that Perfetto hides.
  std::string place(size_t stage, size_t thread) const {
    return "\"pid\": " + process(stage) +
           ", \"tid\": " + std::to_string(thread + 1);
  }

  void event(const std::string &fields) {
    out_ += out_.empty() ? "{\"traceEvents\": [\n{" : ",\n{";
    out_ += fields + "}";
  }

  void name(const char *what, size_t stage, size_t thread,
            const std::string &args) {
    event(std::string("\"ph\": \"M\", \"name\": \"") + what + "\", " +
          place(stage, thread) + ", \"args\": {" + args + "}");
  }

  void names(size_t s) {
    const StagePlanT &plan = *timeline_.stages[s].plan;
    std::string title = options_.rank
                            ? describeRank(manifest_.mesh, *options_.rank)
                            : "stage " + std::to_string(plan.stage);
    name("process_name", s, 0, "\"name\": " + jsonText(title));
    name("process_sort_index", s, 0, "\"sort_index\": " + process(s));
    for (size_t i = 0; i <= plan.streams.size(); ++i) {
      std::string stream =
          i < plan.streams.size() ? plan.streams[i]->name : "host";
      name("thread_name", s, i, "\"name\": " + jsonText(stream));
      name("thread_sort_index", s, i,
           "\"sort_index\": " + std::to_string(i + 1));
    }
  }

  void slice(const std::string &title, const char *category, size_t stage,
             size_t thread, const Span &span, const std::string &args) {
    int64_t start = nanoseconds(span.start), end = nanoseconds(span.end);
    event("\"ph\": \"X\", \"name\": " + jsonText(title) + ", \"cat\": \"" +
          category + "\", " + place(stage, thread) +
          ", \"ts\": " + micros(start) + ", \"dur\": " + micros(end - start) +
          (args.empty() ? "" : ", \"args\": {" + args + "}"));
  }

  void action(size_t s, const ActionTimes &times) {
    const StageTimes &stage = timeline_.stages[s];
    const ActionT &action = *stage.list->actions[times.action];
    bool runs = action.kind == ActionKind::run;
    std::string args = "\"action\": " + std::to_string(times.action);
    if (runs)
      args += ", \"fragment\": " +
              jsonText(stage.plan->fragments[action.fragment]->name);
    else
      args += ", \"channel\": " +
              jsonText(stage.plan->channels[action.channel]->name) +
              ", \"bytes\": " + std::to_string(bytesOf(action));
    slice(action.label, runs ? "action" : "message", s, action.stream,
          times.span, args);
    if (!runs)
      return;
    const FragmentT &fragment = *stage.plan->fragments[action.fragment];
    for (size_t i = 0; i < times.instructions.size(); ++i) {
      const InstructionT &op = *fragment.instructions[i];
      // The sums that made the times may end a rounding error behind it.
      Span span{std::min(times.instructions[i].start, times.span.end),
                std::min(times.instructions[i].end, times.span.end)};
      if (span.end <= span.start)
        continue;
      std::string at = "\"instruction\": " + std::to_string(i);
      if (!op.layer.empty())
        at += ", \"layer\": " + jsonText(op.layer);
      if (!op.source.empty())
        at += ", \"source\": " + jsonText(op.source);
      if (listing::isCollective(op.op))
        at += ", \"group\": " + jsonText(stage.plan->groups[op.group]->name);
      slice(nameOf(op), "instruction", s, op.stream, span, at);
    }
  }

  static uint64_t bytesOf(const ActionT &action) {
    uint64_t bytes = 0;
    for (const auto &buffer : action.buffers)
      bytes += listing::bufferBytes(*buffer);
    return bytes;
  }

  /// What the prediction adds for host and jitter belongs to no stream.
  void host(size_t s) {
    if (timeline_.stepEnd > timeline_.updateEnd)
      slice("host and jitter", "overhead", s,
            timeline_.stages[s].plan->streams.size(),
            {timeline_.updateEnd, timeline_.stepEnd}, "");
  }

  void memory(size_t s) {
    for (const MemorySample &sample : timeline_.stages[s].slots)
      event("\"ph\": \"C\", \"name\": \"slots in use\", " + place(s, 0) +
            ", \"ts\": " + micros(nanoseconds(sample.time)) +
            ", \"args\": {\"bytes\": " + std::to_string(sample.bytes) + "}");
  }

  void flows() {
    for (size_t i = 0; i < timeline_.messages.size(); ++i) {
      const MessageEnds &ends = timeline_.messages[i];
      if (!shown(ends.sender) || !shown(ends.receiver))
        continue;
      auto end = [&](const char *phase, size_t s, size_t at,
                     const char *extra) {
        const StageTimes &stage = timeline_.stages[s];
        const ActionTimes &times = stage.actions[at];
        event(std::string("\"ph\": \"") + phase +
              "\", \"name\": \"message\", \"cat\": \"message\", \"id\": " +
              std::to_string(i) + ", " +
              place(s, stage.list->actions[times.action]->stream) +
              ", \"ts\": " + micros(nanoseconds(times.span.start)) + extra);
      };
      end("s", ends.sender, ends.send, "");
      end("f", ends.receiver, ends.receive, ", \"bp\": \"e\"");
    }
  }

  std::string facts() const {
    nlohmann::ordered_json json = {
        {"model", manifest_.name},
        {"plan", manifest_.digest},
        {"accelerator", manifest_.cluster.accelerator},
        {"what", "one predicted step; nothing was measured"},
        {"units", "ts and dur in microseconds, counters in bytes"},
        {"ranks", "all ranks of a stage have its times"},
        {"step_s", timeline_.stepEnd},
        {"pipeline_s", timeline_.pipelineEnd},
        {"update_s", timeline_.updateEnd - timeline_.pipelineEnd},
        {"overhead_s", timeline_.stepEnd - timeline_.updateEnd},
        {"pipeline_scale", timeline_.pipelineScale},
        {"update_scale", timeline_.updateScale}};
    return json.dump();
  }

  const Manifest &manifest_;
  const StepTimeline &timeline_;
  const TraceOptions &options_;
  std::string out_;
};

} // namespace

std::string timeline::traceJson(const Manifest &manifest,
                                const StepTimeline &timeline,
                                const TraceOptions &options) {
  return Writer(manifest, timeline, options).text();
}
