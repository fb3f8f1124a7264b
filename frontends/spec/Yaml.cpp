//===- Yaml.cpp - the only user of yaml-cpp -------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// yaml-cpp is used through its event interface, not through YAML::Node: events
// carry the place of every key, aliases arrive unexpanded, so that a bomb is
// counted before it is built, and a handler that throws at the depth limit
// stops the parser's recursion before it can use up the stack. Exceptions end
// in this file.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <exception>
#include <map>
#include <sstream>
#include <utility>

namespace reckon {
namespace {

/// Ends the parse early; leaves this file only as a Diagnostic.
struct Stop {
  SourceLoc loc;
  std::string message;
};

/// Length of the UTF-8 sequence at `text[i]`, or 0 if there is none.
size_t utf8Length(std::string_view text, size_t i) {
  auto byte = [&](size_t k) -> unsigned {
    return k < text.size() ? static_cast<unsigned char>(text[k]) : 0;
  };
  auto tail = [&](size_t k) { return (byte(k) & 0xc0) == 0x80; };
  unsigned lead = byte(i);
  if (lead < 0x80)
    return 1;
  if (lead >= 0xc2 && lead <= 0xdf && tail(i + 1))
    return 2;
  // The second byte excludes overlong forms, surrogates and what is past
  // U+10FFFF.
  if ((lead & 0xf0) == 0xe0 && tail(i + 1) && tail(i + 2)) {
    bool fits = (lead != 0xe0 || byte(i + 1) >= 0xa0) &&
                (lead != 0xed || byte(i + 1) < 0xa0);
    return fits ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4 && tail(i + 1) && tail(i + 2) &&
      tail(i + 3)) {
    bool fits = (lead != 0xf0 || byte(i + 1) >= 0x90) &&
                (lead != 0xf4 || byte(i + 1) < 0x90);
    return fits ? 4 : 0;
  }
  return 0;
}

std::string hexByte(unsigned char byte) {
  static const char digits[] = "0123456789abcdef";
  return std::string("0x") + digits[byte >> 4] + digits[byte & 15];
}

/// Refuses what is not text, with the place of the first bad byte.
std::optional<Diagnostic> checkText(const std::string &file,
                                    std::string_view text) {
  SourceLoc loc{file, 1, 1};
  for (size_t i = 0; i < text.size();) {
    unsigned char byte = static_cast<unsigned char>(text[i]);
    size_t length = utf8Length(text, i);
    if (length == 0)
      return errorAt(loc, "expected UTF-8 text, got the byte " + hexByte(byte) +
                              "; save the file as UTF-8");
    bool control =
        (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') ||
        byte == 0x7f;
    if (control)
      return errorAt(loc, "expected text, got the control character " +
                              hexByte(byte) +
                              "; a spec is a YAML text file, is this another "
                              "kind of file?");
    i += length;
    if (byte == '\n') {
      ++loc.line;
      loc.column = 1;
    } else {
      ++loc.column;
    }
  }
  return std::nullopt;
}

size_t countNodes(const Node &node) {
  size_t count = 1;
  for (const Node &item : node.items)
    count += countNodes(item);
  for (const Entry &entry : node.entries)
    count += countNodes(entry.value);
  return count;
}

size_t heightOf(const Node &node) {
  size_t height = 0;
  for (const Node &item : node.items)
    height = std::max(height, heightOf(item));
  for (const Entry &entry : node.entries)
    height = std::max(height, heightOf(entry.value));
  return height + 1;
}

/// Builds the tree from the parser's events.
class Builder : public YAML::EventHandler {
public:
  Builder(std::string file, const YamlLimits &limits,
          std::vector<Diagnostic> &errors)
      : file_(std::move(file)), limits_(limits), errors_(errors) {}

  SourceLoc at(const YAML::Mark &mark) const {
    if (mark.is_null())
      return {file_, 1, 1};
    return {file_, static_cast<unsigned>(mark.line + 1),
            static_cast<unsigned>(mark.column + 1)};
  }
  Node takeRoot() { return std::move(root_); }
  /// The innermost list or map in brackets that is still open, if any.
  const Node *openBracket() const {
    for (size_t i = open_.size(); i-- > 0;)
      if (open_[i].flow)
        return &open_[i].node;
    return nullptr;
  }

  void OnDocumentStart(const YAML::Mark &) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    Node node;
    node.loc = at(mark);
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    auto known = anchors_.find(anchor);
    if (known == anchors_.end())
      throw Stop{at(mark), "this alias stands inside the value that it names; "
                           "write the value out instead"};
    // The copy is made only after it was counted.
    count(known->second.nodes, at(mark));
    if (open_.size() + known->second.height > limits_.depth)
      tooDeep(at(mark));
    nodes_ -= 1; // add() counts the top of the copy again
    add(known->second.node, YAML::NullAnchor);
  }
  void OnScalar(const YAML::Mark &mark, const std::string &tag,
                YAML::anchor_t anchor, const std::string &value) override {
    Node node;
    node.kind = Node::Kind::Scalar;
    node.loc = at(mark);
    node.text = value;
    // "?" marks a plain scalar, "!" a quoted or block one.
    node.quoted = tag == "!";
    refuseTag(tag, node.loc);
    for (char c : value)
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') ||
          c == 0x7f)
        throw Stop{node.loc, "expected text, got an escaped control character "
                             "in " +
                                 quoteForMessage(value) + "; remove it"};
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark &mark, const std::string &tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    begin(Node::Kind::List, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark &mark, const std::string &tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    begin(Node::Kind::Map, mark, tag, anchor, style);
  }
  void OnMapEnd() override { end(); }

private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool flow = false;
    std::optional<std::pair<std::string, SourceLoc>> key; ///< awaits its value
  };
  struct Anchored {
    Node node;
    size_t nodes;
    size_t height;
  };

