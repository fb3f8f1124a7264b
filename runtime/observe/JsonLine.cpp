//===- JsonLine.cpp - one JSON object, without allocation -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/observe/JsonLine.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace reckon::observe {

/// Kept free for the ends of open objects and the newline.
static constexpr size_t kTail = 16;
/// The longest number, with separators.
static constexpr size_t kNumber = 40;

void JsonLine::clear() {
  used_ = 0;
  skipped_ = 0;
  first_ = true;
  raw("{");
}

void JsonLine::raw(std::string_view text) {
  std::memcpy(buffer_.data() + used_, text.data(), text.size());
  used_ += text.size();
}

void JsonLine::quoted(std::string_view text) {
  raw("\"");
  for (char c : text) {
    if (c == '"' || c == '\\') {
      raw("\\");
      raw({&c, 1});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      raw(escape);
    } else {
      raw({&c, 1});
    }
  }
  raw("\"");
}

bool JsonLine::key(std::string_view text, size_t room) {
  if (skipped_ > 0)
    return false;
  // A character takes up to six when it is escaped.
  if (used_ + 6 * text.size() + room + kTail > buffer_.size())
    return false;
  if (!first_)
    raw(",");
  first_ = false;
  quoted(text);
  raw(":");
  return true;
}

JsonLine &JsonLine::add(std::string_view name, double value) {
  if (!key(name, kNumber))
    return *this;
  if (!std::isfinite(value)) {
    raw("null");
    return *this;
  }
  char text[kNumber];
  auto result = std::to_chars(text, text + sizeof(text), value);
  raw({text, static_cast<size_t>(result.ptr - text)});
  return *this;
}

JsonLine &JsonLine::add(std::string_view name, int64_t value) {
  if (!key(name, kNumber))
    return *this;
  char text[kNumber];
  auto result = std::to_chars(text, text + sizeof(text), value);
  raw({text, static_cast<size_t>(result.ptr - text)});
  return *this;
}

JsonLine &JsonLine::add(std::string_view name, std::string_view value) {
  if (key(name, 6 * value.size() + 4))
    quoted(value);
  return *this;
}

JsonLine &JsonLine::beginObject(std::string_view name) {
  if (!key(name, 8)) {
    ++skipped_;
    return *this;
  }
  raw("{");
  first_ = true;
  return *this;
}

JsonLine &JsonLine::endObject() { return close("}"); }

JsonLine &JsonLine::beginArray(std::string_view name) {
  if (!key(name, 8)) {
    ++skipped_;
    return *this;
  }
  raw("[");
  first_ = true;
  return *this;
}

JsonLine &JsonLine::element(int64_t value) {
  if (skipped_ > 0 || used_ + kNumber + kTail > buffer_.size())
    return *this;
  if (!first_)
    raw(",");
  first_ = false;
  char text[kNumber];
  auto result = std::to_chars(text, text + sizeof(text), value);
  raw({text, static_cast<size_t>(result.ptr - text)});
  return *this;
}

JsonLine &JsonLine::endArray() { return close("]"); }

JsonLine &JsonLine::close(const char *bracket) {
  if (skipped_ > 0) {
    --skipped_;
    return *this;
  }
  raw(bracket);
  first_ = false;
  return *this;
}

std::string_view JsonLine::finish() {
  raw("}\n");
  return {buffer_.data(), used_};
}

} // namespace reckon::observe
