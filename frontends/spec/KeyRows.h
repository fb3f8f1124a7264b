//===- KeyRows.h - writing the rows of the key table ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Bounds are sanity limits: far above what anybody trains, low enough that
// every product of two of them stays within 63 bits. Check.cpp guards the
// longer products.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_KEYROWS_H
#define RECKON_FRONTENDS_SPEC_KEYROWS_H

#include "frontends/spec/Keys.h"

namespace reckon::keys {

inline constexpr double K = 1024.0, M = K * K, G = K * M;
/// 2^53: exact as a double.
inline constexpr double most = 9007199254740992.0;

using Kind = KeyKind;

/// Appends rows of each kind.
class Rows {
public:
  void section(std::string_view path, std::string_view doc) {
    KeyRow row;
    row.path = path, row.kind = Kind::Section, row.doc = doc;
    all.push_back(row);
  }
  void number(Kind kind, std::string_view path, std::string_view fallback,
              double low, double high, std::string_view doc,
              std::string_view applies = "", std::string_view compiles = "") {
    KeyRow row;
    row.path = path, row.kind = kind, row.fallback = fallback;
    row.low = low, row.high = high, row.doc = doc;
    row.applies = applies, row.compiles = compiles;
    all.push_back(row);
  }
  void words(Kind kind, std::string_view path, std::string_view fallback,
             std::string_view known, std::string_view compiles,
             std::string_view doc, std::string_view applies = "") {
    KeyRow row;
    row.path = path, row.kind = kind, row.fallback = fallback;
    row.words = known, row.compiles = compiles, row.doc = doc;
    row.applies = applies;
    all.push_back(row);
  }
  void special(std::string_view path, std::string_view fallback,
               std::string_view type, std::string_view compiles,
               std::string_view doc) {
    KeyRow row;
    row.path = path, row.kind = Kind::Special, row.fallback = fallback;
    row.type = type, row.compiles = compiles, row.doc = doc;
    all.push_back(row);
  }

  std::vector<KeyRow> all;
};

// The sections, in the order of docs/spec.md.
void addModelKeys(Rows &rows);
void addClusterKeys(Rows &rows);
void addTrainingKeys(Rows &rows);
void addParallelismKeys(Rows &rows);
void addPlanningKeys(Rows &rows); ///< constraints and search

} // namespace reckon::keys

#endif // RECKON_FRONTENDS_SPEC_KEYROWS_H
