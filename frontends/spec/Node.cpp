//===- Node.cpp -----------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Node.h"

#include <utility>

namespace reckon {

const Entry *Node::find(std::string_view key) const {
  for (const Entry &entry : entries)
    if (entry.key == key)
      return &entry;
  return nullptr;
}

Entry *Node::find(std::string_view key) {
  return const_cast<Entry *>(std::as_const(*this).find(key));
}

std::string quoteForMessage(std::string_view text) {
  constexpr size_t longest = 60;
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    // Cut only between characters, never inside a UTF-8 sequence.
    bool continues = (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
    if (out.size() > longest && !continues)
      return out + "...\"";
    if (static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7f) {
      static const char digits[] = "0123456789abcdef";
      out += "\\x";
      out += digits[(text[i] >> 4) & 15];
      out += digits[text[i] & 15];
    } else {
      out += text[i];
    }
  }
  return out + "\"";
}

std::string Node::describe() const {
  switch (kind) {
  case Kind::Null:
    return "nothing";
  case Kind::Scalar:
    return quoted ? "the quoted text " + quoteForMessage(text)
                  : quoteForMessage(text);
  case Kind::List:
    return "a list";
  case Kind::Map:
    return "a map";
  }
  return "nothing";
}

void mergeInto(Node &under, Node over) {
  if (!under.isMap() || !over.isMap()) {
    under = std::move(over);
    return;
  }
  for (Entry &entry : over.entries) {
    if (Entry *there = under.find(entry.key)) {
      there->loc = entry.loc;
      mergeInto(there->value, std::move(entry.value));
    } else {
      under.entries.push_back(std::move(entry));
    }
  }
}

} // namespace reckon
