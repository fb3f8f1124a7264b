//===- Html.cpp - the page ------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/report/Report.h"

#include "passes/report/Sections.h"

using namespace reckon;
using namespace reckon::report;

namespace {

constexpr std::string_view kStyle = R"(
:root{--bg:#fff;--fg:#1c2430;--dim:#5b6675;--line:#dde2e8;--soft:#f5f7f9;
--mark:#eaf2fb;--c1:#3f74a8;--c2:#e8892b;--c3:#4d9a73;--c4:#d1504f;--c5:#d9b531;
--c6:#9a6fb0;--c7:#8b949e;--c8:#cfd6dd}
@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e4e8ec;--dim:#9aa5b1;
--line:#2c343d;--soft:#1b2127;--mark:#1e2c3a;--c1:#6a9fd4;--c2:#f0a355;
--c3:#6cbd93;--c4:#e57a78;--c5:#e6c95a;--c6:#b794cc;--c7:#87919c;--c8:#4a545e}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px 20px 60px;max-width:1080px;background:var(--bg);
color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{font-size:26px;margin:8px 0 2px}h2{font-size:19px;margin:36px 0 6px;
padding-top:14px;border-top:1px solid var(--line)}h3{font-size:16px;margin:22px 0 6px}
p{margin:6px 0}.lead,.sub{color:var(--dim)}code{font-size:.92em}
nav{margin:12px 0}nav a{margin-right:14px;color:var(--c1)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));
gap:10px;margin:18px 0}
.tile{background:var(--soft);border:1px solid var(--line);border-radius:8px;
padding:10px 12px}.tile span,.tile small{display:block;color:var(--dim);
font-size:12.5px}.tile strong{font-size:22px;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:10px 0;font-size:14px;
font-variant-numeric:tabular-nums}th,td{padding:4px 12px 4px 0;text-align:right;
border-bottom:1px solid var(--line);vertical-align:top}
th:first-child{text-align:left;font-weight:500}
#choice thead th,#pareto thead th:nth-child(2),#alternatives thead th:nth-child(2),#alternatives thead th:last-child,
#communication thead th:nth-child(-n+3),#infeasible thead th:nth-child(2)
{text-align:left}thead th{color:var(--dim);
font-weight:600;white-space:nowrap}tr.mark{background:var(--mark)}
#choice td,#pareto td:nth-child(2),#pareto td:last-child,#alternatives td:nth-child(2),#infeasible td:nth-child(2),
#alternatives td:last-child,#communication td:nth-child(-n+3){text-align:left}
svg{width:100%;height:auto;margin:8px 0;font:13px system-ui,sans-serif}
svg text{fill:var(--fg)}svg .value{fill:var(--dim);font-size:12px}
.limit{stroke:var(--c4);stroke-dasharray:5 4;fill:none}
.front{stroke:var(--c1);stroke-width:1.5;fill:none}
#compared thead th{white-space:normal}
.thread{stroke:var(--dim);stroke-width:.6;fill:none}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;padding:0;
margin:4px 0;font-size:13px}.legend span{display:inline-block;width:11px;height:11px;
border-radius:2px;margin-right:6px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:0 40px}
.note{background:var(--soft);border-left:3px solid var(--c2);padding:8px 12px}
.picture{background:#fff;border-radius:6px;overflow-x:auto}.picture svg text{fill:revert-layer}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;
padding:12px;overflow-x:auto;font-size:13px}
)";

std::string headline(const Json &report) {
  const Json &model = at(report, "model"), &cluster = at(report, "cluster");
  auto parameters = static_cast<int64_t>(number(model, "parameters"));
  auto active = static_cast<int64_t>(number(model, "active_parameters"));
  std::string line = grouped(parameters) + " parameters";
  if (active && active != parameters)
    line += " (" + grouped(active) + " active)";
  line += " on " + grouped(static_cast<int64_t>(number(cluster, "gpus"))) +
          " × " + plain(at(cluster, "accelerator")) + ", " +
          plain(at(cluster, "gpus_per_node")) + " a node";
  return "<h1>" + escape(plain(at(model, "name"))) +
         "</h1>\n<p class=\"sub\">" + escape(line) + "</p>\n";
}

/// To a part that is only there when it was asked for.
std::string link(const Json &report, const char *key, const char *id,
                 const char *name) {
  return at(report, key).empty()
             ? ""
             : "<a href=\"#" + std::string(id) + "\">" + name + "</a>";
}

std::string picture(const char *id, const char *title, const char *lead,
                    const std::string &svg) {
  if (svg.empty())
    return "";
  return section(id, title, lead, "<div class=\"picture\">" + svg + "</div>");
}

std::string appendix(const std::string &spec,
                     const std::vector<std::string> &warnings) {
  std::string html;
  for (const std::string &warning : warnings)
    html += "<p class=\"note\">" + escape(warning) + "</p>\n";
  if (!spec.empty())
    html += "<details><summary>The spec</summary><pre>" + escape(spec) +
            "</pre></details>\n";
  return html.empty() ? "" : section("spec", "What was asked", "", html);
}

} // namespace

std::string report::reportHtml(const Json &report, const Pictures &pictures,
                               const std::string &spec,
                               const std::vector<std::string> &warnings) {
  std::string body = headline(report);
  const Json &candidates = at(report, "candidates");
  if (candidates.empty()) {
    body += infeasibleSection(report) + whyNotSection(report, Json());
  } else {
    const Json &best = candidates.front();
    body += tiles(report, best);
    body += "<nav><a href=\"#choice\">choice</a><a href=\"#limits\">limits</a>"
            "<a href=\"#memory\">memory</a><a href=\"#schedule\">schedule</a>"
            "<a href=\"#time\">time</a><a href=\"#mfu\">MFU</a>"
            "<a href=\"#communication\">communication</a>"
            "<a href=\"#alternatives\">alternatives</a>" +
            link(report, "why_not", "why-not", "why not") +
            link(report, "pareto", "pareto", "time and money") + "</nav>\n";
    body += "<div class=\"pair\">\n" + choiceSection(report, best) +
            limitsSection(report, best) + "</div>\n";
    body += memorySection(report, best);
    body += picture("memory-over-time", "Memory over one step",
                    "A rank of each stage, by the schedule's order.",
                    pictures.memoryOverTime);
    body += picture("schedule", "Schedule",
                    "Pipeline ranks over the time of one step; numbers are "
                    "micro-batches.",
                    pictures.schedule);
    body += timeSection(report, best) + mfuSection(report, best);
    body += communicationSection(report, best);
    body += comparedSection(report, best) + whyNotSection(report, best);
    body += alternativesSection(report, best);
  }
  body += paretoSection(report);
  body += appendix(spec, warnings);
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
         "\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
         escape(plain(at(at(report, "model"), "name"))) +
         " - Reckon plan</title>\n<style>" + std::string(kStyle) +
         "</style>\n</head>\n<body>\n" + body + "</body>\n</html>\n";
}
