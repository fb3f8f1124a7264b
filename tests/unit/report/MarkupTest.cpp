#include "passes/report/Markup.h"

#include <gtest/gtest.h>

using namespace reckon::report;

TEST(Markup, EscapesWhatHtmlReads) {
  EXPECT_EQ(escape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escape("plain µ"), "plain µ");
}

TEST(Markup, NumbersHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(bytes(0), "0 B");
  EXPECT_EQ(bytes(1023), "1023 B");
  EXPECT_EQ(bytes(1536), "1.50 KiB");
  EXPECT_EQ(bytes(17.5 * 1073741824), "17.5 GiB");
  EXPECT_EQ(bytes(3000.0 * 1024 * 1024 * 1024 * 1024), "3000 TiB");
  EXPECT_EQ(seconds(0), "0.00 s");
  EXPECT_EQ(seconds(4.75), "4.75 s");
  EXPECT_EQ(seconds(0.0123), "12.3 ms");
  EXPECT_EQ(seconds(4.5e-6), "4.50 µs");
  EXPECT_EQ(percent(0.046875, 2), "4.69 %");
  EXPECT_EQ(magnitude(883800), "884 k");
  EXPECT_EQ(grouped(70553706496), "70,553,706,496");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(999), "999");
}

TEST(Markup, ListsGroupEqualNeighbours) {
  EXPECT_EQ(plain(Json::parse("[5,5,5,6,5]")), "5 × 3, 6, 5");
  EXPECT_EQ(plain(Json("full")), "full");
  EXPECT_EQ(plain(Json(true)), "true");
}
