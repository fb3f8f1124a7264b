//===- Arguments.cpp - Megatron arguments with their places ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/import/megatron/Arguments.h"

#include "frontends/import/megatron/Flags.h"
#include "frontends/spec/Scalars.h"

using namespace reckon;
using namespace reckon::megatron;

static bool isFlag(const Word &word) {
  return word.text.size() > 2 && word.text.compare(0, 2, "--") == 0;
}

static bool isProgram(const Word &word) {
  return word.text.size() > 3 &&
         word.text.compare(word.text.size() - 3, 3, ".py") == 0;
}

void Arguments::read(const std::string &file, std::string_view text) {
  file_ = file;
  std::vector<Command> commands = readCommands(file, text, errors_);
  bool program = false;
  for (const Command &command : commands)
    for (size_t i = 0; i + 1 < command.size(); ++i)
      // Not a test whether the file is there.
      if (isProgram(command[i]) && isFlag(command[i + 1])) {
        program = true;
        readLauncher(command, i);
        readFlags(command, i + 1);
        break;
      }
  if (!program)
    for (const Command &command : commands)
      if (isFlag(command[0]))
        readFlags(command, 0);
  if (flags_.empty() && errors_.empty())
    errors_.push_back(errorAt(
        SourceLoc{file, 0, 0},
        "expected Megatron arguments, either `--flag value` lines or a script "
        "that starts a .py file with them, got neither; check the path"));
}

void Arguments::readLauncher(const Command &command, size_t last) {
  for (size_t i = 0; i < last; ++i) {
    std::string name = command[i].text, value;
    size_t equals = name.find('=');
    if (equals != std::string::npos)
      value = name.substr(equals + 1), name.resize(equals);
    else if (i + 1 < last)
      value = command[i + 1].text;
    for (char &c : name)
      if (c == '_')
        c = '-';
    if (name == "--nnodes")
      nodes = parseInteger(value);
    else if (name == "--nproc-per-node")
      devicesPerNode = parseInteger(value);
  }
}

void Arguments::readFlags(const Command &whole, size_t first) {
  // What a caller of the script adds is not in the file. A flag that is quoted
  // together with its value, for eval, is two words.
  Command command;
  for (const Word &word : whole) {
    size_t blank = word.text.find(' ');
    if (word.unknown == "$@" || word.unknown == "$*")
      continue;
    if (!isFlag(word) || blank == std::string::npos) {
      command.push_back(word);
      continue;
    }
    command.push_back({word.text.substr(0, blank), word.loc, ""});
    std::string value = word.text.substr(blank + 1);
    if (value.size() >= 2 && value.front() == value.back() &&
        (value.front() == '"' || value.front() == '\''))
      value = value.substr(1, value.size() - 2);
    command.push_back({value, word.loc, word.unknown});
  }
  for (size_t i = first; i < command.size();) {
    const Word &word = command[i++];
    if (!isFlag(word)) {
      errors_.push_back(errorAt(
          word.loc, "expected a flag that begins with --, got " +
                        (word.unknown.empty() ? word.text : word.unknown) +
                        "; remove it or put it behind the flag that it "
                        "belongs to"));
      continue;
    }
    std::string name = word.text;
    Argument argument{{}, word.loc};
    size_t equals = name.find('=');
    if (equals != std::string::npos) {
      argument.values.push_back(
          {name.substr(equals + 1), word.loc, word.unknown});
      name.resize(equals);
    }
    std::optional<Arity> arity = findFlag(name);
    if (!arity) {
      std::string nearest = nearestFlag(name);
      errors_.push_back(errorAt(
          word.loc, "expected a Megatron flag, got the unknown " + name +
                        (nearest.empty() ? "; remove it"
                                         : "; did you mean " + nearest + "?")));
      // Its values are its own.
      while (i < command.size() && !isFlag(command[i]))
        ++i;
      continue;
    }
    while (i < command.size() && !isFlag(command[i]) &&
           (arity->most < 0 ||
            static_cast<int>(argument.values.size()) < arity->most))
      argument.values.push_back(command[i++]);
    if (static_cast<int>(argument.values.size()) < arity->least)
      errors_.push_back(errorAt(
          word.loc, "expected " + std::to_string(arity->least) +
                        " value behind " + name + ", got none; add it"));
    else
      flags_[name] = std::move(argument);
  }
}

const Argument *Arguments::find(const std::string &flag) {
  auto found = flags_.find(flag);
  if (found == flags_.end())
    return nullptr;
  used_.insert(flag);
  return &found->second;
}

bool Arguments::has(const std::string &flag) { return find(flag) != nullptr; }

SourceLoc Arguments::locate(const std::string &flag) const {
  auto found = flags_.find(flag);
  return found == flags_.end() ? SourceLoc{file_, 0, 0} : found->second.loc;
}

void Arguments::error(const std::string &flag, std::string message) {
  errors_.push_back(errorAt(locate(flag), std::move(message)));
}

std::optional<std::string> Arguments::text(const std::string &flag) {
  const Argument *argument = find(flag);
  if (!argument || argument->values.empty())
    return std::nullopt;
  const Word &word = argument->values[0];
  if (!word.unknown.empty()) {
    errors_.push_back(errorAt(word.loc, "expected a value of " + flag +
                                            " in the file, got " +
                                            word.unknown +
                                            ", which only a run knows; write "
                                            "the value"));
    return std::nullopt;
  }
  return word.text;
}

std::optional<std::string> Arguments::knownText(const std::string &flag) {
  const Argument *argument = find(flag);
  if (!argument || argument->values.empty() ||
      !argument->values[0].unknown.empty())
    return std::nullopt;
  return argument->values[0].text;
}

std::optional<int64_t> Arguments::integer(const std::string &flag) {
  std::optional<std::string> value = text(flag);
  if (!value)
    return std::nullopt;
  std::optional<int64_t> number = parseInteger(*value);
  if (!number)
    error(flag, "expected a whole number behind " + flag + ", got " + *value +
                    "; write one");
  return number;
}

std::optional<double> Arguments::real(const std::string &flag) {
  std::optional<std::string> value = text(flag);
  if (!value)
    return std::nullopt;
  std::optional<double> number = parseReal(*value);
  if (!number)
    error(flag, "expected a number behind " + flag + ", got " + *value +
                    "; write one");
  return number;
}

std::vector<std::string> Arguments::unused() const {
  std::vector<std::string> names;
  for (const auto &[name, argument] : flags_)
    if (!used_.count(name))
      names.push_back(name);
  return names;
}
