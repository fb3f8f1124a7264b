//===- ReportText.cpp - reckon plan for people ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Report.h"
#include "passes/search/ReportFormat.h"
#include "passes/search/ReportParts.h"

#include "passes/model/ModelShape.h"
#include "passes/model/time/ModelFlops.h"

using namespace reckon;
using namespace reckon::search;
using namespace reckon::search::text;

namespace {

std::string alternativesSection(const SearchResult &result) {
  std::string text;
  for (size_t i = 1; i < result.candidates.size(); ++i) {
    const Candidate &other = result.candidates[i];
    if (i == 1)
      text += "\nNext best\n";
    text += format("  %zu. %s  %s (+%.1f %%), peak %s, bubble %.1f %%\n", i + 1,
                   choiceLine(other.choice).c_str(),
                   seconds(other.time.step).c_str(),
                   100 * (other.time.step / result.candidates[0].time.step - 1),
                   bytes(static_cast<double>(other.peakBytes())).c_str(),
                   100 * other.bubbleFraction);
  }
  return text;
}

/// What assigning layers one by one gains over the choice.
std::string refinedLine(const Refined &refined, const Candidate &best) {
  const model::Choice &choice = refined.candidate.choice;
  double gain = 1 - refined.candidate.time.step / best.time.step;
  std::string text =
      format("  %.2f %% faster than the choice, %s: %s; layers %s", 100 * gain,
             refined.how.c_str(), choiceLine(choice).c_str(),
             text::layout(choice.layout).c_str());
  if (!choice.recomputeLayers.empty())
    text += "; fully recomputed " + text::layout(choice.recomputeLayers);
  return text + "\n";
}

std::string searchSection(const ReportInput &input) {
  const SearchResult &result = input.result;
  const RejectedCounts &out = result.rejected;
  std::string assigned;
  if (result.assignmentSpace > 0)
    assigned = format(", with %.3g assignments of layers and recomputation,",
                      result.assignmentSpace);
  std::string text =
      format("\nSearched all %s combinations%s in %s: %s do not divide",
             grouped(result.space).c_str(), assigned.c_str(),
             seconds(input.seconds).c_str(), grouped(out.divisibility).c_str());
  auto add = [&](int64_t count, const char *what) {
    if (count)
      text += ", " + grouped(count) + " " + what;
  };
  add(out.representation, "are not in the representation");
  add(out.compilable, "cannot be compiled");
  add(out.bound, "cannot be better by their bound");
  add(out.limits, "break a limit");
  text += ", " + grouped(result.feasible) + " fit.\n";
  if (out.limits)
    text += format("  limits broken: memory %s, max_bubble %s, host memory %s "
                   "(some together)\n",
                   grouped(out.memory).c_str(), grouped(out.bubble).c_str(),
                   grouped(out.hostMemory).c_str());
  if (result.candidates.empty())
    return text;
  text += "  The choice is " + result.proof.sentence() + ".\n";
  for (const Proved &part : result.proof.parts)
    text += "  " + part.what + " (" + part.method + "): " + part.text + "\n";
  if (result.refined)
    text += refinedLine(*result.refined, result.candidates.front());
  return text;
}

std::string headSection(const Spec &spec) {
  model::ModelShape shape = model::modelShape(spec);
  std::string parameters = grouped(shape.parameters()) + " parameters";
  if (shape.activeParameters() != shape.parameters())
    parameters += " (" + grouped(shape.activeParameters()) + " active)";
  return format(
      "%s: %s, %.4g model FLOPs per token\n"
      "%ld nodes x %ld %s = %ld devices; %s, sequence %ld, %ld sequences a "
      "step\n",
      spec.model.name->c_str(), parameters.c_str(),
      model::modelFlops(shape, model::AttentionFlops::Causal).total(),
      static_cast<long>(*spec.cluster.nodes),
      static_cast<long>(*spec.cluster.gpusPerNode),
      spec.cluster.accelerator->name.c_str(),
      static_cast<long>(spec.cluster.worldSize()),
      toString(*spec.training.precision),
      static_cast<long>(*spec.training.sequenceLength),
      static_cast<long>(*spec.training.globalBatchSize));
}

} // namespace

