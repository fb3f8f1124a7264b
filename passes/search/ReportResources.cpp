//===- ReportResources.cpp - memory and time of the choice for people -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"
#include "passes/search/ReportFormat.h"
#include "passes/search/ReportParts.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::search;
using namespace reckon::search::text;

namespace {

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

/// Decoder layers of a pipeline rank, all its chunks.
int64_t layersOf(const model::Choice &choice, size_t rank) {
  int64_t layers = 0;
  for (int64_t stage = 0; stage < choice.stages(); ++stage)
    if (model::rankOfStage(choice.schedule, choice.pp, choice.v, stage) ==
        static_cast<int64_t>(rank))
      layers += choice.layout[static_cast<size_t>(stage)];
  return layers;
}

/// How sure it is that the choice fits.
std::string riskLine(const Candidate &best, int64_t limit) {
  if (!best.risk)
    return best.notRunnable.empty()
               ? "  Arenas are static: what fits here fits in the run.\n"
               : "  Arenas are static, so no allocator adds to this; but it is "
                 "an estimate until reckon compile can lower the choice.\n";
  const model::MemoryRisk &risk = *best.risk;
  std::string band = std::isinf(risk.to)
                         ? format("above %.3g", risk.from)
                         : format("%.3g to %.3g", risk.from, risk.to);
  return format(
      "  The allocator is not ours: at %.2f of the limit the chance "
      "to run out of memory is %.0f to %.0f %%; of %ld measured "
      "runs\n  predicted at %s of it, %ld did (%s)\n",
      static_cast<double>(best.peakArena()) / static_cast<double>(limit),
      100 * risk.least(), 100 * risk.most(), static_cast<long>(risk.runs),
      band.c_str(), static_cast<long>(risk.failed), risk.source.c_str());
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

} // namespace

std::string search::memorySection(const Candidate &best, const Spec &spec) {
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
    text +=
        format("  %5zu  %6ld", i, static_cast<long>(layersOf(best.choice, i)));
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
  return text + "\n" + riskLine(best, limit);
}

std::string search::timeSection(const Candidate &best, const Spec &spec) {
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
