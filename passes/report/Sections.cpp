//===- Sections.cpp - the parts of the page -------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/Sections.h"

#include "passes/report/Charts.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::report;

std::string report::choiceLine(const Json &p) {
  auto degree = [&](const char *name, const char *key) {
    auto value = static_cast<int64_t>(number(p, key));
    return value > 1 ? ", " + std::string(name) + " " + std::to_string(value)
                     : std::string();
  };
  std::string line = "TP " + plain(at(p, "tensor_parallel"));
  if (at(p, "sequence_parallel") == true)
    line += " + SP";
  line += degree("CP", "context_parallel");
  line += ", PP " + plain(at(p, "pipeline_parallel"));
  if (number(p, "virtual_pipeline") > 1)
    line += " × " + plain(at(p, "virtual_pipeline"));
  line += ", DP " + plain(at(p, "data_parallel"));
  line +=
      degree("EP", "expert_parallel") + degree("ETP", "expert_tensor_parallel");
  line += ", ZeRO " + plain(at(p, "zero_stage")) + ", micro-batch " +
          plain(at(p, "micro_batch_size")) + " × " +
          plain(at(p, "num_micro_batches")) + ", recompute " +
          plain(at(p, "recompute")) + ", " + plain(at(p, "pipeline_schedule"));
  return escape(line);
}

static std::string tile(std::string_view name, const std::string &value,
                        const std::string &note) {
  return "<div class=\"tile\"><span>" + escape(name) + "</span><strong>" +
         escape(value) + "</strong><small>" + escape(note) + "</small></div>\n";
}

std::string report::tiles(const Json &report, const Json &best) {
  const Json &time = at(best, "time"), &rate = at(best, "throughput"),
             &memory = at(best, "memory");
  double peak = number(memory, "peak_bytes"),
         limit = number(memory, "limit_bytes");
  std::string html = "<div class=\"tiles\">\n";
  html += tile("step", seconds(number(time, "step_s")),
               "predicted; ideal " + seconds(number(time, "ideal_s")));
  html += tile("tokens/s", magnitude(number(rate, "tokens_per_s")),
               magnitude(number(rate, "tokens_per_s_per_gpu")) + " a device");
  html += tile("MFU", percent(number(rate, "mfu")),
               "HFU " + percent(number(rate, "hfu")) + ", " +
                   decimal(number(rate, "tflops_per_gpu"), 0) +
                   " TFLOP/s a device");
  html += tile("peak memory", bytes(peak),
               "stage " + plain(at(memory, "peak_stage")) + "; limit " +
                   bytes(limit) + " and the reserve");
  html += tile("bubble", percent(number(best, "bubble_fraction")),
               "idle / ideal time of the schedule");
  if (const Json &training = at(best, "training"); !training.is_null()) {
    bool progress = at(training, "wall_s").is_number();
    html += tile(plain(at(training, "steps")) + " steps",
                 progress ? duration(number(training, "wall_s")) : "never",
                 progress ? "with failures; goodput " +
                                percent(number(training, "goodput")) + ", " +
                                dollars(number(training, "dollars"))
                          : "no forward progress");
  }
  const Json &search = at(report, "search");
  html +=
      tile("compared", grouped(static_cast<int64_t>(number(search, "space"))),
           "combinations in " + seconds(number(search, "seconds")));
  return html + "</div>\n";
}

std::string report::choiceSection(const Json &report, const Json &best) {
  Table table({"key", "value"});
  for (const auto &[key, value] : at(best, "parallelism").items())
    table.row({"<code>" + escape(key) + "</code>", escape(plain(value))});
  std::string why;
  const Json &search = at(report, "search");
  const Json &objective = at(best, "objective");
  if (at(search, "optimal") == true)
    why = "No other of the " +
          grouped(static_cast<int64_t>(number(search, "space"))) +
          " combinations that the spec leaves open is better by this model.";
  if (const Json &proof = at(search, "proof"); proof.is_object()) {
    why = "The choice is " + escape(plain(at(proof, "sentence"))) + ".";
    for (const Json &part : at(proof, "parts"))
      why += "<br>" + escape(plain(at(part, "what"))) + ", by " +
             escape(plain(at(part, "method"))) + ": " +
             escape(plain(at(part, "text"))) + ".";
  }
  if (!objective.is_null())
    why += "<br>Objective <code>" + escape(plain(at(objective, "name"))) +
           "</code>: " + escape(objectiveValue(best)) + ".";
  std::string notes;
  if (at(best, "runnable") == false)
    notes = "<p class=\"note\"><code>reckon compile</code> cannot lower this "
            "choice yet: " +
            escape(plain(at(best, "not_runnable_because"))) +
            ". It is accounted for all the same.</p>\n";
  return section("choice", "The choice", why, table.html() + notes);
}