std::string search::choiceLine(const model::Choice &choice) {
  std::string text = "tp " + std::to_string(choice.tp);
  auto degree = [&](const char *name, int64_t value) {
    if (value > 1)
      text += std::string(", ") + name + " " + std::to_string(value);
  };
  text += choice.sequenceParallel ? " + sp" : "";
  degree("cp", choice.cp);
  if (choice.cp > 1)
    text += std::string(" ") + toString(choice.contextMethod);
  text += ", pp " + std::to_string(choice.pp);
  degree("v", choice.v);
  text += ", dp " + std::to_string(choice.dp);
  degree("ep", choice.ep);
  degree("etp", choice.etp);
  text += ", zero " + std::to_string(choice.zero) + ", b " +
          std::to_string(choice.microBatch) + ", m " +
          std::to_string(choice.numMicroBatches) + ", recompute " +
          toString(choice.recompute);
  if (!choice.recomputeLayers.empty())
    text += " of some layers";
  return text + ", " + model::scheduleName(choice.schedule);
}

/// The keys of the choice with their values, as the spec would fix them.
static std::string choiceSection(const model::Choice &choice) {
  std::string text =
      format("\nChoice\n"
             "  tensor_parallel %ld%s, ",
             static_cast<long>(choice.tp),
             choice.sequenceParallel ? " + sequence_parallel" : "");
  if (choice.cp > 1)
    text += format("context_parallel %ld (%s), ", static_cast<long>(choice.cp),
                   toString(choice.contextMethod));
  text += format("pipeline_parallel %ld, ", static_cast<long>(choice.pp));
  if (choice.v > 1)
    text += format("virtual_pipeline %ld, ", static_cast<long>(choice.v));
  if (choice.ep > 1 || choice.etp > 1)
    text += format("expert_parallel %ld, expert_tensor_parallel %ld, ",
                   static_cast<long>(choice.ep), static_cast<long>(choice.etp));
  text +=
      format("data_parallel %ld, zero_stage %ld\n"
             "  micro_batch_size %ld, num_micro_batches %ld, recompute %s, "
             "pipeline_schedule %s\n"
             "  layers: %s\n",
             static_cast<long>(choice.dp), static_cast<long>(choice.zero),
             static_cast<long>(choice.microBatch),
             static_cast<long>(choice.numMicroBatches),
             toString(choice.recompute), model::scheduleName(choice.schedule),
             text::layout(choice.layout).c_str());
  if (!choice.recomputeLayers.empty())
    text +=
        "  fully recomputed layers: " + text::layout(choice.recomputeLayers) +
        "\n";
  return text;
}

/// Configurations that the user named, and the best compilable one, beside the
/// choice.
static std::string comparedSection(const SearchResult &result) {
  const Candidate &best = result.candidates.front();
  std::string text;
  auto line = [&](const char *name, const Candidate &other) {
    return format("  %-11s %s\n              %s (%+.1f %%), peak %s, bubble "
                  "%.1f %%, MFU %.1f %%\n",
                  name, choiceLine(other.choice).c_str(),
                  seconds(other.time.step).c_str(),
                  100 * (other.time.step / best.time.step - 1),
                  bytes(static_cast<double>(other.peakBytes())).c_str(),
                  100 * other.bubbleFraction, 100 * other.time.mfu);
  };
  if (!best.notRunnable.empty())
    text += "\nreckon compile cannot lower this choice yet (" +
            best.notRunnable + ").\n";
  if (result.compared.empty() && !result.runnable)
    return text;
  text += "\nSide by side\n" + line("choice", best);
  if (result.runnable)
    text += line("compilable", *result.runnable);
  for (const Compared &other : result.compared) {
    if (other.candidate)
      text += line("asked for", *other.candidate);
    if (!other.problem.empty())
      text += "  " + other.name + ": " + other.problem + "\n";
  }
  return text;
}

std::string search::reportText(const ReportInput &input) {
  const SearchResult &result = input.result;
  std::string text = headSection(input.spec);
  if (result.candidates.empty())
    return text + "\nNothing fits.\n" + searchSection(input);

  const Candidate &best = result.candidates.front();
  const model::Choice &choice = best.choice;
  text += choiceSection(choice) + comparedSection(result);
  text += memorySection(best, input.spec);
  text += timeSection(best, input.spec);
  text += objectiveSection(best, input.spec);
  model::ScheduleShape shape = model::shapeOf(choice);
  text += format("\nTimetable (a backward takes two units); bubble_fraction "
                 "%.4f, limit %.4g\n",
                 best.bubbleFraction, *input.spec.constraints.maxBubble);
  if (model::whyNotSchedule(shape).empty())
    text += model::schedulePicture(shape, 110);
  else if (result.schedule && result.schedule->orders)
    text += model::schedulePicture(*result.schedule->orders, 110);
  if (const auto &schedule = result.schedule) {
    text += describe(schedule->certificate) + "\n";
    if (schedule->synthesis)
      text += describe(*schedule->synthesisQuery, *schedule->synthesis);
  }
  text += alternativesSection(result);
  return text + searchSection(input);
}
