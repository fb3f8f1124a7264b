//===- Progress.cpp - a line for who waits --------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Progress.h"

#include "runtime/base/Activity.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace reckon;

static Progress::Options onStderr(const std::string &name) {
  Progress::Options options;
  options.name = name;
  if (const char *given = std::getenv("RECKON_PROGRESS")) {
    char *end = nullptr;
    double seconds = std::strtod(given, &end);
    if (end != given && *end == '\0' && seconds >= 0)
      options.seconds = seconds;
  }
  options.terminal = isatty(STDERR_FILENO) != 0;
  options.write = [](const std::string &text) {
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
  };
  return options;
}

Progress::Progress(const std::string &name) : Progress(onStderr(name)) {}

Progress::Progress(Options options) : options_(std::move(options)) {
  if (options_.seconds > 0)
    thread_ = std::thread([this] { watch(); });
}

Progress::~Progress() {
  if (!thread_.joinable())
    return;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Progress::watch() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  auto after = [&](double seconds) {
    return start + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(seconds));
  };
  double next = options_.seconds;
  bool shown = false;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_until(lock, after(next), [&] { return over_; })) {
    std::string at = Activity::current();
    if (!at.empty()) {
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, next < 10 ? "%.3g" : "%.0f", next);
      std::string text = options_.name + ": " + seconds + " s: " + at;
      options_.write(options_.terminal ? "\r" + text + "\033[K" : text + "\n");
      shown = true;
    }
    next = options_.terminal ? next + options_.seconds : 2 * next;
  }
  if (shown && options_.terminal)
    options_.write("\r\033[K");
}
