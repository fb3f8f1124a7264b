//===- ObserveTest.cpp - metrics, logs, the live line ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/observe/JsonLine.h"
#include "runtime/observe/LiveLine.h"
#include "runtime/observe/RunFiles.h"
#include "tests/unit/exec/TinyPlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

using namespace reckon;
using namespace reckon::observe;

TEST(JsonLine, NumbersReadBackAsTheSameBits) {
  JsonLine line;
  double values[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -2.5e-7};
  int i = 0;
  for (double value : values)
    line.add(std::to_string(i++), value);
  line.add("integer", int64_t(-9007199254740993));
  auto json = nlohmann::json::parse(line.finish());
  for (i = 0; i < 5; ++i)
    EXPECT_EQ(json[std::to_string(i)].get<double>(), values[i]);
  EXPECT_EQ(json["integer"].get<int64_t>(), -9007199254740993);
}

TEST(JsonLine, WhatJsonLacksIsNull) {
  JsonLine line;
  line.add("nan", std::numeric_limits<double>::quiet_NaN())
      .add("inf", std::numeric_limits<double>::infinity());
  EXPECT_EQ(line.finish(), "{\"nan\":null,\"inf\":null}\n");
}

TEST(JsonLine, EscapesAndNests) {
  JsonLine line;
  line.add("text", std::string_view("a\"b\\c\nd\x01"))
      .beginObject("o")
      .add("x", int64_t(1))
      .endObject()
      .beginArray("a")
      .element(1)
      .element(2)
      .endArray()
      .add("last", int64_t(3));
  auto json = nlohmann::json::parse(line.finish());
  EXPECT_EQ(json["text"], "a\"b\\c\nd\x01");
  EXPECT_EQ(json["o"]["x"], 1);
  EXPECT_EQ(json["a"], (nlohmann::json{1, 2}));
  EXPECT_EQ(json["last"], 3);
  line.clear();
  EXPECT_EQ(line.finish(), "{}\n");
}

TEST(JsonLine, StaysValidWhenFull) {
  for (int before = 0; before < 120; ++before) {
    JsonLine line;
    line.add("pad", std::string(2700 - before, '"')); // each takes two
    line.beginArray("numbers");
    for (int i = 0; i < 5000; ++i)
      line.element(1234567);
    line.endArray();
    line.beginObject("a long name for an object").add("k", 1.5).endObject();
    line.add("text", std::string_view("more"));
    std::string_view text = line.finish();
    EXPECT_TRUE(nlohmann::json::accept(text)) << before;
    EXPECT_LE(text.size(), 16384u);
  }
}

TEST(RunFiles, LinesAppearWhole) {
  test::TemporaryFolder folder;
  auto file = LineFile::open(folder / "lines", true);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("one\n").ok());
  auto other = LineFile::open(folder / "lines", false);
  ASSERT_TRUE(other->write("two\n").ok());
  ASSERT_TRUE(file->write("three\n").ok());
  std::stringstream text;
  text << std::ifstream(folder / "lines").rdbuf();
  EXPECT_EQ(text.str(), "one\ntwo\nthree\n");
  auto bad = LineFile::open(folder / "missing/lines", false);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ExitCode::Environment);
  EXPECT_NE(bad.error().message.find("--run-dir"), std::string::npos);
}

TEST(RunFiles, LogLinesHaveTimesAndAreCut) {
  test::TemporaryFolder folder;
  FakeClock clock;
  auto log = RankLog::open(folder.path, 7, clock);
  ASSERT_TRUE(log.ok());
  clock.now = 1'500'000'000;
  log->line("hello %d", 3);
  log->line("%s", std::string(1000, 'x').c_str());
  std::ifstream in(folder / "rank-00007.log");
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "     1.500 hello 3");
  std::getline(in, line);
  EXPECT_GT(line.size(), 400u);
  EXPECT_LT(line.size(), 512u);
  EXPECT_FALSE(std::getline(in, line));
}

static std::string shown(bool terminal, int steps, int64_t stepNs) {
  char *text = nullptr;
  size_t size = 0;
  std::FILE *out = open_memstream(&text, &size);
  FakeClock clock;
  LiveLine live(out, terminal, clock);
  for (int step = 1; step <= steps; ++step) {
    clock.now += stepNs;
    live.show({step, steps, 2.5, 1000, 3 << 20, 1e-9 * stepNs});
  }
  live.finish();
  std::fclose(out);
  std::string result(text, size);
  std::free(text);
  return result;
}

TEST(LiveLine, PlainLinesComeEveryFewSeconds) {
  std::string text = shown(false, 100, 1'000'000'000);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "step 1/100  loss 2.5000  1000 tokens/s  3.0 MiB/rank  "
            "1 min 39 s left");
  EXPECT_NE(text.find("step 100/100"), std::string::npos);
}

TEST(LiveLine, ATerminalHasOneLine) {
  std::string text = shown(true, 10, 1'000'000'000);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 10);
}
