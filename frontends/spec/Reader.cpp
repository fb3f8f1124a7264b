//===- Reader.cpp ---------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Reader.h"

#include "frontends/spec/Scalars.h"
#include "frontends/spec/Suggest.h"

namespace reckon {
namespace {

/// Whether the row's default is a value, not a rule or nothing.
bool hasDefault(const KeyRow &row) {
  return !row.fallback.empty() && !row.required() && row.fallback[0] != '(';
}

/// One value or the items of a list.
std::vector<const Node *> alternatives(const Node &node) {
  std::vector<const Node *> nodes;
  if (!node.isList())
    nodes.push_back(&node);
  for (const Node &item : node.items)
    nodes.push_back(&item);
  return nodes;
}

/// A value that fits, for "such as".
std::string exampleFor(const KeyRow &row) {
  std::string name(row.name());
  if (hasDefault(row) && row.fallback != "auto")
    return name + ": " + std::string(row.fallback);
  if (row.kind == KeyKind::Integer || row.kind == KeyKind::Degrees)
    return name + ": " + formatNumber(row.low > 8 ? row.low : 8);
  return name + ": " + formatNumber(row.low > 1 ? row.low : 1);
}

} // namespace

bool isNeutral(const Node &node) {
  return node.isNull() ||
         (node.isScalar() && (node.text == "none" || node.text == "auto"));
}

std::string folderOf(const SourceLoc &loc) {
  size_t slash = loc.file.rfind('/');
  if (loc.file.compare(0, 6, "--set ") == 0 || slash == std::string::npos)
    return "";
  return slash == 0 ? "/" : loc.file.substr(0, slash);
}

std::string resolvePath(const SourceLoc &loc, const std::string &path) {
  std::string folder = folderOf(loc);
  if (folder.empty() || path.empty() || path.front() == '/')
    return path;
  size_t begin = path.compare(0, 2, "./") == 0 ? 2 : 0;
  return (folder.back() == '/' ? folder : folder + "/") + path.substr(begin);
}

const KeyRow &Reader::row(std::string_view path) const {
  const KeyRow *found = findKey(path);
  RECKON_CHECK(found);
  return *found;
}

const Entry *Reader::find(std::string_view path) const {
  const Node *node = &root_;
  const Entry *entry = nullptr;
  while (!path.empty()) {
    size_t dot = path.find('.');
    entry = node->find(path.substr(0, dot));
    if (!entry || entry->value.isNull())
      return nullptr;
    node = &entry->value;
    path.remove_prefix(dot == path.npos ? path.size() : dot + 1);
  }
  return entry;
}

SourceLoc Reader::locate(std::string_view path) const {
  for (;;) {
    if (const Entry *entry = find(path))
      return entry->loc;
    size_t dot = path.rfind('.');
    if (dot == path.npos)
      return root_.loc;
    path = path.substr(0, dot);
  }
}

void Reader::error(const SourceLoc &loc, std::string message) {
  errors_.push_back(errorAt(loc, std::move(message)));
}

void Reader::warn(const SourceLoc &loc, std::string message) {
  warnings_.push_back(warningAt(loc, std::move(message)));
}

void Reader::wrong(const Node &node, const KeyRow &row, std::string remedy) {
  error(node.loc, "expected " + row.expected() + " for " +
                      std::string(row.path) + ", got " + node.describe() +
                      "; " + remedy);
}

void Reader::missing(const KeyRow &row) {
  std::string path(row.path);
  // A section that is missing as a whole is one finding, not one a key.
  std::string section(row.parent());
  if (excused_.count(path) || excused_.count(section))
    return;
  const KeyRow *around = findKey(section);
  if (around && around->parent().empty() && !find(section)) {
    excused_.insert(section);
    std::string needs;
    for (const KeyRow *key : keysBelow(section))
      if (key->required())
        needs += (needs.empty() ? "" : ", ") + std::string(key->name());
    error(locate(path), "expected the section " + section +
                            ", got none; add `" + section +
                            ":` with its keys " + needs);
    return;
  }
  error(locate(path), "expected the key " + path + ", got none; add `" +
                          std::string(row.name()) + ":` with " +
                          row.expected() + " under " + section);
}

template <typename T> Field<T> Reader::start(const KeyRow &row) const {
  Field<T> field;
  field.loc = locate(row.path);
  field.given = find(row.path) != nullptr;
  return field;
}

std::optional<int64_t> Reader::readInteger(const Node &node,
                                           const KeyRow &row) {
  IntegerError why = IntegerError::NotANumber;
  std::optional<int64_t> value;
  if (node.isScalar() && !node.quoted)
    value = parseInteger(node.text, &why);
  if (!value) {
    std::string remedy = "write digits, such as " + exampleFor(row);
    if (node.isScalar() && node.quoted && parseInteger(node.text))
      remedy = "remove the quotes";
    else if (why == IntegerError::Fraction)
      remedy = "write it without a fraction or exponent";
    else if (why == IntegerError::TooLarge)
      remedy = "that is too large";
    wrong(node, row, remedy);
    return std::nullopt;
  }
  if (static_cast<double>(*value) < row.low ||
      static_cast<double>(*value) > row.high) {
    wrong(node, row,
          *value <= 0 && row.low > 0 ? "it must be positive"
          : static_cast<double>(*value) > row.high
              ? "that is too large to be meant"
              : "that is too small");
    return std::nullopt;
  }
  return value;
}

std::optional<double> Reader::readReal(const Node &node, const KeyRow &row) {
  std::optional<double> value;
  if (node.isScalar() && !node.quoted)
    value = parseReal(node.text);
  if (!value) {
    wrong(node, row,
          node.isScalar() && node.quoted && parseReal(node.text)
              ? "remove the quotes"
              : "write a decimal number, such as " + exampleFor(row));
    return std::nullopt;
  }
  if (*value < row.low || *value > row.high) {
    wrong(node, row,
          *value < row.low ? "that is too small" : "that is too large");
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Reader::readSwitch(const Node &node, const KeyRow &row) {
  std::optional<bool> value;
  if (node.isScalar() && !node.quoted)
    value = parseBool(node.text);
  if (!value)
    wrong(node, row, "write true or false without quotes");
  return value;
}

std::optional<std::string> Reader::readText(const Node &node,
                                            const KeyRow &row) {
  if (node.isScalar() && !node.text.empty())
    return node.text;
  wrong(node, row, "write a text, or leave the key out");
  return std::nullopt;
}

Field<int64_t> Reader::integer(std::string_view path) {
  const KeyRow &r = row(path);
  Field<int64_t> field = start<int64_t>(r);
  if (const Entry *entry = find(path))
    field.value = readInteger(entry->value, r).value_or(0);
  else if (r.required())
    missing(r);
  else if (hasDefault(r))
    field.value = *parseInteger(r.fallback);
  return field;
}

Field<double> Reader::real(std::string_view path) {
  const KeyRow &r = row(path);
  Field<double> field = start<double>(r);
  if (const Entry *entry = find(path))
    field.value = readReal(entry->value, r).value_or(0);
  else if (r.required())
    missing(r);
  else if (hasDefault(r))
    field.value = *parseReal(r.fallback);
  return field;
}

Field<bool> Reader::flag(std::string_view path) {
  const KeyRow &r = row(path);
  Field<bool> field = start<bool>(r);
  if (hasDefault(r))
    field.value = *parseBool(r.fallback);
  const Entry *entry = find(path);
  if (!entry)
    return field;
  // A switch that is off by default may also be turned off by a neutral word.
  if (isNeutral(entry->value))
    return field;
  if (std::optional<bool> value = readSwitch(entry->value, r))
    field.value = *value;
  return field;
}

Field<std::string> Reader::word(std::string_view path) {
  const KeyRow &r = row(path);
  Field<std::string> field = start<std::string>(r);
  std::vector<std::string> known = splitWords(r.words);
  if (hasDefault(r))
    field.value = r.fallback;
  const Entry *entry = find(path);
  if (!entry) {
    if (r.required())
      missing(r);
    return field;
  }
  const Node &node = entry->value;
  bool isKnown = node.isScalar() && std::find(known.begin(), known.end(),
                                              node.text) != known.end();
  if (!isKnown && isNeutral(node) && hasDefault(r))
    return field;
  if (!isKnown) {
    std::string near =
        node.isScalar() ? nearestWord(node.text, known) : std::string();
    wrong(node, r,
          near.empty() ? "choose one of them" : "did you mean " + near + "?");
    field.value.clear();
  } else {
    field.value = node.text;
  }
  return field;
}

Field<std::string> Reader::text(std::string_view path) {
  const KeyRow &r = row(path);
  Field<std::string> field = start<std::string>(r);
  if (const Entry *entry = find(path))
    field.value = readText(entry->value, r).value_or("");
  else if (r.required())
    missing(r);
  else if (hasDefault(r))
    field.value = r.fallback;
  return field;
}

Field<std::vector<std::string>> Reader::texts(std::string_view path) {
  const KeyRow &r = row(path);
  auto field = start<std::vector<std::string>>(r);
  if (const Entry *entry = find(path))
    for (const Node *node : alternatives(entry->value))
      if (std::optional<std::string> text = readText(*node, r))
        field.value.push_back(*text);
  return field;
}

template <typename T> void Reader::settle(Choice<T> &choice) {
  // The same value twice is the same choice.
  std::vector<T> once;
  for (const T &value : choice.values)
    if (std::find(once.begin(), once.end(), value) == once.end())
      once.push_back(value);
  choice.values = std::move(once);
}

Choice<int64_t> Reader::degrees(std::string_view path) {
  const KeyRow &r = row(path);
  Choice<int64_t> choice;
  choice.loc = locate(path);
  // A domain of a few values is filled in.
  if (r.high - r.low < 8)
    for (double value = r.low; value <= r.high; ++value)
      choice.values.push_back(static_cast<int64_t>(value));
  const Entry *entry = find(path);
  if (!entry || isNeutral(entry->value))
    return choice;
  const Node &node = entry->value;
  choice.given = true;
  if (node.isList() && node.items.empty()) {
    wrong(node, r, "name at least one value");
    return choice;
  }
  Choice<int64_t> chosen;
  chosen.given = true, chosen.isAuto = false, chosen.loc = choice.loc;
  for (const Node *item : alternatives(node))
    if (std::optional<int64_t> value = readInteger(*item, r))
      chosen.values.push_back(*value);
  settle(chosen);
  return chosen.values.empty() ? choice : chosen;
}

Choice<bool> Reader::switches(std::string_view path) {
  const KeyRow &r = row(path);
  Choice<bool> choice;
  choice.loc = locate(path);
  choice.values = {true, false};
  const Entry *entry = find(path);
  if (!entry)
    return choice;
  const Node &node = entry->value;
  // `false` is neutral, but here it is a choice: not to.
  if (isNeutral(node) && !(node.isScalar() && parseBool(node.text)))
    return choice;
  choice.given = true;
  if (node.isList() && node.items.empty()) {
    wrong(node, r, "name at least one value");
    return choice;
  }
  std::vector<bool> values;
  for (const Node *item : alternatives(node))
    if (std::optional<bool> value = readSwitch(*item, r))
      values.push_back(*value);
  if (values.size() != alternatives(node).size())
    return choice;
  choice.isAuto = false;
  choice.values = std::move(values);
  settle(choice);
  return choice;
}

Choice<std::string> Reader::choice(std::string_view path,
                                   const Spelling &spelling) {
  const KeyRow &r = row(path);
  std::vector<std::string> known = splitWords(r.words);
  Choice<std::string> choice;
  choice.loc = locate(path);
  choice.values = known;
  const Entry *entry = find(path);
  bool noneIsWord =
      std::find(known.begin(), known.end(), "none") != known.end();
  if (!entry ||
      (isNeutral(entry->value) && !(noneIsWord && entry->value.text == "none")))
    return choice;
  const Node &node = entry->value;
  choice.given = true;
  if (node.isList() && node.items.empty()) {
    wrong(node, r, "name at least one value");
    return choice;
  }
  Choice<std::string> chosen;
  chosen.given = true, chosen.isAuto = false, chosen.loc = choice.loc;
  for (const Node *item : alternatives(node)) {
    std::optional<std::string> word;
    if (spelling)
      word = spelling(*item);
    if (!word && item->isScalar())
      word = item->text;
    bool isKnown =
        word && std::find(known.begin(), known.end(), *word) != known.end();
    if (!isKnown) {
      std::string near = word ? nearestWord(*word, known) : std::string();
      wrong(*item, r,
            near.empty() ? "choose among them" : "did you mean " + near + "?");
    } else {
      chosen.values.push_back(*word);
    }
  }
  settle(chosen);
  return chosen.values.empty() ? choice : chosen;
}

} // namespace reckon
