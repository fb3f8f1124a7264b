//===- YamlTest.cpp - bytes to nodes, whatever the bytes ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace reckon {
namespace {

using ::testing::HasSubstr;

std::string errorOf(const std::string &text) {
  std::vector<Diagnostic> errors;
  bool parsed = parseYaml("f", text, errors).has_value();
  EXPECT_TRUE(!errors.empty() || parsed);
  return joinDiagnostics(errors);
}

TEST(Yaml, KeepsPlacesOfKeysAndValues) {
  std::vector<Diagnostic> errors;
  auto root = parseYaml("f", "a:\n  b: [1, \"2\"]\n", errors);
  ASSERT_TRUE(root) << joinDiagnostics(errors);
  const Entry *b = root->find("a")->value.find("b");
  ASSERT_TRUE(b);
  EXPECT_EQ(b->loc.str(), "f:2:3");
  EXPECT_EQ(b->value.loc.str(), "f:2:6");
  EXPECT_EQ(b->value.items[1].loc.str(), "f:2:10");
  EXPECT_FALSE(b->value.items[0].quoted);
  EXPECT_TRUE(b->value.items[1].quoted);
}

TEST(Yaml, JsonOnOneLineIsYaml) {
  std::string text =
      "{\"model\": {\"name\": \"tiny\", \"ok\": true, \"pad\": \"" +
      std::string(5000, 'x') + "\"}, \"n\": [1, 2.5e-3]}";
  std::vector<Diagnostic> errors;
  auto root = parseYaml("f", text, errors);
  ASSERT_TRUE(root) << joinDiagnostics(errors);
  EXPECT_EQ(root->find("n")->value.items[1].text, "2.5e-3");
  EXPECT_EQ(root->find("n")->loc.line, 1u);
  EXPECT_EQ(root->find("n")->loc.column, text.find("\"n\"") + 1);
}

TEST(Yaml, WindowsLineEndsAndByteOrderMark) {
  std::vector<Diagnostic> errors;
  auto root = parseYaml("f",
                        "\xef\xbb\xbf"
                        "a: 1\r\nb: 2\r\n",
                        errors);
  ASSERT_TRUE(root) << joinDiagnostics(errors);
  EXPECT_EQ(root->find("a")->value.text, "1");
  EXPECT_EQ(root->find("b")->value.text, "2");
}

TEST(Yaml, AliasesAreCopies) {
  std::vector<Diagnostic> errors;
  auto root = parseYaml("f", "a: &x {k: 1}\nb: *x\n", errors);
  ASSERT_TRUE(root) << joinDiagnostics(errors);
  EXPECT_EQ(root->find("b")->value.find("k")->value.text, "1");
}

TEST(Yaml, AliasBombIsCountedBeforeItIsBuilt) {
  // 9 to the power of 9 values, if they were built.
  std::string text = "a0: &a0 [1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    std::string name = std::to_string(i), last = std::to_string(i - 1);
    text.append("a").append(name).append(": &a").append(name).append(" [");
    for (int k = 0; k < 9; ++k)
      text.append(k ? ",*a" : "*a").append(last);
    text.append("]\n");
  }
  EXPECT_THAT(errorOf(text), HasSubstr("at most 50000 values"));
}

TEST(Yaml, AliasInsideItself) {
  EXPECT_THAT(errorOf("a: &x [*x]\n"), HasSubstr("f:1:8: error: this alias"));
  EXPECT_THAT(errorOf("a: *x\n"), HasSubstr("f:1:4"));
}

TEST(Yaml, DepthIsBoundedInEveryForm) {
  std::string nest, dashes, aliases = "a: &a0 [1]\n";
  for (int i = 0; i < 20000; ++i) {
    nest += "{a: ";
    dashes += "- ";
  }
  for (int i = 1; i < 40; ++i) {
    std::string name = std::to_string(i), last = std::to_string(i - 1);
    aliases.append("k").append(name).append(": &a").append(name);
    aliases.append(" [*a").append(last).append("]\n");
  }
  EXPECT_THAT(errorOf(nest), HasSubstr("at most 32 levels"));
  EXPECT_THAT(errorOf(dashes), HasSubstr("at most 32 levels"));
  EXPECT_THAT(errorOf(aliases), HasSubstr("at most 32 levels"));
  EXPECT_THAT(errorOf(std::string(1000000, '[')),
              HasSubstr("at most 32 levels"));
  // 32 are allowed.
  EXPECT_EQ(errorOf(std::string(32, '[') + std::string(32, ']')), "");
}

TEST(Yaml, SizeIsBounded) {
  EXPECT_THAT(errorOf(std::string(2 << 20, ' ')), HasSubstr("1048576 bytes"));
}

TEST(Yaml, RefusesWhatIsNotUtf8WithItsPlace) {
  EXPECT_THAT(errorOf("a: \xc3\xa4\xff"), HasSubstr("f:1:5: error: expected "
                                                    "UTF-8"));
  // Overlong, surrogate, beyond the last code point, cut short.
  for (const char *bad : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf0\x90\x80", "\x80"})
    EXPECT_THAT(errorOf(bad), HasSubstr("UTF-8")) << bad;
}

TEST(Yaml, RefusesTagsAndComplexKeys) {
  EXPECT_THAT(errorOf("a: !!binary abc\n"), HasSubstr("tag"));
  EXPECT_THAT(errorOf("? [a, b]\n: c\n"), HasSubstr("expected a key"));
}

TEST(Yaml, NamesTheOpenBracket) {
  EXPECT_THAT(errorOf("a: 1\nb: {c: 1,\n"),
              HasSubstr("f:2:4: error: expected this bracket"));
}

TEST(Yaml, DamagedTextNeverCrashes) {
  const std::string good = "model: &m\n  name: \"a b\"  # c\n  list: [1, {x: "
                           "2.5}, 'q']\nother: *m\ntext: |\n  two\n  lines\n";
  const std::string pieces = "[]{}:,&*!|>'\"%@`#-?\n\t \\x~\xc3\xff"
                             "09aZ";
  std::mt19937 random(7);
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 6; edits-- > 0;) {
      size_t at = random() % (text.size() + 1);
      char piece = pieces[random() % pieces.size()];
      switch (random() % 3) {
      case 0:
        text.insert(at, 1, piece);
        break;
      case 1:
        text.erase(at, random() % 5);
        break;
      default:
        if (at < text.size())
          text[at] = piece;
      }
    }
    std::vector<Diagnostic> errors;
    bool whole = parseYaml("f", text, errors).has_value();
    parsed += whole;
    ASSERT_TRUE(whole || !errors.empty()) << text;
    for (const Diagnostic &error : errors)
      ASSERT_GT(error.loc.line, 0u) << error.str();
  }
  // The edits are mild enough that both ends are met.
  EXPECT_GT(parsed, 1000);
  EXPECT_LT(parsed, 19000);
}

} // namespace
} // namespace reckon