std::string report::memorySection(const Json &, const Json &best) {
  const Json &memory = at(best, "memory");
  std::vector<Bar> bars;
  Table table({"stage", "parameters", "gradients", "optimizer", "activations",
               "logits", "communication", "workspace", "reserve", "total"});
  double reserve = 0;
  size_t shown = 0, stages = at(memory, "stages").size();
  for (const Json &stage : at(memory, "stages")) {
    bool peak = at(stage, "stage") == at(memory, "peak_stage");
    std::vector<std::string> cells{plain(at(stage, "stage")) +
                                   (peak ? " (peak)" : "")};
    Bar bar{"stage " + plain(at(stage, "stage")), {}, ""};
    for (const Category &category : memoryCategories()) {
      double value = number(stage, category.key);
      bar.parts.push_back({category.key, value, bytes(value), category.colour});
      cells.push_back(bytes(value));
    }
    reserve = std::max(reserve, number(stage, "reserve"));
    double total = number(stage, "total");
    cells.push_back("<b>" + bytes(total) + "</b>");
    bar.total = bytes(total);
    table.row(cells, peak);
    // Long pipelines repeat themselves in the middle.
    if (stages <= 24 || shown < 8 || shown + 8 >= stages || peak)
      bars.push_back(std::move(bar));
    ++shown;
  }
  std::string lead = "Of one rank of each pipeline stage, in bytes of 2<sup>"
                     "30</sup> a GiB.";
  if (bars.size() < stages)
    lead += " The picture leaves out the stages in the middle.";
  double limit = number(memory, "limit_bytes");
  return section("memory", "Memory by stage", lead,
                 stackedBars(bars, limit > 0 ? limit + reserve : 0,
                             "limit and reserve " + bytes(limit + reserve)) +
                     table.html());
}

std::string report::timeSection(const Json &report, const Json &best) {
  const Json &time = at(best, "time");
  double step = number(time, "step_s");
  static constexpr std::pair<const char *, Category> kParts[] = {
      {"compute", {"compute_s", "c1"}},
      {"bubble", {"bubble_s", "c5"}},
      {"exposed communication", {"exposed_communication_s", "c6"}},
      {"optimizer", {"optimizer_s", "c3"}},
      {"other", {"other_s", "c7"}}};
  Bar bar{"step", {}, seconds(step)};
  Table table({"part", "time", "share"});
  for (const auto &[name, key] : kParts) {
    double value = number(time, key.key);
    bar.parts.push_back({name, value, seconds(value), key.colour});
    table.row({name, seconds(value), percent(step > 0 ? value / step : 0)});
  }
  table.row({"step", seconds(step), "100 %"}, true);
  std::string convention =
      plain(at(at(at(report, "model"), "flops_per_token"), "convention"));
  return section("time", "Where a step's time goes",
                 "Of the slowest rank. Ideal is the model's FLOPs (" +
                     escape(convention) +
                     ") at the data sheet's peak on all "
                     "devices: " +
                     seconds(number(time, "ideal_s")) + ".",
                 stackedBars({bar}, 0, "") + table.html());
}

std::string report::mfuSection(const Json &, const Json &best) {
  const Json &losses = at(best, "mfu_loss");
  if (losses.empty())
    return "";
  std::vector<Step> steps;
  Table table({"item", "points", "of a step", "$ in 30 days"});
  for (const Json &loss : losses) {
    std::string name = plain(at(loss, "item"));
    std::replace(name.begin(), name.end(), '_', ' ');
    double points = number(loss, "points");
    steps.push_back({name, points, "−" + decimal(points, 1)});
    if (points < 0)
      steps.back().label = "+" + decimal(-points, 1);
    table.row(
        {escape(name), decimal(points, 2), seconds(number(loss, "step_s")),
         grouped(static_cast<int64_t>(number(loss, "dollars_per_30_days")))});
  }
  double mfu = 100 * number(at(best, "throughput"), "mfu");
  return section("mfu", "Where MFU is lost",
                 "Points of 100; the items and the MFU add up to 100.",
                 waterfall(steps, mfu, "MFU") + table.html());
}

