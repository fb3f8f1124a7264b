//===- Reader.h - typed access to the merged tree -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every read names a path of the key table; type, range, default and words come
// from its row. A value that cannot be used is reported once and reads as zero,
// empty or auto, which the checks between values skip.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_READER_H
#define RECKON_FRONTENDS_SPEC_READER_H

#include "frontends/spec/Keys.h"
#include "frontends/spec/Node.h"
#include "frontends/spec/Spec.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

class Reader {
public:
  /// `excused` are required paths whose absence was already explained.
  Reader(const Node &root, std::set<std::string> excused,
         std::vector<Diagnostic> &errors, std::vector<Diagnostic> &warnings)
      : root_(root), excused_(std::move(excused)), errors_(errors),
        warnings_(warnings) {}

  /// The entry of a dotted path, or null when it is absent or null.
  const Entry *find(std::string_view path) const;
  /// The place of the key, or of the nearest section around it.
  SourceLoc locate(std::string_view path) const;
  void error(const SourceLoc &loc, std::string message);
  void warn(const SourceLoc &loc, std::string message);

  Field<int64_t> integer(std::string_view path);
  Field<double> real(std::string_view path);
  Field<bool> flag(std::string_view path);
  Field<std::string> word(std::string_view path);
  Field<std::string> text(std::string_view path);
  Field<std::vector<std::string>> texts(std::string_view path);
  Choice<int64_t> degrees(std::string_view path);
  Choice<bool> switches(std::string_view path);
  /// Turns a node into the word to look up in the row, or nothing.
  using Spelling = std::function<std::optional<std::string>(const Node &)>;
  Choice<std::string> choice(std::string_view path,
                             const Spelling &spelling = {});

  /// One value by a row's kind and range; errors reported.
  std::optional<int64_t> readInteger(const Node &node, const KeyRow &row);
  std::optional<double> readReal(const Node &node, const KeyRow &row);
  std::optional<bool> readSwitch(const Node &node, const KeyRow &row);
  std::optional<std::string> readText(const Node &node, const KeyRow &row);

  /// `message`: expected, got and remedy about the value of a row.
  void wrong(const Node &node, const KeyRow &row, std::string remedy);
  /// Reports a required key that is absent.
  void missing(const KeyRow &row);

private:
  template <typename T> Field<T> start(const KeyRow &row) const;
  template <typename T> void settle(Choice<T> &choice);
  const KeyRow &row(std::string_view path) const;

  const Node &root_;
  std::set<std::string> excused_;
  std::vector<Diagnostic> &errors_;
  std::vector<Diagnostic> &warnings_;
};

/// true for `none`, `auto` and null: no wish.
bool isNeutral(const Node &node);

/// The folder that a relative path written at this place starts from; empty for
/// the current one.
std::string folderOf(const SourceLoc &loc);
/// A path as written at `loc`, as seen from the current folder.
std::string resolvePath(const SourceLoc &loc, const std::string &path);

// The sections, each in a file of its own.
ModelSpec readModel(Reader &reader);
ClusterSpec readCluster(Reader &reader);
ResilienceSpec readResilience(Reader &reader);
TrainingSpec readTraining(Reader &reader);
ParallelismSpec readParallelism(Reader &reader, const ModelSpec &model);
ConstraintsSpec readConstraints(Reader &reader, const ClusterSpec &cluster);
SearchSpec readSearch(Reader &reader);

/// Checks the sections against each other and against the world size; narrows
/// choices that follow from others.
void checkSpec(Spec &spec, Reader &reader);
/// Its part about the degrees and the batch.
void checkParallelism(Spec &spec, Reader &reader);
/// Of them, those about stages and their layout; settles their number.
void checkPipeline(Spec &spec, Reader &reader);
/// Its part about a fixed schedule; `microBatches` of a step, 0 when not known.
void checkSchedule(ParallelismSpec &p, int64_t microBatches, Reader &reader);
/// Its part about what a framework can do with the fixed values.
void checkRepresentation(const ParallelismSpec &p, Reader &reader);

/// Reports unknown keys and values where a map of keys must be, in the tree of
/// one file. Adds to `excused` the required keys that a misspelt one hides.
void checkKeys(const Node &root, std::vector<Diagnostic> &errors,
               std::set<std::string> &excused);

/// The tree as YAML text, keys in table order.
std::string canonicalYaml(const Node &root);

/// "a.b=value" as a tree; the value is YAML.
std::optional<Node> parseSet(const std::string &argument,
                             std::vector<Diagnostic> &errors);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_READER_H
