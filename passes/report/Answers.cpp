//===- Answers.cpp - what was asked beside the choice ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/Sections.h"

#include "passes/report/Charts.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::report;

static std::string words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string report::objectiveValue(const Json &candidate) {
  const Json &objective = at(candidate, "objective");
  if (!at(objective, "value").is_number())
    return "no forward progress";
  double value = number(objective, "value");
  std::string unit = plain(at(objective, "unit"));
  return unit == "dollars" ? dollars(value)
         : unit == "bytes" ? bytes(value)
                           : duration(value);
}

std::string report::comparedSection(const Json &report, const Json &best) {
  std::vector<std::pair<std::string, const Json *>> columns{{"choice", &best}};
  if (const Json &other = at(report, "compilable"); !other.is_null())
    columns.emplace_back("best that compiles", &other);
  std::string notes;
  for (const Json &candidate : at(report, "compared")) {
    std::string name = plain(at(candidate, "name"));
    if (!at(candidate, "parallelism").is_null())
      columns.emplace_back(name, &candidate);
    if (const Json &problem = at(candidate, "problem"); !problem.is_null())
      notes += "<p class=\"note\"><code>" + escape(name) +
               "</code>: " + escape(plain(problem)) + "</p>\n";
  }
  if (columns.size() < 2)
    return notes.empty() ? "" : section("compared", "Side by side", "", notes);
  std::vector<std::string> head{""};
  // Long questions wrap at their commas.
  for (const auto &[name, candidate] : columns) {
    head.emplace_back();
    for (char c : name)
      head.back() += c == ',' ? ", " : std::string(1, c);
  }
  Table table(head);
  auto row = [&](const std::string &name, auto cell, bool mark = false) {
    std::vector<std::string> cells{name};
    for (const auto &[column, candidate] : columns)
      cells.push_back(cell(*candidate));
    table.row(cells, mark);
  };
  double least = number(at(best, "time"), "step_s");
  row(
      "step",
      [&](const Json &c) { return seconds(number(at(c, "time"), "step_s")); },
      true);
  row("slower by", [&](const Json &c) {
    double step = number(at(c, "time"), "step_s");
    return decimal(least > 0 ? 100 * (step / least - 1) : 0, 1) + " %";
  });
  for (const char *key : {"compute_s", "bubble_s", "exposed_communication_s",
                          "optimizer_s", "other_s"}) {
    std::string name = key;
    row(words(name.substr(0, name.size() - 2)),
        [&](const Json &c) { return seconds(number(at(c, "time"), key)); });
  }
  if (const Json &objective = at(best, "objective"); !objective.is_null())
    row(escape(words(plain(at(objective, "name")))), objectiveValue);
  row("peak memory", [](const Json &c) {
    return bytes(number(at(c, "memory"), "peak_bytes"));
  });
  row("bubble",
      [](const Json &c) { return percent(number(c, "bubble_fraction")); });
  row("MFU", [](const Json &c) {
    return percent(number(at(c, "throughput"), "mfu"));
  });
  // Of the keys only those in which some column differs.
  for (const auto &[key, value] : at(best, "parallelism").items()) {
    bool same = std::all_of(columns.begin(), columns.end(), [&](auto &column) {
      return at(at(*column.second, "parallelism"), key) == value;
    });
    if (!same)
      row("<code>" + escape(key) + "</code>", [&](const Json &c) {
        return escape(plain(at(at(c, "parallelism"), key)));
      });
  }
  return section("compared", "Side by side",
                 "Keys that are equal everywhere are left out.",
                 table.html() + notes);
}

/// `tensor_parallel = 16`, several joined.
static std::string question(const Json &why) {
  std::string text;
  for (const auto &[key, value] : at(why, "settings").items())
    text += (text.empty() ? "<code>" : ", <code>") + escape(key) + ": " +
            escape(plain(value)) + "</code>";
  return text;
}

