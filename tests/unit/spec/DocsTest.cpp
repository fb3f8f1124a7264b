//===- DocsTest.cpp - docs/spec.md says what the table says ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Keys.h"
#include "runtime/base/Os.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace reckon {
namespace {

const std::string begin = "<!-- begin: from frontends/spec/KeyTable.cpp -->\n";
const std::string end = "<!-- end -->\n";

/// With RECKON_UPDATE_DOCS set, writes the table instead of comparing it.
TEST(Docs, TheReferenceIsTheTable) {
  const std::string path = RECKON_SOURCE_DIR "/docs/spec.md";
  Result<std::string> page = systemFiles().read(path);
  ASSERT_TRUE(page.ok()) << page.error().message;
  size_t from = page->find(begin), to = page->find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  from += begin.size();
  std::string table = std::string("\n") + keyTableMarkdown();
  if (std::getenv("RECKON_UPDATE_DOCS")) {
    page->replace(from, to - from, table);
    ASSERT_TRUE(systemFiles().write(path, *page).ok());
    return;
  }
  EXPECT_EQ(page->substr(from, to - from), table)
      << "run this test with RECKON_UPDATE_DOCS=1";
}

TEST(Docs, EveryKeyIsThere) {
  Result<std::string> page =
      systemFiles().read(RECKON_SOURCE_DIR "/docs/spec.md");
  ASSERT_TRUE(page.ok());
  for (const KeyRow &row : keyTable()) {
    std::string quoted = "`";
    quoted.append(row.path).append("`");
    EXPECT_THAT(*page, ::testing::HasSubstr(quoted));
  }
}

} // namespace
} // namespace reckon
