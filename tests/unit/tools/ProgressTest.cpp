//===- ProgressTest.cpp - what is said to who waits -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Progress.h"
#include "runtime/base/Activity.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

using namespace reckon;

namespace {

/// What was written, with a way to wait for it: tests do not depend on how
/// fast threads are.
struct Lines {
  std::mutex mutex;
  std::condition_variable more;
  std::vector<std::string> all;

  Progress::Options options(double seconds, bool terminal) {
    return {"reckon plan", seconds, terminal, [this](const std::string &text) {
              std::lock_guard lock(mutex);
              all.push_back(text);
              more.notify_one();
            }};
  }
  void waitFor(size_t count) {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(more.wait_for(lock, std::chrono::seconds(60),
                              [&] { return all.size() >= count; }));
  }
};

TEST(Activity, PartsFollowTheWhole) {
  EXPECT_EQ(Activity::current(), "");
  {
    Activity whole("numbers of nodes", 7);
    whole.advance(3);
    EXPECT_EQ(Activity::current(), "numbers of nodes 3 of 7");
    {
      Activity part("proof");
      EXPECT_EQ(Activity::current(), "numbers of nodes 3 of 7, proof");
    }
    Activity part("search", 10);
    part.advance();
    EXPECT_EQ(Activity::current(), "numbers of nodes 3 of 7, search 1 of 10");
  }
  EXPECT_EQ(Activity::current(), "");
}

TEST(Activity, DeepOnesAreNotShown) {
  Activity a("a"), b("b"), c("c"), d("d"), e("e"), f("f"), g("g"), h("h", 3);
  h.advance();
  EXPECT_EQ(Activity::current(), "a, b, c, d, e, f");
}

TEST(Progress, SaysNothingOfShortWork) {
  for (bool terminal : {false, true}) {
    Lines lines;
    {
      Progress progress(lines.options(3600, terminal));
      Activity activity("search");
    }
    EXPECT_TRUE(lines.all.empty());
  }
}

TEST(Progress, SaysNothingWhenIdleOrSilenced) {
  Lines idle, silent, other;
  {
    Progress one(idle.options(1e-4, true));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  {
    Activity activity("search");
    Progress one(silent.options(0, true));
    Progress two(other.options(1e-4, true));
    other.waitFor(3);
  }
  EXPECT_TRUE(idle.all.empty());
  EXPECT_TRUE(silent.all.empty());
}

TEST(Progress, LinesElsewhereComeEverMoreSlowly) {
  Lines lines;
  {
    Progress progress(lines.options(1e-3, false));
    Activity activity("search", 9);
    lines.waitFor(3);
  }
  for (const char *start :
       {"reckon plan: 0.001 s: search 0 of 9\n", "reckon plan: 0.002 s: search",
        "reckon plan: 0.004 s: search"}) {
    EXPECT_EQ(lines.all.front().find(start), 0u) << lines.all.front();
    lines.all.erase(lines.all.begin());
  }
}

TEST(Progress, ATerminalsLineIsWrittenOverAndWiped) {
  Lines lines;
  {
    Progress progress(lines.options(1e-3, true));
    Activity activity("search");
    lines.waitFor(2);
  }
  for (size_t i = 0; i + 1 < lines.all.size(); ++i) {
    EXPECT_EQ(lines.all[i].front(), '\r');
    EXPECT_EQ(lines.all[i].find('\n'), std::string::npos);
  }
  EXPECT_EQ(lines.all.back(), "\r\033[K");
}

} // namespace
