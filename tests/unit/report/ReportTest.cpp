// The page says what the JSON says, loads nothing and cannot be injected into.

#include "passes/report/Report.h"

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