std::string report::whyNotSection(const Json &report, const Json &best) {
  const Json &why = at(report, "why_not");
  if (why.is_null())
    return "";
  std::string lead = "What would be with " + question(why) + ".";
  std::string html;
  if (const Json &problem = at(why, "problem"); !problem.is_null())
    html += "<p class=\"note\">It contradicts the spec.</p><pre>" +
            escape(plain(problem)) + "</pre>\n";
  if (const Json &conflict = at(why, "conflict"); !conflict.is_null()) {
    html += "<p class=\"note\">Nothing with it fits: ";
    for (const Json &limit : conflict)
      html += (&limit == &conflict.front() ? "<code>" : " and <code>") +
              escape(plain(limit)) + "</code>";
    if (double missing = number(why, "shortfall_bytes"); missing > 0)
      html += "; " + bytes(missing) + " are missing";
    html += ".</p>\n";
  }
  if (const Json &other = at(why, "parallelism"); !other.is_null()) {
    html += "<p>The best with it: " + choiceLine(other) + "</p>\n";
    if (best.is_null())
      return section("why-not", "Why not", lead, html);
    Table table({"", "choice", "with it", "difference"});
    auto row = [&](const std::string &name, double ours, double theirs,
                   std::string (*text)(double), bool mark) {
      double more = theirs - ours;
      table.row({name, text(ours), text(theirs),
                 (more < 0 ? "−" : "+") + text(more < 0 ? -more : more)},
                mark);
    };
    const Json &time = at(best, "time"), &memory = at(best, "memory");
    row("step", number(time, "step_s"), number(why, "step_s"), seconds, true);
    for (const auto &[key, more] : at(why, "time").items()) {
      double ours = number(time, key + "_s");
      if (more.is_number() && more.get<double>() != 0)
        row(words(key), ours, ours + more.get<double>(), seconds, false);
    }
    row("peak memory", number(memory, "peak_bytes"), number(why, "peak_bytes"),
        bytes, true);
    const Json &stages = at(memory, "stages");
    auto peak = static_cast<size_t>(number(memory, "peak_stage"));
    for (const auto &[key, more] : at(why, "memory").items()) {
      double ours = peak < stages.size() ? number(stages[peak], key) : 0;
      if (more.is_number() && more.get<double>() != 0)
        row(words(key), ours, ours + more.get<double>(), bytes, false);
    }
    html += table.html();
  }
  return section("why-not", "Why not", lead, html);
}

std::string report::paretoSection(const Json &report) {
  const Json &rows = at(report, "pareto");
  if (rows.empty())
    return "";
  Table table({"devices", "configuration", "step", "tokens/s", "goodput",
               "tokens/$", "training", "cost", ""});
  std::vector<Point> points;
  double now = number(at(report, "cluster"), "gpus");
  for (const Json &row : rows) {
    double gpus = number(row, "gpus");
    std::string devices = grouped(static_cast<int64_t>(gpus));
    if (at(row, "feasible") != true) {
      table.row({devices, "nothing fits", "", "", "", "", "", "", ""},
                gpus == now);
      continue;
    }
    bool progress = at(row, "train_s").is_number();
    bool dominated = at(row, "dominated") == true;
    double train = number(row, "train_s"), cost = number(row, "train_dollars");
    std::string when = progress ? duration(train) : "never";
    table.row({devices, choiceLine(at(row, "parallelism")),
               seconds(number(row, "step_s")),
               magnitude(number(row, "tokens_per_s")),
               percent(number(row, "goodput"), 2),
               magnitude(number(row, "tokens_per_dollar")), when,
               progress ? dollars(cost) : "",
               !progress   ? "no forward progress"
               : dominated ? "dominated"
                           : "front"},
              gpus == now);
    if (progress)
      points.push_back({train, cost, devices,
                        devices + " devices: " + when + ", " + dollars(cost),
                        !dominated, gpus == now});
  }
  return section(
      "pareto", "Time against money",
      "The best plan on other numbers of devices with the same batch: expected "
      "length and price of the training, failures and checkpoints included. "
      "Blue points are on the front; grey ones are dominated, another is "
      "neither slower nor dearer. The larger point is this cluster.",
      scatter(points, {"training takes", duration, true}, {"cost", dollars}) +
          table.html());
}
