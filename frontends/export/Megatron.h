//===- Megatron.h - the parts of a Megatron argument list -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_EXPORT_MEGATRON_H
#define RECKON_FRONTENDS_EXPORT_MEGATRON_H

#include "frontends/export/Text.h"

namespace reckon::exports {

/// Arguments in groups, one flag a line.
class ArgumentList {
public:
  void group(std::string title) { lines_.push_back({"# " + title, ""}); }
  void add(const char *flag) { lines_.push_back({flag, ""}); }
  void add(const char *flag, std::string value) {
    lines_.push_back({flag, std::move(value)});
  }
  void add(const char *flag, int64_t value) {
    add(flag, std::to_string(value));
  }
  void add(const char *flag, double value) { add(flag, number(value)); }

  /// One `--flag value` a line behind `indent`; values that a shell (or xargs)
  /// would change stand in single quotes.
  std::string text(const std::string &indent) const;

private:
  struct Line {
    std::string flag, value;
  };
  std::vector<Line> lines_;
};

void addModel(const ExportInput &input, ArgumentList &list, Exported &out);
void addTraining(const ExportInput &input, ArgumentList &list, Exported &out);
void addParallelism(const ExportInput &input, ArgumentList &list,
                    Exported &out);

/// Megatron's layout string: "Et*4|(t*5|)*14t*5L". `mtpLayers` m before L.
std::string layoutString(const std::vector<int64_t> &layout, int64_t mtpLayers);

} // namespace reckon::exports

#endif // RECKON_FRONTENDS_EXPORT_MEGATRON_H
