//===- Terms.cpp - values as terms, each one once -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Terms.h"

#include <algorithm>
#include <cstring>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

/// Words behind a term: its args, its floats (two each), its inputs.
static size_t numWords(const TermNode &term) {
  return term.numArgs + 2u * term.numFloats + term.numInputs;
}

static bool sameHead(const TermNode &a, const TermNode &b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.output == b.output &&
         a.reduction == b.reduction && a.code == b.code && a.axes == b.axes &&
         a.number == b.number && a.bytes == b.bytes && a.numArgs == b.numArgs &&
         a.numFloats == b.numFloats && a.numInputs == b.numInputs;
}

uint64_t TermTable::hash(const TermNode &term, const uint32_t *words) const {
  uint64_t value = 0x9e3779b97f4a7c15u;
  auto mix = [&](uint64_t word) {
    value = (value ^ word) * 0xff51afd7ed558ccdu;
    value ^= value >> 32;
  };
  mix(static_cast<uint64_t>(term.kind) |
      static_cast<uint64_t>(term.dtype) << 8 |
      static_cast<uint64_t>(term.output) << 16 |
      static_cast<uint64_t>(term.reduction) << 24 |
      static_cast<uint64_t>(term.code) << 32);
  mix(term.axes);
  mix(static_cast<uint64_t>(term.number));
  mix(static_cast<uint64_t>(term.bytes));
  for (size_t i = 0; i < numWords(term); ++i)
    mix(words[i]);
  return value;
}

void TermTable::grow() {
  slots_.assign(slots_.size() * 2, kNoTerm);
  for (TermId id = 0; id < terms_.size(); ++id) {
    size_t at = hashes_[id] & (slots_.size() - 1);
    while (slots_[at] != kNoTerm)
      at = (at + 1) & (slots_.size() - 1);
    slots_[at] = id;
  }
}

TermId TermTable::intern(TermNode term, std::span<const uint32_t> args,
                         std::span<const double> floats,
                         std::span<const TermId> inputs) {
  term.numArgs = static_cast<uint16_t>(args.size());
  term.numFloats = static_cast<uint16_t>(floats.size());
  term.numInputs = static_cast<uint16_t>(inputs.size());
  term.firstWord = static_cast<uint32_t>(words_.size());
  words_.insert(words_.end(), args.begin(), args.end());
  for (double number : floats) {
    uint32_t halves[2];
    std::memcpy(halves, &number, sizeof(number));
    words_.insert(words_.end(), halves, halves + 2);
  }
  words_.insert(words_.end(), inputs.begin(), inputs.end());

  const uint32_t *words = words_.data() + term.firstWord;
  uint64_t code = hash(term, words);
  size_t at = code & (slots_.size() - 1);
  for (; slots_[at] != kNoTerm; at = (at + 1) & (slots_.size() - 1)) {
    TermId id = slots_[at];
    const TermNode &known = terms_[id];
    if (hashes_[id] == code && sameHead(known, term) &&
        std::equal(words, words + numWords(term),
                   words_.data() + known.firstWord)) {
      words_.resize(term.firstWord);
      return id;
    }
  }
  auto id = static_cast<TermId>(terms_.size());
  slots_[at] = id;
  terms_.push_back(term);
  hashes_.push_back(code);
  origins_.emplace_back();
  if (2 * terms_.size() > slots_.size())
    grow();
  return id;
}

TermId TermTable::symbol(const std::string &name, int64_t number, DType dtype,
                         int64_t bytes) {
  auto [it, fresh] =
      nameIds_.try_emplace(name, static_cast<uint32_t>(names_.size()));
  if (fresh)
    names_.push_back(name);
  TermNode term;
  term.kind = TermKind::Symbol;
  term.code = it->second;
  term.number = number;
  term.dtype = dtype;
  term.bytes = bytes;
  return intern(term, {}, {}, {});
}

TermId TermTable::kernel(Kernel kernel, std::span<const FnId> args,
                         std::span<const double> floats,
                         std::span<const TermId> inputs, unsigned output,
                         DType dtype, int64_t bytes) {
  TermNode term;
  term.kind = TermKind::Kernel;
  term.code = static_cast<uint32_t>(kernel);
  term.output = static_cast<uint8_t>(output);
  term.dtype = dtype;
  term.bytes = bytes;
  // Addition commutes to the bit.
  if (kernel == Kernel::add && inputs.size() == 2 && inputs[1] < inputs[0]) {
    TermId swapped[] = {inputs[1], inputs[0]};
    return intern(term, args, floats, swapped);
  }
  if (kernel == Kernel::cast_fp8 && args.size() == 4 &&
      functions_.isConstant(args[3])) {
    if (output == 1 && functions_.low(args[3]) == 2)
      term.output = 2;
    return intern(term, args.first(3), floats, inputs);
  }
  return intern(term, args, floats, inputs);
}

/// Whether `bytes` at `offset` are a rank's share of the whole along `axes`.
bool TermTable::isBlock(unsigned axes, FnId offset, int64_t bytes,
                        int64_t whole) {
  return bytes * functions_.ranks(axes) == whole &&
         offset == functions_.block(axes, bytes);
}

