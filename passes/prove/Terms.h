//===- Terms.h - values as terms, each one once ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A term says how a value is computed from the values that a step starts with,
// on the rank family of one stage: a function of coordinates enters as such,
// and a collective as one operation over its axes. Equal terms have equal
// numbers, so comparing values costs nothing.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_TERMS_H
#define RECKON_PASSES_PROVE_TERMS_H

#include "passes/prove/Program.h"

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace reckon::prove {

using TermId = uint32_t;
inline constexpr TermId kNoTerm = UINT32_MAX;

enum class TermKind : uint8_t {
  Symbol,     ///< a value from outside, by its name and a number
  Kernel,     ///< one output of a kernel
  Collective, ///< what a rank has after it
  Slice,      ///< bytes of a term, from an offset that may differ by rank
  Concat,     ///< terms one behind the other
  Cast        ///< the same bytes under another type
};

struct TermNode {
  TermKind kind = TermKind::Symbol;
  plan::DType dtype = plan::DType::f32;
  uint8_t output = 0;
  uint8_t reduction = 0;
  uint32_t code = 0; ///< symbol: name; kernel, opcode: its number
  uint32_t axes = 0; ///< of a collective
  int64_t number = 0;
  int64_t bytes = 0;
  uint32_t firstWord = 0;
  uint16_t numArgs = 0, numFloats = 0, numInputs = 0;
};

/// Where a term was first computed.
struct Origin {
  const Stage *stage = nullptr;
  Place place;
};

class TermTable {
public:
  explicit TermTable(CoordFunctions &functions) : functions_(functions) {
    slots_.resize(1u << 16, kNoTerm);
  }

  TermId symbol(const std::string &name, int64_t number, plan::DType dtype,
                int64_t bytes);
  /// The scale and the codes of a cast are the same whichever others it gives
  /// (the argument LAYOUT): codes are output 1, transposed ones output 2.
  TermId kernel(plan::Kernel kernel, std::span<const FnId> args,
                std::span<const double> floats, std::span<const TermId> inputs,
                unsigned output, plan::DType dtype, int64_t bytes);
  /// A reduce_scatter is this rank's block of an all_reduce; gathering such
  /// blocks again gives the all_reduce.
  TermId collective(plan::Opcode op, plan::Reduction reduction, unsigned axes,
                    TermId input, int64_t bytes);
  /// The whole when it is the whole; a gather's input when it is that block.
  TermId slice(TermId whole, FnId offset, int64_t bytes);
  /// The part when there is one.
  TermId concat(std::span<const TermId> parts);
  TermId cast(TermId term, plan::DType dtype);

  const TermNode &operator[](TermId term) const { return terms_[term]; }
  std::span<const FnId> args(TermId term) const;
  std::span<const TermId> inputs(TermId term) const;
  std::vector<double> floats(TermId term) const;
  size_t size() const { return terms_.size(); }

  /// Remembers where an instruction computed the term, the first time.
  void setOrigin(TermId term, const Stage &stage, Place place) {
    if (!origins_[term].stage)
      origins_[term] = {&stage, place};
  }
  const Origin &origin(TermId term) const { return origins_[term]; }

  /// "linear(rms_norm(...), model.layers.0.mlp.up_proj.weight)".
  std::string describe(TermId term, int depth = 1) const;

  CoordFunctions &functions() { return functions_; }
  const CoordFunctions &functions() const { return functions_; }

private:
  TermId intern(TermNode term, std::span<const uint32_t> args,
                std::span<const double> floats, std::span<const TermId> inputs);
  bool isBlock(unsigned axes, FnId offset, int64_t bytes, int64_t whole);
  void grow();
  uint64_t hash(const TermNode &term, const uint32_t *words) const;

  CoordFunctions &functions_;
  std::vector<TermNode> terms_;
  std::vector<uint32_t> words_;
  std::vector<Origin> origins_;
  std::vector<uint64_t> hashes_;
  std::vector<TermId> slots_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> nameIds_;
};

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_TERMS_H
