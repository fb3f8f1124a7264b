//===- JsonLine.h - one JSON object, without allocation -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_OBSERVE_JSONLINE_H
#define RECKON_RUNTIME_OBSERVE_JSONLINE_H

#include <array>
#include <cstdint>
#include <string_view>

namespace reckon::observe {

/// Builds one object on one line in a fixed buffer, so that writing a step's
/// metrics allocates nothing. Doubles have the fewest digits that read back as
/// the same value; what JSON cannot say (NaN, infinities) is null. What does
/// not fit is left out, whole members at a time.
class JsonLine {
public:
  JsonLine() { clear(); }

  void clear();
  JsonLine &add(std::string_view key, double value);
  JsonLine &add(std::string_view key, int64_t value);
  JsonLine &add(std::string_view key, std::string_view value);
  JsonLine &beginObject(std::string_view key);
  JsonLine &endObject();
  JsonLine &beginArray(std::string_view key);
  JsonLine &element(int64_t value);
  JsonLine &endArray();

  /// The object with a newline; more members may follow after clear() only.
  std::string_view finish();

private:
  bool key(std::string_view text, size_t room);
  void raw(std::string_view text);
  void quoted(std::string_view text);
  JsonLine &close(const char *bracket);

  std::array<char, 16384> buffer_;
  size_t used_ = 0;
  int skipped_ = 0; ///< open objects and arrays that had no room
  bool first_ = true;
};

} // namespace reckon::observe

#endif // RECKON_RUNTIME_OBSERVE_JSONLINE_H