  [[noreturn]] void tooDeep(const SourceLoc &loc) const {
    throw Stop{loc, "expected at most " + std::to_string(limits_.depth) +
                        " levels of lists and maps in each other, got more; "
                        "is a bracket too many here?"};
  }
  void count(size_t more, const SourceLoc &loc) {
    nodes_ += more;
    if (nodes_ > limits_.nodes)
      throw Stop{loc, "expected at most " + std::to_string(limits_.nodes) +
                          " values in a spec, got more (aliases count as what "
                          "they stand for); write less"};
  }
  void refuseTag(const std::string &tag, const SourceLoc &loc) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Stop{loc, "expected a plain value, got the YAML tag " +
                          quoteForMessage(tag) + "; remove the tag"};
  }
  void begin(Node::Kind kind, const YAML::Mark &mark, const std::string &tag,
             YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    Open open;
    open.node.kind = kind;
    open.node.loc = at(mark);
    open.anchor = anchor;
    open.flow = style == YAML::EmitterStyle::Flow;
    refuseTag(tag, open.node.loc);
    if (open_.size() >= limits_.depth)
      tooDeep(open.node.loc);
    open_.push_back(std::move(open));
  }
  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor);
  }
  void add(Node node, YAML::anchor_t anchor) {
    count(1, node.loc);
    if (anchor != YAML::NullAnchor)
      anchors_[anchor] = {node, countNodes(node), heightOf(node)};
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open &open = open_.back();
    if (open.node.isList()) {
      open.node.items.push_back(std::move(node));
    } else if (!open.key) {
      if (!node.isScalar())
        throw Stop{node.loc, "expected a key, got " + node.describe() +
                                 "; keys are plain words"};
      open.key.emplace(node.text, node.loc);
    } else {
      auto [key, loc] = std::move(*open.key);
      open.key.reset();
      if (const Entry *first = open.node.find(key))
        errors_.push_back(
            errorAt(loc, "expected each key once, got " + quoteForMessage(key) +
                             " again, first written at " + first->loc.str() +
                             "; remove one of them"));
      else
        open.node.entries.push_back({key, loc, std::move(node)});
    }
  }

  std::string file_;
  const YamlLimits &limits_;
  std::vector<Diagnostic> &errors_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  size_t nodes_ = 0;
};

/// What to do about a message of yaml-cpp.
std::string remedyFor(const std::string &message) {
  if (message.find("tab") != std::string::npos)
    return "indent with spaces";
  if (message.find("anchor") != std::string::npos)
    return "define it with & before the first *";
  return "check indentation, brackets and the space after each colon";
}

} // namespace

std::optional<Node> parseYaml(const std::string &file, std::string_view text,
                              std::vector<Diagnostic> &errors,
                              const YamlLimits &limits) {
  auto fail = [&](SourceLoc loc, std::string message) {
    errors.push_back(errorAt(std::move(loc), std::move(message)));
    return std::nullopt;
  };
  if (text.size() > limits.bytes)
    return fail({file, 1, 1}, "expected a spec of at most " +
                                  std::to_string(limits.bytes) +
                                  " bytes, got " + std::to_string(text.size()) +
                                  "; is this another kind of file?");
  if (auto bad = checkText(file, text)) {
    errors.push_back(std::move(*bad));
    return std::nullopt;
  }
  Builder builder(file, limits, errors);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    bool any = parser.HandleNextDocument(builder);
    Node root = any ? builder.takeRoot() : Node();
    if (root.loc.line == 0)
      root.loc = {file, 1, 1};
    Builder second(file, limits, errors);
    if (any && parser.HandleNextDocument(second))
      return fail(second.takeRoot().loc,
                  "expected one YAML document in a file, got a second one; put "
                  "it in a file of its own and name both");
    return root;
  } catch (const Stop &stop) {
    return fail(stop.loc, stop.message);
  } catch (const YAML::Exception &error) {
    // At the end of the text an open bracket is the cause worth naming, and
    // so it is when text after it makes no sense inside the bracket.
    if (const Node *open = builder.openBracket())
      return fail(open->loc,
                  "expected this bracket to be closed, got: " + error.msg +
                      " (at " + builder.at(error.mark).str() +
                      "); close it or remove it");
    return fail(builder.at(error.mark), "expected YAML, got: " + error.msg +
                                            "; " + remedyFor(error.msg));
  } catch (const std::exception &error) {
    return fail({file, 1, 1}, std::string("expected YAML, got: ") +
                                  error.what() +
                                  "; check the file for stray characters");
  }
}

} // namespace reckon
