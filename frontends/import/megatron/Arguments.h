//===- Arguments.h - Megatron arguments with their places -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_IMPORT_MEGATRON_ARGUMENTS_H
#define RECKON_FRONTENDS_IMPORT_MEGATRON_ARGUMENTS_H

#include "frontends/import/megatron/Words.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace reckon::megatron {

struct Argument {
  std::vector<Word> values;
  SourceLoc loc; ///< of the flag
};

/// The arguments of one job. Reading a flag marks it as used.
class Arguments {
public:
  explicit Arguments(std::vector<Diagnostic> &errors) : errors_(errors) {}

  /// From a file of arguments, or from the command of a shell script that
  /// starts a .py file. Flags that Megatron does not know are errors.
  void read(const std::string &file, std::string_view text);

  bool has(const std::string &flag);
  const Argument *find(const std::string &flag);
  SourceLoc locate(const std::string &flag) const;
  /// The value as written, when the flag is there and its value is known.
  std::optional<std::string> text(const std::string &flag);
  /// The same for what a plan does not need: no error when only a run knows.
  std::optional<std::string> knownText(const std::string &flag);
  std::optional<int64_t> integer(const std::string &flag);
  std::optional<double> real(const std::string &flag);

  void error(const std::string &flag, std::string message);

  /// Of torchrun, when the script has them.
  std::optional<int64_t> nodes, devicesPerNode;
  /// Known flags that nobody read, in the order of the alphabet.
  std::vector<std::string> unused() const;
  bool empty() const { return flags_.empty(); }
  const std::string &file() const { return file_; }

private:
  void readFlags(const Command &command, size_t first);
  void readLauncher(const Command &command, size_t last);

  std::vector<Diagnostic> &errors_;
  std::map<std::string, Argument> flags_;
  std::set<std::string> used_;
  std::string file_;
};

} // namespace reckon::megatron

#endif // RECKON_FRONTENDS_IMPORT_MEGATRON_ARGUMENTS_H
