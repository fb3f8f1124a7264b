//===- Words.cpp - the words of an argument file or launch script ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/import/megatron/Words.h"

#include <algorithm>
#include <map>

using namespace reckon;
using namespace reckon::megatron;

namespace {

bool nameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

class Scanner {
public:
  Scanner(const std::string &file, std::string_view text,
          std::vector<Diagnostic> &errors)
      : file_(file), text_(text), errors_(errors) {}

  std::vector<Command> run() {
    while (at_ < text_.size())
      statement();
    // A file that only sets variables for others to use.
    auto flag = [](const Word &word) { return word.text.rfind("--", 0) == 0; };
    bool any = false;
    for (const Command &command : commands_)
      any |= std::any_of(command.begin(), command.end(), flag);
    for (const auto &[name, words] : variables_)
      if (!any && !words.empty() && flag(words[0]))
        commands_.push_back(words);
    return std::move(commands_);
  }

private:
  bool end() const { return at_ >= text_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void step() {
    if (text_[at_] == '\n')
      ++line_, column_ = 1;
    else
      ++column_;
    ++at_;
  }
  SourceLoc here() const { return {file_, line_, column_}; }

  /// Blanks, continued lines and comments; newlines too when `lines`.
  void skip(bool lines) {
    while (!end()) {
      char c = peek();
      if (c == '\\' && peek(1) == '\n')
        step(), step();
      else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n'))
        step();
      else if (c == '#')
        while (!end() && peek() != '\n')
          step();
      else
        return;
    }
  }

  static bool ends(char c) {
    return c == '\n' || c == ';' || c == '&' || c == '|' || c == '<' ||
           c == '>';
  }

  /// NAME=, NAME+= at the cursor; the name, or empty.
  std::string assignment(bool &append) const {
    size_t i = at_;
    while (i < text_.size() && nameChar(text_[i]))
      ++i;
    if (i == at_ || (text_[at_] >= '0' && text_[at_] <= '9'))
      return "";
    std::string name(text_.substr(at_, i - at_));
    append = i < text_.size() && text_[i] == '+';
    if (append)
      ++i;
    return i < text_.size() && text_[i] == '=' ? name : "";
  }

  void statement() {
    skip(true);
    Command command;
    while (!end() && !ends(peek())) {
      size_t before = at_;
      bool append = false;
      std::string name = command.empty() ? assignment(append) : "";
      if (!name.empty()) {
        assign(name, append);
      } else {
        readWord(command);
        if (command.size() == 1 &&
            (command[0].text == "export" || command[0].text == "local" ||
             command[0].text == "declare" || command[0].text == "readonly"))
          command.clear();
      }
      skip(false);
      if (at_ == before)
        step(); // a ) of a case, a function or a subshell
    }
    while (!end() && ends(peek()))
      step();
    if (!command.empty())
      commands_.push_back(std::move(command));
  }

  void assign(const std::string &name, bool append) {
    while (peek() != '=')
      step();
    step();
    std::vector<Word> words;
    if (peek() == '(') {
      SourceLoc open = here();
      step();
      for (skip(true); !end() && peek() != ')'; skip(true)) {
        size_t before = at_;
        readWord(words);
        if (at_ == before)
          step(); // a separator that has no meaning in an array
      }
      if (end())
        errors_.push_back(errorAt(open, "expected a ) that closes this array, "
                                        "got the end of the file; add it"));
      else
        step();
    } else if (!end() && peek() != '\n' && peek() != ' ') {
      splitQuotes_ = true;
      readWord(words);
      splitQuotes_ = false;
    }
    std::vector<Word> &variable = variables_[name];
    if (!append)
      variable.clear();
    variable.insert(variable.end(), words.begin(), words.end());
  }

  /// Appends the words that one shell word becomes. An expansion of a variable
  /// that stands alone becomes all of its words.
  void readWord(std::vector<Word> &out) {
    Word word{"", here(), ""};
    bool any = false, quoted = false;
    auto flush = [&] {
      if (any)
        out.push_back(word);
      word = Word{"", here(), ""};
      any = false;
    };
    while (!end()) {
      char c = peek();
      bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
      if (quoted && c == quote_) {
        step();
        quoted = false;
      } else if (quoted && splitQuotes_ && blank) {
        // The text of a scalar: it is split where it is used.
        flush();
        step();
        word.loc = here();
      } else if (quoted && quote_ == '\'') {
        word.text += c;
        any = true;
        step();
      } else if (c == '\\' && peek(1) == '\n') {
        step(), step();
        if (quoted && splitQuotes_) {
          flush();
          word.loc = here();
        }
      } else if (c == '\\' && peek(1)) {
        step();
        word.text += peek();
        any = true;
        step();
      } else if (c == '$') {
        expand(word, any, out);
      } else if (!quoted && (c == '\'' || c == '"')) {
        quote_ = c;
        quoted = true;
        any |= !splitQuotes_; // '' is an empty word
        step();
      } else if (!quoted && (blank || ends(c) || c == ')')) {
        break;
      } else {
        word.text += c;
        any = true;
        step();
      }
    }
    if (quoted)
      errors_.push_back(errorAt(word.loc, "expected a closing quote, got the "
                                          "end of the file; add it"));
    if (any)
      out.push_back(word);
    else if (!end() && peek() == ')' && out.empty())
      step(); // of a subshell
  }

  /// The text of an expansion at the cursor, without its brackets.
  std::string expansion() {
    step(); // $
    std::string inner;
    char open = peek(), close = open == '{' ? '}' : ')';
    if (open == '{' || open == '(') {
      int depth = 0;
      do {
        if (peek() == open)
          ++depth;
        if (peek() == close)
          --depth;
        inner += peek();
        step();
      } while (!end() && depth > 0);
      if (open == '(')
        return inner;
      return inner.substr(1, inner.size() - 2);
    }
    do {
      inner += peek();
      step();
    } while (!end() && nameChar(peek()) && nameChar(inner[0]));
    return inner;
  }

  void expand(Word &word, bool &any, std::vector<Word> &out) {
    std::string inner = expansion();
    std::string name, fallback;
    bool hasFallback = false;
    if (size_t mark = inner.find(":-"); mark != std::string::npos) {
      name = inner.substr(0, mark);
      fallback = inner.substr(mark + 2);
      hasFallback = fallback.find('$') == std::string::npos;
      for (char quote : {'"', '\''})
        if (fallback.size() >= 2 && fallback.front() == quote &&
            fallback.back() == quote)
          fallback = fallback.substr(1, fallback.size() - 2);
    } else {
      name = inner.substr(0, inner.find('['));
    }
    auto found = variables_.find(name);
    if (found != variables_.end()) {
      const std::vector<Word> &words = found->second;
      for (size_t i = 0; i < words.size(); ++i) {
        if (i > 0) {
          out.push_back(word);
          word = Word{"", words[i].loc, ""};
        } else if (!any && word.text.empty()) {
          word.loc = words[i].loc;
        }
        word.text += words[i].text;
        word.unknown += words[i].unknown;
        any = true;
      }
    } else if (hasFallback) {
      word.text += fallback;
      any = true;
    } else {
      word.unknown += "$" + inner;
      any = true;
    }
  }

  const std::string &file_;
  std::string_view text_;
  std::vector<Diagnostic> &errors_;
  size_t at_ = 0;
  unsigned line_ = 1, column_ = 1;
  char quote_ = '\0';
  bool splitQuotes_ = false;
  std::map<std::string, std::vector<Word>> variables_;
  std::vector<Command> commands_;
};

} // namespace

std::vector<Command> megatron::readCommands(const std::string &file,
                                            std::string_view text,
                                            std::vector<Diagnostic> &errors) {
  return Scanner(file, text, errors).run();
}
