//===- TextDatasetTest.cpp - samples of a text file -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/TextDataset.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

using namespace reckon;
using namespace reckon::data;

namespace {

class TextDatasetTest : public ::testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/reckon-data-XXXXXX";
    folder = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string &text) {
    std::ofstream(folder + "/text", std::ios::binary) << text;
    return folder + "/text";
  }

  static std::string counting(int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i)
      text += static_cast<char>(i * 7 + i / 256);
    return text;
  }

  std::string folder;
};

} // namespace

TEST_F(TextDatasetTest, WindowsCoverTheTextOncePerEpoch) {
  // 10 windows of 8 + 1 bytes need 81 bytes; 7 more are no window.
  for (int bytes : {81, 88}) {
    std::string text = counting(bytes);
    auto source = openText(write(text), 8, 256, 3);
    ASSERT_TRUE(source.ok());
    ASSERT_EQ((*source)->windows(), 10u);
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<std::vector<int32_t>> seen;
      for (uint64_t i = 0; i < 10; ++i) {
        std::vector<int32_t> tokens(8);
        std::vector<int32_t> targets(8);
        (*source)->read(epoch * 10 + i, tokens.data(), targets.data());
        for (int t = 0; t + 1 < 8; ++t)
          EXPECT_EQ(targets[t], tokens[t + 1]);
        seen.insert(tokens);
        std::vector<int32_t> again(8);
        (*source)->read(epoch * 10 + i, nullptr, again.data());
        EXPECT_EQ(again, targets);
      }
      std::set<std::vector<int32_t>> want;
      for (int w = 0; w < 10; ++w) {
        std::vector<int32_t> window;
        for (int t = 0; t < 8; ++t)
          window.push_back(static_cast<unsigned char>(text[w * 8 + t]));
        want.insert(window);
      }
      EXPECT_EQ(seen, want);
    }
  }
}

TEST_F(TextDatasetTest, OrderIsAFunctionOfTheSeed) {
  std::string path = write(counting(1000));
  auto tokensOf = [&](uint64_t seed) {
    auto source = openText(path, 8, 256, seed);
    std::vector<int32_t> tokens(8 * 20);
    for (uint64_t i = 0; i < 20; ++i)
      (*source)->read(i, &tokens[8 * i], nullptr);
    return tokens;
  };
  EXPECT_EQ(tokensOf(1), tokensOf(1));
  EXPECT_NE(tokensOf(1), tokensOf(2));
}

TEST(SampleIndex, AStepsSamplesDoNotDependOnTheLayout) {
  constexpr uint64_t kBatch = 16;
  for (uint64_t step : {0, 1, 7})
    for (uint64_t dp : {1, 2, 4})
      for (uint64_t b : {1, 2, 4}) {
        std::map<uint64_t, int> seen;
        for (uint64_t d = 0; d < dp; ++d)
          for (uint64_t j = 0; j < kBatch / (dp * b); ++j)
            for (uint64_t i = 0; i < b; ++i)
              ++seen[sampleIndex(step, kBatch, j, dp, d, b, i)];
        ASSERT_EQ(seen.size(), kBatch);
        EXPECT_EQ(seen.begin()->first, step * kBatch);
        EXPECT_EQ(seen.rbegin()->first, step * kBatch + kBatch - 1);
      }
  EXPECT_EQ(sampleIndex(2, 16, 1, 2, 1, 3, 2), 32u + 6 + 3 + 2);
}

TEST_F(TextDatasetTest, ShortTextsAndForeignBytesAreBadSpecs) {
  auto result = openText(write(counting(8)), 8, 256, 1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ExitCode::BadSpec);
  EXPECT_NE(result.error().message.find("expected at least 9 bytes"),
            std::string::npos);
  EXPECT_TRUE(openText(write(counting(9)), 8, 256, 1).ok());

  std::string text(20, 'a');
  text[13] = '\xe9';
  result = openText(write(text), 8, 128, 1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ExitCode::BadSpec);
  EXPECT_NE(result.error().message.find("got 233 at byte 13"),
            std::string::npos)
      << result.error().message;
  EXPECT_TRUE(openText(write(text), 8, 234, 1).ok());
}

TEST_F(TextDatasetTest, UnreadableTextsAreEnvironmentErrors) {
  for (const std::string &path : {folder + "/nothing", folder}) {
    auto result = openText(path, 8, 256, 1);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ExitCode::Environment);
    EXPECT_NE(result.error().message.find("--data"), std::string::npos);
  }
}

TEST(ResolveText, LooksInOrder) {
  FakeFileSystem files;
  TextLocation where{"", "c.txt", "../specs", "out/plan"};
  auto failed = resolveText(files, where);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ExitCode::Environment);
  for (const char *part : {"out/plan/../specs/c.txt", "c.txt", "--data"})
    EXPECT_NE(failed.error().message.find(part), std::string::npos) << part;
  files.files["c.txt"] = "x";
  EXPECT_EQ(*resolveText(files, where), "c.txt");
  files.files["out/plan/../specs/c.txt"] = "x";
  EXPECT_EQ(*resolveText(files, where), "out/plan/../specs/c.txt");
  where.replacement = "mine";
  EXPECT_EQ(resolveText(files, where).error().code, ExitCode::Environment);
  files.files["mine"] = "x";
  EXPECT_EQ(*resolveText(files, where), "mine");
  where = {"", "/abs/c.txt", "../specs", "plan"};
  EXPECT_FALSE(resolveText(files, where).ok());
  files.files["/abs/c.txt"] = "x";
  EXPECT_EQ(*resolveText(files, where), "/abs/c.txt");
  where.path = "";
  EXPECT_EQ(resolveText(files, where).error().code, ExitCode::BadSpec);
}