TermId TermTable::collective(Opcode op, Reduction reduction, unsigned axes,
                             TermId input, int64_t bytes) {
  constexpr unsigned kPp = 1u << static_cast<unsigned>(Axis::pp);
  const TermNode from = terms_[input];
  if (op == Opcode::reduce_scatter && !(axes & kPp) &&
      bytes * functions_.ranks(axes) == from.bytes)
    return slice(
        collective(Opcode::all_reduce, reduction, axes, input, from.bytes),
        functions_.block(axes, bytes), bytes);
  if (op == Opcode::all_gather && from.kind == TermKind::Slice) {
    TermId wholeId = inputs(input)[0];
    const TermNode &whole = terms_[wholeId];
    if (whole.kind == TermKind::Collective &&
        static_cast<Opcode>(whole.code) == Opcode::all_reduce &&
        (axes & ~whole.axes) == 0 && bytes == whole.bytes &&
        isBlock(axes, args(input)[0], from.bytes, whole.bytes))
      return wholeId; // equal on all ranks that gather it
  }
  TermNode term;
  term.kind = TermKind::Collective;
  term.code = static_cast<uint32_t>(op);
  term.reduction =
      op == Opcode::all_gather ? 0 : static_cast<uint8_t>(reduction);
  term.axes = axes;
  term.dtype = from.dtype;
  term.bytes = bytes;
  return intern(term, {}, {}, std::span(&input, 1));
}

TermId TermTable::slice(TermId whole, FnId offset, int64_t bytes) {
  const TermNode &from = terms_[whole];
  if (functions_.isConstant(offset) && functions_.low(offset) == 0 &&
      from.bytes == bytes)
    return whole;
  if (from.kind == TermKind::Collective &&
      static_cast<Opcode>(from.code) == Opcode::all_gather &&
      isBlock(from.axes, offset, bytes, from.bytes))
    return inputs(whole)[0];
  TermNode term;
  term.kind = TermKind::Slice;
  term.dtype = from.dtype;
  term.bytes = bytes;
  return intern(term, std::span(&offset, 1), {}, std::span(&whole, 1));
}

TermId TermTable::concat(std::span<const TermId> parts) {
  if (parts.size() == 1)
    return parts[0];
  TermNode term;
  term.kind = TermKind::Concat;
  term.dtype = terms_[parts[0]].dtype;
  for (TermId part : parts)
    term.bytes += terms_[part].bytes;
  return intern(term, {}, {}, parts);
}

TermId TermTable::cast(TermId operand, DType dtype) {
  if (terms_[operand].dtype == dtype)
    return operand;
  TermNode term;
  term.kind = TermKind::Cast;
  term.dtype = dtype;
  term.bytes = terms_[operand].bytes;
  return intern(term, {}, {}, std::span(&operand, 1));
}

std::span<const FnId> TermTable::args(TermId id) const {
  const TermNode &term = terms_[id];
  return {words_.data() + term.firstWord, term.numArgs};
}

std::span<const TermId> TermTable::inputs(TermId id) const {
  const TermNode &term = terms_[id];
  return {words_.data() + term.firstWord + term.numArgs + 2u * term.numFloats,
          term.numInputs};
}

std::vector<double> TermTable::floats(TermId id) const {
  const TermNode &term = terms_[id];
  std::vector<double> numbers(term.numFloats);
  if (!numbers.empty())
    std::memcpy(numbers.data(), words_.data() + term.firstWord + term.numArgs,
                numbers.size() * sizeof(double));
  return numbers;
}

std::string TermTable::describe(TermId id, int depth) const {
  if (id == kNoTerm)
    return "nothing";
  const TermNode &term = terms_[id];
  std::string text;
  switch (term.kind) {
  case TermKind::Symbol:
    text = names_[term.code];
    return term.number < 0 ? text : text + " " + std::to_string(term.number);
  case TermKind::Kernel:
    text = EnumNameKernel(static_cast<Kernel>(term.code));
    if (term.output)
      text += "#" + std::to_string(term.output);
    break;
  case TermKind::Collective:
    text = EnumNameOpcode(static_cast<Opcode>(term.code));
    if (static_cast<Opcode>(term.code) != Opcode::all_gather)
      text += std::string(" ") +
              EnumNameReduction(static_cast<Reduction>(term.reduction));
    for (int i = 0; i < kNumAxes; ++i)
      if (term.axes & (1u << i))
        text += std::string(" ") + axisName(static_cast<Axis>(i));
    break;
  case TermKind::Slice:
    text = std::to_string(term.bytes) + " bytes at " +
           functions_.describe(args(id)[0]) + " of";
    break;
  case TermKind::Concat:
    text = "concat";
    break;
  case TermKind::Cast:
    text = EnumNameDType(term.dtype);
    break;
  }
  if (depth <= 0)
    return text + "(...)";
  text += "(";
  bool first = true;
  for (TermId input : inputs(id)) {
    text += (first ? "" : ", ") + describe(input, depth - 1);
    first = false;
  }
  text += ")";
  if (term.kind == TermKind::Kernel && term.numArgs) {
    text += " [";
    for (size_t i = 0; i < term.numArgs; ++i)
      text += (i ? "; " : "") + functions_.describe(args(id)[i]);
    text += "]";
  }
  if (term.numFloats) {
    char number[32];
    std::string list;
    for (double value : floats(id)) {
      std::snprintf(number, sizeof number, "%.17g", value);
      list += (list.empty() ? "" : ", ") + std::string(number);
    }
    text += " {" + list + "}";
  }
  return text;
}
