//===- LayoutTest.cpp - Megatron's layout strings -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> stagesOf(std::string_view text) {
  std::string problem;
  auto layout = parseMegatronLayout(text, problem);
  EXPECT_TRUE(layout) << text << ": " << problem;
  return layout ? layout->stages : std::vector<int64_t>{};
}

std::string problemOf(std::string_view text) {
  std::string problem;
  EXPECT_FALSE(parseMegatronLayout(text, problem)) << text;
  return problem;
}

TEST(Layout, LayersPerStage) {
  EXPECT_THAT(stagesOf("EtL"), ElementsAre(1));
  EXPECT_THAT(stagesOf("Ettt|tttttL"), ElementsAre(3, 5));
  EXPECT_THAT(stagesOf("Et*3|t*5,L"), ElementsAre(3, 5));
  EXPECT_THAT(stagesOf("Et*3|(tt|)*2tL"), ElementsAre(3, 2, 2, 1));
  EXPECT_THAT(stagesOf("E(t|)*3 t L"), ElementsAre(1, 1, 1, 1));
}

TEST(Layout, EmbeddingAndLossMayStandAlone) {
  EXPECT_THAT(stagesOf("Et|L"), ElementsAre(1, 0));
  EXPECT_THAT(stagesOf("E|tL"), ElementsAre(0, 1));
  EXPECT_THAT(stagesOf("E|(tt|)*2L"), ElementsAre(0, 2, 2, 0));
}

TEST(Layout, PredictionLayersBesideTheLoss) {
  std::string problem;
  auto layout = parseMegatronLayout("Ett|ttm*2L", problem);
  ASSERT_TRUE(layout) << problem;
  EXPECT_THAT(layout->stages, ElementsAre(2, 2));
  EXPECT_EQ(layout->mtpLayers, 2);
}

TEST(Layout, RefusesWhatIsNotLayersPerStage) {
  EXPECT_THAT(problemOf("Et*3|(tt|)*29,m|L"), HasSubstr("(m)"));
  EXPECT_THAT(problemOf("EmttL"), HasSubstr("right before L"));
  EXPECT_THAT(problemOf("Et||tL"), HasSubstr("neither E, L nor a layer"));
  EXPECT_THAT(problemOf("t|tL"), HasSubstr("begin with E"));
  EXPECT_THAT(problemOf("EtEL"), HasSubstr("each once"));
  EXPECT_THAT(problemOf("EtLt"), HasSubstr("end with L"));
  EXPECT_THAT(problemOf(""), HasSubstr("begin with E"));
}

TEST(Layout, RefusesBrokenText) {
  EXPECT_THAT(problemOf("E*t"), HasSubstr("positive number"));
  EXPECT_THAT(problemOf("*3"), HasSubstr("positive number"));
  EXPECT_THAT(problemOf("Et*0L"), HasSubstr("positive number"));
  EXPECT_THAT(problemOf("Et*3*3L"), HasSubstr("positive number"));
  EXPECT_THAT(problemOf("E(t(t)L"), HasSubstr("in each other"));
  EXPECT_THAT(problemOf("E(tL"), HasSubstr("without its )"));
  EXPECT_THAT(problemOf("Et)L"), HasSubstr("without its ("));
  EXPECT_THAT(problemOf("ExL"), HasSubstr("character x"));
}

TEST(Layout, LengthIsBounded) {
  EXPECT_THAT(problemOf("Et*999999999999L"), HasSubstr("too many"));
  EXPECT_THAT(problemOf("Et*99999999999999999999L"), HasSubstr("positive"));
  EXPECT_THAT(problemOf("E(tttttttttt)*100000L"), HasSubstr("too many"));
}

} // namespace
} // namespace reckon