std::string report::communicationSection(const Json &, const Json &best) {
  const Json &list = at(best, "communication");
  if (list.empty())
    return "";
  Table table(
      {"dimension", "collective", "link", "sent in a step", "time", "exposed"});
  for (const Json &entry : list)
    table.row({escape(plain(at(entry, "dimension"))),
               escape(plain(at(entry, "collective"))),
               escape(plain(at(entry, "link"))),
               bytes(number(entry, "bytes_per_step")),
               seconds(number(entry, "time_s")),
               seconds(number(entry, "exposed_s"))});
  return section("communication", "Communication",
                 "Of the rank that spends most on it. Exposed time lengthens "
                 "the step; the rest hides behind compute.",
                 table.html());
}

std::string report::limitsSection(const Json &report, const Json &best) {
  const Json &memory = at(best, "memory");
  std::vector<std::string> lines;
  double limit = number(memory, "limit_bytes"), peak = 0;
  for (const Json &stage : at(memory, "stages"))
    peak = std::max(peak, number(stage, "total") - number(stage, "reserve"));
  if (limit > 0)
    lines.push_back("Memory: " + bytes(limit - peak) + " of " + bytes(limit) +
                    " are free on the fullest stage (" +
                    plain(at(memory, "peak_stage")) + ").");
  std::string notes;
  if (const Json &risk = at(memory, "risk"); !risk.is_null()) {
    double full = number(risk, "predicted_over_limit");
    std::string text =
        "The framework's allocator decides: at " + decimal(full, 2) +
        " of the limit the chance to run out of memory is " +
        percent(number(risk, "least"), 0) + " to " +
        percent(number(risk, "most"), 0) + ". Of " + plain(at(risk, "runs")) +
        " measured runs predicted at " +
        (at(risk, "to").is_null()
             ? "more than " + decimal(number(risk, "from"), 2)
             : decimal(number(risk, "from"), 2) + " to " +
                   decimal(number(risk, "to"), 2)) +
        " of it, " + plain(at(risk, "failed")) + " did (" +
        plain(at(risk, "source")) + ").";
    // Where measured runs went either way it is more than a remark.
    if (full >= 0.85)
      notes = "<p class=\"note\">" + escape(text) + "</p>\n";
    else
      lines.push_back(text);
  } else if (memory.contains("risk")) {
    lines.push_back("Arenas are static: no allocator adds to this.");
  }
  const Json &limits = at(report, "limits");
  if (at(limits, "max_bubble").is_number())
    lines.push_back("Bubble: " + percent(number(best, "bubble_fraction")) +
                    " of at most " + percent(number(limits, "max_bubble")) +
                    ".");
  const Json *worst = nullptr;
  for (const Json &loss : at(best, "mfu_loss"))
    if (!worst || number(loss, "points") > number(*worst, "points"))
      worst = &loss;
  if (worst) {
    std::string name = plain(at(*worst, "item"));
    std::replace(name.begin(), name.end(), '_', ' ');
    lines.push_back("Most MFU goes to " + name + ": " +
                    decimal(number(*worst, "points"), 1) + " points.");
  }
  const Json &rejected = at(at(report, "search"), "rejected");
  std::string reasons;
  for (const auto &[reason, count] : rejected.items())
    if (count.is_number_integer() && count.get<int64_t>() > 0) {
      std::string name = reason;
      std::replace(name.begin(), name.end(), '_', ' ');
      reasons += (reasons.empty() ? "" : ", ") + grouped(count.get<int64_t>()) +
                 " by " + name;
    }
  if (!reasons.empty())
    lines.push_back("Excluded combinations: " + reasons + ".");
  std::string html = "<ul>";
  for (const std::string &line : lines)
    html += "<li>" + escape(line) + "</li>\n";
  return section("limits", "What limits it", "", html + "</ul>\n" + notes);
}
