//===- ReportText.cpp - reckon plan for people ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/ParallelKeys.h"
#include "passes/search/Report.h"

#include "passes/model/ModelShape.h"
#include "passes/model/time/ModelFlops.h"

#include <algorithm>
#include <cstdarg>

using namespace reckon;
using namespace reckon::search;

namespace {

#if defined(__GNUC__)
[[gnu::format(printf, 1, 2)]]
#endif
std::string
format(const char *pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  std::string text(std::vsnprintf(nullptr, 0, pattern, arguments), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(arguments);
  va_end(again);
  return text;
}

/// 70,553,706,496.
std::string grouped(int64_t value) {
  std::string digits = std::to_string(value), text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

/// Three digits and a unit that suits small models too.
std::string bytes(double value) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return format(unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
}

std::string gib(uint64_t value) {
  return format("%.2f GiB", static_cast<double>(value) / 1073741824.0);
}

std::string seconds(double value) {
  if (value >= 1)
    return format("%.2f s", value);
  if (value >= 1e-3)
    return format("%.2f ms", value * 1e3);
  return format("%.1f us", value * 1e6);
}

/// `6x2, 7, 6` for long runs of equal stages.
std::string layoutText(const std::vector<int64_t> &layout) {
  std::string text;
  for (size_t i = 0; i < layout.size();) {
    size_t end = i;
    while (end < layout.size() && layout[end] == layout[i])
      ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(layout[i]);
    if (end - i > 1)
      text += " x " + std::to_string(end - i) + " stages";
    i = end;
  }
  return text;
}

struct Column {
  const char *name;
  char mark; ///< in the bars
  uint64_t model::StageMemory::*bytes;
};

constexpr Column kColumns[] = {
    {"parameters", 'P', &model::StageMemory::parameters},
    {"gradients", 'G', &model::StageMemory::gradients},
    {"optimizer", 'O', &model::StageMemory::optimizer},
    {"activations", 'A', &model::StageMemory::activations},
    {"logits", 'L', &model::StageMemory::logits},
    {"communication", 'C', &model::StageMemory::communication},
    {"workspace", 'W', &model::StageMemory::workspace},
    {"reserve", 'R', &model::StageMemory::reserve}};

/// A bar of `width` for `full` bytes; every state starts where the exact sum
/// of the ones before it falls, so that rounding does not add up.
std::string memoryBar(const model::StageMemory &memory, double full,
                      size_t width) {
  std::string bar;
  double at = 0;
  for (const Column &column : kColumns) {
    at += static_cast<double>(memory.*column.bytes);
    auto end = static_cast<size_t>(at / full * static_cast<double>(width) + .5);
    bar.append(std::min(end, width) - std::min(bar.size(), end), column.mark);
  }
  bar.resize(width, '.');
  return bar;
}

std::string memorySection(const Candidate &best, const Spec &spec) {
  int64_t limit = spec.constraints.memoryLimitBytes();
  std::string text = format(
      "\nMemory of a rank by pipeline stage (limit %s without the reserve)\n"
      "  stage  layers",
      bytes(static_cast<double>(limit)).c_str());
  for (const Column &column : kColumns)
    text += format(" %13s", column.name);
  text += format(" %13s\n", "total");
  double full = 0;
  for (size_t i = 0; i < best.stages.size(); ++i) {
    const model::StageMemory &memory = best.stages[i];
    text += format("  %5zu  %6ld", i, static_cast<long>(best.choice.layout[i]));
    for (const Column &column : kColumns)
      text += format(" %13s",
                     bytes(static_cast<double>(memory.*column.bytes)).c_str());
    text +=
        format(" %13s%s\n", bytes(static_cast<double>(memory.total())).c_str(),
               static_cast<int64_t>(i) == best.peakStage ? "  peak" : "");
    full = std::max(full, static_cast<double>(memory.total()));
  }
  // Against the card when a bar would not vanish in it, else the largest.
  double card = static_cast<double>(limit + best.stages[0].reserve);
  if (full > card / 8)
    full = std::max(full, card);
  text += "\n";
  for (size_t i = 0; i < best.stages.size(); ++i)
    text +=
        format("  %5zu |%s|\n", i, memoryBar(best.stages[i], full, 64).c_str());
  std::string end = bytes(full);
  text += format("        |0%*s|", 63, end.c_str());
  for (const Column &column : kColumns)
    text += format("%s%c %s", &column == kColumns ? "  " : ", ", column.mark,
                   column.name);
  return text + "\n";
}

/// How near comparable measured runs were, and whose constants these are.
std::string errorBand(const model::StepTime &time) {
  std::string text;
  if (time.errorBand > 0)
    text = format("; 90 %% of comparable measured runs were within %.0f %%",
                  100 * time.errorBand);
  text += time.efficiencyFamily.empty()
              ? "; global constants"
              : "; constants of " + time.efficiencyFamily;
  return text;
}

std::string timeSection(const Candidate &best, const Spec &spec) {
  const model::StepTime &time = best.time;
  std::string text =
      format("\nPredicted time of a step: %s%s\n", seconds(time.step).c_str(),
             errorBand(time).c_str());
  struct Part {
    const char *name;
    double seconds;
  };
  for (Part part :
       {Part{"compute", time.compute}, Part{"bubble", time.bubble},
        Part{"exposed communication", time.exposedCommunication},
        Part{"optimizer", time.optimizer}, Part{"other", time.other}})
    text +=
        format("  %-22s %10s  %5.1f %%\n", part.name,
               seconds(part.seconds).c_str(), 100 * part.seconds / time.step);
  text += format("  %.4g tokens/s, %.4g a device; MFU %.1f %%, HFU %.1f %% "
                 "(%s)\n",
                 time.tokensPerSecond, time.tokensPerSecondPerDevice,
                 100 * time.mfu, 100 * time.hfu, time.flopConvention.c_str());
  text += "  Where MFU goes:";
  for (const model::MfuLoss &loss : time.losses)
    text += format("%s %s %.1f", &loss == &time.losses.front() ? "" : ",",
                   loss.item.c_str(), loss.points);
  text += " points\n";
  if (!time.communication.empty())
    text += "\nCommunication of a rank in a step\n";
  for (const model::CommunicationTime &entry : time.communication)
    text +=
        format("  %-9s %-15s %12s over %-10s  %10s, %s exposed\n",
               entry.dimension.c_str(), entry.collective.c_str(),
               bytes(entry.bytesPerStep).c_str(), entry.link.c_str(),
               seconds(entry.seconds).c_str(), seconds(entry.exposed).c_str());
  return text;
}

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
             layoutText(choice.layout).c_str());
  if (!choice.recomputeLayers.empty())
    text += "; fully recomputed " + layoutText(choice.recomputeLayers);
  return text + "\n";
}

std::string searchSection(const ReportInput &input) {
  const SearchResult &result = input.result;
  const RejectedCounts &out = result.rejected;
  std::string text =
      format("\nSearched all %s combinations in %s: %s do not divide",
             grouped(result.space).c_str(), seconds(input.seconds).c_str(),
             grouped(out.divisibility).c_str());
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
  text += format(
      "data_parallel %ld, zero_stage %ld\n"
      "  micro_batch_size %ld, num_micro_batches %ld, recompute %s, "
      "pipeline_schedule %s\n"
      "  layers: %s\n",
      static_cast<long>(choice.dp), static_cast<long>(choice.zero),
      static_cast<long>(choice.microBatch),
      static_cast<long>(choice.numMicroBatches), toString(choice.recompute),
      model::scheduleName(choice.schedule), layoutText(choice.layout).c_str());
  if (!choice.recomputeLayers.empty())
    text += "  fully recomputed layers: " + layoutText(choice.recomputeLayers) +
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
  model::ScheduleShape shape = model::shapeOf(choice);
  text += format("\nTimetable (a backward takes two units); bubble_fraction "
                 "%.4f, limit %.4g\n",
                 best.bubbleFraction, *input.spec.constraints.maxBubble);
  if (model::whyNotSchedule(shape).empty())
    text += model::schedulePicture(shape, 110);
  if (const auto &schedule = result.schedule) {
    text += describe(schedule->certificate) + "\n";
    if (schedule->synthesis)
      text += describe(*schedule->synthesisQuery, *schedule->synthesis);
  }
  text += alternativesSection(result);
  return text + searchSection(input);
}

std::string search::infeasibleText(const ReportInput &input) {
  const Infeasible &why = *input.result.infeasible;
  std::string limits;
  for (const std::string &limit : why.conflict)
    limits += (limits.empty() ? "" : " and ") + limit;
  std::string text =
      "reckon: error: nothing fits: " + limits +
      (why.conflict.size() > 1 ? " together reject" : " rejects") + " all " +
      grouped(input.result.space) + " combinations\n";
  for (const std::string &reason : why.reasons)
    text += "  " + reason + "\n";
  if (why.closest) {
    const Candidate &closest = *why.closest;
    text += "  closest: " + choiceLine(closest.choice) + "\n";
    if (why.shortfallBytes)
      text += "  stage " + std::to_string(closest.peakStage) + " needs " +
              gib(closest.peakArena()) + ", " + gib(why.shortfallBytes) +
              " more than the limit of " +
              gib(input.spec.constraints.memoryLimitBytes()) + "\n";
    if (closest.bubbleFraction > *input.spec.constraints.maxBubble)
      text += format("  its bubble is %.4f, max_bubble %.4g\n",
                     closest.bubbleFraction, *input.spec.constraints.maxBubble);
  }
  for (Limit limit : why.limits)
    if (limit == Limit::HostMemory && why.closest)
      text += "  a node stages " + gib(why.closest->hostBytes) +
              " of checkpoint in host memory\n";
  for (Limit limit : why.limits)
    if (limit != Limit::Divisibility)
      text += "  " + limitLoc(input.spec, limit).str() + ": " +
              limitKey(limit) +
              (limitGiven(input.spec, limit) ? "" : ", a default") + "\n";
  if (why.checked && why.limits.size() > 1)
    text += "  without any one of them something would fit\n";
  if (why.nearest.empty())
    text += "  no change that was tried makes it fit\n";
  for (const NearestChange &change : why.nearest) {
    std::string settings;
    for (const Setting &setting : change.settings)
      settings += (settings.empty() ? "" : " and ") + setting.key + ": " +
                  setting.value;
    text +=
        format("  fits with %s (%s; %s a step, peak %s)\n", settings.c_str(),
               choiceLine(change.candidate.choice).c_str(),
               seconds(change.candidate.time.step).c_str(),
               gib(change.candidate.peakBytes()).c_str());
  }
  return text;
}
