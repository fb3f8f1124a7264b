//===- Replay.h - the z3 program's answer ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_UNIT_SCHEDULE_REPLAY_H
#define RECKON_TESTS_UNIT_SCHEDULE_REPLAY_H

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

/// To an SMT-LIB text; "" without the program.
inline std::string replay(const std::string &text) {
  if (std::system("command -v z3 >/dev/null 2>&1") != 0)
    return "";
  auto file = std::filesystem::temp_directory_path() /
              ("reckon-replay-" + std::to_string(getpid()) + ".smt2");
  std::ofstream(file) << text;
  std::string command = "z3 " + file.string(), answer;
  FILE *pipe = popen(command.c_str(), "r");
  char buffer[256];
  while (fgets(buffer, sizeof buffer, pipe))
    answer += buffer;
  pclose(pipe);
  std::filesystem::remove(file);
  return answer;
}

#endif // RECKON_TESTS_UNIT_SCHEDULE_REPLAY_H
