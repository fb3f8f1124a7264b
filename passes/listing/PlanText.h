//===- PlanText.h - parts of a plan as text -------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// How every view of a plan spells a value, a place and an operand.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_LISTING_PLANTEXT_H
#define RECKON_PASSES_LISTING_PLANTEXT_H

#include "runtime/plan/Coordinates.h"

#include <memory>
#include <optional>
#include <string>

namespace reckon::listing {

/// `4096`, `0 + 128*tp`, `dp is 0 ? 1 : 0`; with a coordinate its number.
std::string exprText(const std::unique_ptr<plan::ExprT> &value,
                     const std::optional<plan::Coord> &coord = {});

/// Where a buffer lies, without its offset: the name of the state, of the
/// fragment's slot or of the lane. Without a fragment a slot has its number
/// among the action's.
std::string regionText(const plan::StagePlanT &plan,
                       const plan::BufferT &buffer,
                       const plan::FragmentT *fragment);

/// The same with its offset in bytes unless that is 0: `stash+65536`.
std::string placeText(const plan::StagePlanT &plan, const plan::BufferT &buffer,
                      const plan::FragmentT *fragment,
                      const std::optional<plan::Coord> &coord = {});

/// The shortest text that reads back as the same double, at most nine digits.
std::string numberText(double value);

/// 1536 -> "1.50 KiB".
std::string humanBytes(uint64_t bytes);

/// Bytes of a buffer's elements.
uint64_t bufferBytes(const plan::BufferT &buffer);

/// Whether the opcode is a collective over a group.
bool isCollective(plan::Opcode op);

/// How many ranks a group has on a mesh.
int64_t groupSize(const plan::GroupT &group, const plan::MeshT &mesh);

} // namespace reckon::listing

#endif // RECKON_PASSES_LISTING_PLANTEXT_H
