//===- StatusFile.cpp - how one rank ended, for whoever asks later --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/StatusFile.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace reckon {

std::string statusText(const RankEnv &env, const std::string &plan,
                       const RankEnd &end, int64_t wallNs) {
  using Json = nlohmann::ordered_json;
  auto orNull = [](const std::string &text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Json json = {{"rank", env.rank},
               {"world_size", env.world},
               {"host", env.node},
               {"pid", static_cast<int>(::getpid())},
               {"job", orNull(env.job)},
               {"restarts", env.restarts},
               {"plan", plan},
               {"exit_code", static_cast<int>(end.code)},
               {"reason", end.reason},
               {"dead_rank", nullptr},
               {"dead_host", nullptr},
               {"step", end.step},
               {"time", 1e-9 * static_cast<double>(wallNs)}};
  if (end.deadRank) {
    json["dead_rank"] = *end.deadRank;
    json["dead_host"] = orNull(env.nodeOf(*end.deadRank));
  }
  // Messages quote what others wrote, which need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<StatusFile> StatusFile::open(const RankEnv &env, const std::string &plan,
                                    const std::string &runDirectory) {
  RECKON_TRY(systemFiles().createDirectories(runDirectory));
  char name[48];
  std::snprintf(name, sizeof name, "/status-%05d.json", env.rank);
  StatusFile file;
  file.env_ = env;
  file.plan_ = plan;
  file.path_ = runDirectory + name;
  file.temporary_ = file.path_ + ".interrupted";
  file.interrupted_ =
      statusText(env, plan,
                 {ExitCode::Interrupted,
                  "interrupted by a signal before the first step or twice; "
                  "nothing was saved",
                  std::nullopt, 0},
                 systemClock().wallNs());
  ::unlink(file.path_.c_str());
  return file;
}

void StatusFile::write(const RankEnd &end) const {
  (void)systemFiles()
      .write(path_, statusText(env_, plan_, end, systemClock().wallNs()))
      .ok();
}

void StatusFile::writeInterrupted() const noexcept {
  int fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                  0666);
  if (fd < 0)
    return;
  (void)!::write(fd, interrupted_.data(), interrupted_.size());
  ::close(fd);
  ::rename(temporary_.c_str(), path_.c_str());
}

} // namespace reckon
