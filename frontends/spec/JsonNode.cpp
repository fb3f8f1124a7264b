//===- JsonNode.cpp -------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The library decides whether the text is JSON and what its strings mean; it
// does not say where its values stand, so a second walk over the then valid
// text finds that.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/JsonNode.h"

#include <nlohmann/json.hpp>

namespace reckon {
namespace {

constexpr int deepest = 64;

class Walk {
public:
  Walk(const std::string &file, std::string_view text,
       std::vector<Diagnostic> &errors)
      : file_(file), text_(text), errors_(errors) {}

  std::optional<Node> run() {
    Node root = value(0);
    if (failed_)
      return std::nullopt;
    return root;
  }

private:
  SourceLoc here() const { return {file_, line_, column_}; }

  void step() {
    if (text_[at_++] == '\n')
      ++line_, column_ = 1;
    else
      ++column_;
  }
  void skip() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n,:").find(text_[at_]) !=
               std::string_view::npos)
      step();
  }

  std::string string() {
    size_t begin = at_;
    step();
    while (text_[at_] != '"') {
      if (text_[at_] == '\\')
        step();
      step();
    }
    step();
    return nlohmann::json::parse(text_.substr(begin, at_ - begin))
        .get<std::string>();
  }

  Node value(int depth) {
    skip();
    Node node;
    node.loc = here();
    char c = text_[at_];
    if (depth > deepest) {
      if (!failed_)
        errors_.push_back(
            errorAt(here(), "expected at most " + std::to_string(deepest) +
                                " levels, got more; this is no config.json"));
      failed_ = true;
      return node;
    }
    if (c == '{') {
      node.kind = Node::Kind::Map;
      step();
      for (skip(); !failed_ && text_[at_] != '}'; skip()) {
        SourceLoc loc = here();
        std::string key = string();
        if (node.find(key)) {
          errors_.push_back(errorAt(loc, "expected each key once, got " +
                                             quoteForMessage(key) +
                                             " twice; remove one"));
          failed_ = true;
        }
        Node inner = value(depth + 1);
        node.entries.push_back({std::move(key), loc, std::move(inner)});
      }
      if (!failed_)
        step();
    } else if (c == '[') {
      node.kind = Node::Kind::List;
      step();
      for (skip(); !failed_ && text_[at_] != ']'; skip())
        node.items.push_back(value(depth + 1));
      if (!failed_)
        step();
    } else if (c == '"') {
      node.kind = Node::Kind::Scalar;
      node.quoted = true;
      node.text = string();
    } else {
      size_t begin = at_;
      while (at_ < text_.size() &&
             std::string_view(" \t\r\n,:]}").find(text_[at_]) ==
                 std::string_view::npos)
        step();
      node.text = text_.substr(begin, at_ - begin);
      node.kind = node.text == "null" ? Node::Kind::Null : Node::Kind::Scalar;
    }
    return node;
  }

  const std::string &file_;
  std::string_view text_;
  std::vector<Diagnostic> &errors_;
  size_t at_ = 0;
  unsigned line_ = 1, column_ = 1;
  bool failed_ = false;
};

} // namespace

std::optional<Node> parseJson(const std::string &file, std::string_view text,
                              std::vector<Diagnostic> &errors) {
  constexpr std::string_view mark = "\xef\xbb\xbf"; // some editors write it
  if (text.substr(0, mark.size()) == mark)
    text.remove_prefix(mark.size());
  try {
    // Without building values: a deep text must not exhaust the stack.
    if (!nlohmann::json::accept(text))
      (void)nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error &error) {
    size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    std::string_view before = text.substr(0, at);
    SourceLoc loc{file, 1, 1};
    for (char c : before)
      if (c == '\n')
        ++loc.line, loc.column = 1;
      else
        ++loc.column;
    errors.push_back(
        errorAt(loc, "expected JSON, got something else here; check for a "
                     "missing comma, bracket or quote"));
    return std::nullopt;
  }
  return Walk(file, text, errors).run();
}

} // namespace reckon
