// The page says what the JSON says, loads nothing and cannot be injected into.

#include "passes/report/Report.h"
#include "passes/report/Charts.h"
#include "passes/report/Markup.h"

#include <gtest/gtest.h>

#include <regex>
#include <stack>

using Json = nlohmann::ordered_json;

namespace {

Json candidate(double step) {
  Json stages = Json::array();
  for (int stage = 0; stage < 2; ++stage)
    stages.push_back({{"stage", stage},
                      {"parameters", 1 << 30},
                      {"gradients", 2 << 20},
                      {"optimizer", 3 << 20},
                      {"activations", 5 << 20},
                      {"logits", 0},
                      {"communication", 7 << 20},
                      {"workspace", 11 << 20},
                      {"reserve", 1 << 20},
                      {"total", (1 << 30) + (29 << 20)}});
  return {{"parallelism",
           {{"tensor_parallel", 8},
            {"sequence_parallel", true},
            {"context_parallel", 2},
            {"pipeline_parallel", 2},
            {"virtual_pipeline", 4},
            {"pipeline_schedule", "interleaved_1f1b"},
            {"pipeline_layout", {5, 5, 6}},
            {"expert_parallel", 1},
            {"data_parallel", 32},
            {"zero_stage", 1},
            {"micro_batch_size", 1},
            {"num_micro_batches", 16},
            {"recompute", "none"}}},
          {"memory",
           {{"peak_bytes", (1 << 30) + (29 << 20)},
            {"limit_bytes", int64_t{2} << 30},
            {"peak_stage", 0},
            {"stages", stages}}},
          {"time",
           {{"step_s", step},
            {"ideal_s", 1.99},
            {"compute_s", 3.0},
            {"bubble_s", 0.5},
            {"exposed_communication_s", 0.75},
            {"optimizer_s", 0.125},
            {"other_s", step - 4.375}}},
          {"bubble_fraction", 0.046875},
          {"throughput",
           {{"tokens_per_s", 883800.0},
            {"tokens_per_s_per_gpu", 863.0},
            {"tflops_per_gpu", 415.0},
            {"mfu", 0.42},
            {"hfu", 0.42}}},
          {"mfu_loss",
           {{{"item", "kernel_efficiency"},
             {"points", 48.5},
             {"step_s", 2.3},
             {"dollars_per_30_days", 894000.0}},
            {{"item", "pipeline_bubble"},
             {"points", 9.5},
             {"step_s", 0.45},
             {"dollars_per_30_days", 175000.0}}}},
          {"communication",
           {{{"dimension", "tensor"},
             {"collective", "reduce_scatter"},
             {"bytes_per_step", 1 << 30},
             {"link", "intra_node"},
             {"time_s", 0.5},
             {"exposed_s", 0.25}}}}};
}

Json report() {
  return {{"schema", "reckon.plan/1"},
          {"model",
           {{"name", "evil <script>alert(1)</script> & co"},
            {"parameters", 70553706496},
            {"active_parameters", 70553706496},
            {"flops_per_token", {{"convention", "6N + 6Lsad"}}}}},
          {"cluster",
           {{"accelerator", "h100-sxm"}, {"gpus", 1024}, {"gpus_per_node", 8}}},
          {"candidates", {candidate(4.75), candidate(5.0)}},
          {"search",
           {{"space", 1234567},
            {"seconds", 0.02},
            {"optimal", true},
            {"rejected", {{"memory", 1000}, {"bubble", 0}}}}},
          {"infeasible", nullptr},
          {"neighbours",
           {{{"key", "parallelism.tensor_parallel"},
             {"from", "8"},
             {"to", "16"},
             {"more_s", -0.5},
             {"more_bytes", 1 << 30},
             {"breaks", {"max_bubble: 0.3 above 0.1"}},
             {"excluded_by_spec", true}},
            {{"key", "parallelism.zero_stage"},
             {"from", "1"},
             {"to", "3"},
             {"impossible", "does not divide"}}}}};
}

std::string page(const Json &json) {
  return reckon::report::reportHtml(json, {"<svg id=\"s\"></svg>", ""},
                                    "model: {name: a<b}\n", {"a & b"});
}

/// Every element that is opened is closed, in order.
void expectBalanced(const std::string &html) {
  static const std::regex tag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
  std::stack<std::string> open;
  for (std::sregex_iterator it(html.begin(), html.end(), tag), end; it != end;
       ++it) {
    std::string name = (*it)[2];
    if (name == "meta" || name == "br" || (*it)[3].length())
      continue;
    if (!(*it)[1].length()) {
      open.push(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << "closes " << name;
    ASSERT_EQ(open.top(), name);
    open.pop();
  }
  EXPECT_TRUE(open.empty()) << "left open: " << open.top();
}

TEST(ReportHtml, IsBalancedAndLoadsNothing) {
  std::string html = page(report());
  expectBalanced(html);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_EQ(html.find("url("), std::string::npos);
  EXPECT_NE(html.find("evil &lt;script&gt;"), std::string::npos);
  EXPECT_NE(html.find("model: {name: a&lt;b}"), std::string::npos);
  EXPECT_NE(html.find("a &amp; b"), std::string::npos);
}

TEST(ReportHtml, ShowsTheNumbers) {
  std::string html = page(report());
  for (const char *text :
       {"70,553,706,496", "1,234,567", "4.75 s", "42.0 %", "4.7 %", "1.03 GiB",
        "−48.5", "−9.5", "894,000", "TP 8 + SP, CP 2, PP 2 × 4, DP 32", "5.3 %",
        "reduce_scatter", "<svg id=\"s\">", "1,000 by memory", "−500 ms",
        "+1.00 GiB",
        "breaks max_bubble: 0.3 above 0.1; only when the spec asks for it",
        "does not divide", "5 × 2, 6"})
    EXPECT_NE(html.find(text), std::string::npos) << text;
  EXPECT_NE(html.find("884 k"), std::string::npos);
  // A reason that excluded nothing is not listed, nor an empty picture.
  EXPECT_EQ(html.find("0 by bubble"), std::string::npos);
  EXPECT_EQ(html.find("id=\"memory-over-time\""), std::string::npos);
}

TEST(ReportHtml, AnswersWhatWasAsked) {
  Json json = report();
  // Without questions none of it is there.
  std::string plain = page(json);
  for (const char *part :
       {"id=\"pareto\"", "id=\"why-not\"", "id=\"compared\"", "#pareto\""})
    EXPECT_EQ(plain.find(part + std::string(">")), std::string::npos) << part;
  json["why_not"] = {{"settings", {{"parallelism.tensor_parallel", "16<"}}},
                     {"parallelism", candidate(5)["parallelism"]},
                     {"step_s", 5.25},
                     {"peak_bytes", int64_t{2} << 30},
                     {"more_s", 0.5},
                     {"time", {{"compute", 0.75}, {"bubble", -0.25}}},
                     {"memory", {{"optimizer", -(1 << 20)}}}};
  json["compared"] = {candidate(6), {{"name", "no<"}, {"problem", "odd & "}}};
  json["compared"][0]["name"] = "zero_stage=3";
  json["compared"][0]["parallelism"]["zero_stage"] = 3;
  json["pareto"] = {{{"gpus", 512}, {"feasible", false}},
                    {{"gpus", 1024},
                     {"feasible", true},
                     {"parallelism", candidate(5)["parallelism"]},
                     {"step_s", 5},
                     {"tokens_per_s", 1e6},
                     {"goodput", 0.98},
                     {"tokens_per_dollar", 4e6},
                     {"train_s", 360000},
                     {"train_dollars", 256000},
                     {"dominated", false}},
                    {{"gpus", 2048},
                     {"feasible", true},
                     {"parallelism", candidate(5)["parallelism"]},
                     {"step_s", 5},
                     {"goodput", 0},
                     {"train_s", nullptr}}};
  std::string html = page(json);
  expectBalanced(html);
  for (const char *text :
       {"<code>parallelism.tensor_parallel: 16&lt;</code>",
        // 3 s + 0.75 s of compute, 500 - 250 ms of bubble, 3 - 1 MiB.
        "<td>3.00 s</td><td>3.75 s</td><td>+750 ms</td>",
        "<td>500 ms</td><td>250 ms</td><td>−250 ms</td>",
        "<td>3.00 MiB</td><td>2.00 MiB</td><td>−1.00 MiB</td>",
        "<th scope=\"col\">zero_stage=3</th>",
        "<code>no&lt;</code>: odd &amp; ",
        "<code>zero_stage</code></th><td>1</td><td>3</td>", "26.3 %",
        "<th scope=\"row\">512</th><td>nothing fits</td>", "4.2 days",
        "$256,000", "no forward progress", "<td>front</td>"})
    EXPECT_NE(html.find(text), std::string::npos) << text;
  // A key that is equal in both columns is left out; only the feasible row
  // with an end is a point.
  EXPECT_EQ(html.find("<code>data_parallel</code></th><td>32</td><td>32</td>"),
            std::string::npos);
  size_t circle = html.find("<circle");
  ASSERT_NE(circle, std::string::npos);
  EXPECT_EQ(html.find("<circle", circle + 1), std::string::npos);
  // What was asked is answered when nothing fits, too.
  json["candidates"] = Json::array();
  html = page(json);
  expectBalanced(html);
  EXPECT_NE(html.find("id=\"why-not\""), std::string::npos);
}

TEST(ReportHtml, SaysWhatTheObjectiveAndTheRiskAre) {
  Json json = report();
  Json &best = json["candidates"][0];
  best["objective"] = {
      {"name", "time_to_train"}, {"value", 360000}, {"unit", "s"}};
  best["training"] = {{"steps", 1000},
                      {"wall_s", 360000},
                      {"goodput", 0.9123},
                      {"dollars", 12345.6}};
  best["memory"]["risk"] = {{"predicted_over_limit", 0.9},
                            {"from", 0.8},
                            {"to", 1.0},
                            {"failed", 38},
                            {"runs", 97},
                            {"least", 0.3005},
                            {"most", 0.4913},
                            {"source", "a <paper>"}};
  std::string html = page(json);
  expectBalanced(html);
  for (const char *text :
       {"Objective <code>time_to_train</code>: 4.2 days", "1000 steps",
        "goodput 91.2 %, $12,346",
        "at 0.90 of the limit the chance to run out of memory is 30 % to 49 %",
        "Of 97 measured runs predicted at 0.80 to 1.00 of it, 38 did "
        "(a &lt;paper&gt;)"})
    EXPECT_NE(html.find(text), std::string::npos) << text;
  best["objective"]["value"] = nullptr;
  best["memory"]["risk"] = nullptr;
  html = page(json);
  EXPECT_NE(html.find("</code>: no forward progress"), std::string::npos);
  EXPECT_NE(html.find("Arenas are static"), std::string::npos);
}

TEST(Scatter, AxesAreLogarithmic) {
  using namespace reckon::report;
  auto text = [](double value) { return decimal(value, 0); };
  Axis axis{"x", text};
  std::string svg = scatter({{1, 100, "a", "", true},
                             {10, 10, "b", "", true},
                             {100, 1, "c", "", true},
                             {10, 50, "d", "", false}},
                            axis, axis);
  // From 1 / 1.2 to 100 x 1.2, 10 is in the middle: 110 to 900 across, 334 to
  // 30 up.
  EXPECT_NE(svg.find("<circle cx=\"505.0\" cy=\"182.0\""), std::string::npos)
      << svg;
  EXPECT_NE(svg.find("L505.0 182.0L"), std::string::npos);
  // Round values: 1, 3, 10, ... where all digits would crowd; hours for time.
  for (const char *tick : {">1<", ">3<", ">10<", ">30<", ">100<"})
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  EXPECT_EQ(svg.find(">50<"), std::string::npos);
  svg = scatter({{3600, 2400, "a", ""}, {9000, 3400, "b", ""}},
                {"t", duration, true}, {"$", dollars});
  for (const char *tick : {">60.0 min<", ">2.00 h<", ">$2,500<", ">$3,000<"})
    EXPECT_NE(svg.find(tick), std::string::npos) << tick << svg;
  EXPECT_EQ(svg.find(">50.0 min<"), std::string::npos);
  EXPECT_EQ(scatter({}, axis, axis), "");
  EXPECT_EQ(scatter({{1, 0, "a", ""}}, axis, axis), "");
}

TEST(ReportHtml, SaysWhatWouldFitWhenNothingDoes) {
  Json json = report();
  json["candidates"] = Json::array();
  json["infeasible"] = {{"conflict", {"memory_limit stage 0", "max_bubble"}},
                        {"shortfall_bytes", int64_t{3} << 30},
                        {"nearest",
                         {{{"change", {{"constraints.max_bubble", 0.15}}},
                           {"candidate", candidate(6)}}}}};
  std::string html = page(json);
  expectBalanced(html);
  for (const char *text :
       {"memory_limit stage 0", "max_bubble", "together reject", "3.00 GiB",
        "constraints.max_bubble: 0.15", "6.00 s"})
    EXPECT_NE(html.find(text), std::string::npos) << text;
  EXPECT_EQ(html.find("id=\"choice\""), std::string::npos);
}

TEST(ReportHtml, MissingKeysLeavePartsOut) {
  Json json = {{"candidates", {Json::object()}}};
  expectBalanced(page(json));
  expectBalanced(page(Json::object()));
}

} // namespace

#include "passes/report/MemoryCurves.h"

TEST(MemoryCurves, StackedStepsOnTheCeilingsScale) {
  using namespace reckon::report;
  MemoryCurve curve{"stage 0", 1000, {{0, {100, 0}}, {5, {100, 400}}}};
  std::string svg =
      memoryCurves({curve}, {{"states", "#111"}, {"slots", "#222"}}, 10, "t<");
  // The panel is 170 high from y 40; 790 wide from x 90. 100 of 1000 bytes are
  // 17 high: y 193. 500 are 85: y 125. Time 5 of 10 is x 485.
  EXPECT_NE(svg.find("M90.0 210.0L90.0 193.0L485.0 193.0L485.0 193.0"
                     "L880.0 193.0L880.0 210.0Z"),
            std::string::npos)
      << svg;
  EXPECT_NE(svg.find("M90.0 210.0L90.0 193.0L485.0 193.0L485.0 125.0"
                     "L880.0 125.0L880.0 210.0Z"),
            std::string::npos)
      << svg;
  EXPECT_NE(svg.find("M90.0 40.0H880.0\" class=\"ceiling\""),
            std::string::npos);
  EXPECT_NE(svg.find("t&lt;"), std::string::npos);
}
