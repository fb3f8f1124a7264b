//===- Benders.h - assignment by Z3 with cuts from the cost model ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_ASSIGN_BENDERS_H
#define RECKON_PASSES_SEARCH_ASSIGN_BENDERS_H

#include "passes/search/assign/Frame.h"

namespace reckon::search {

/// Whether a rank's path hangs on nothing but its own layers, which is what
/// cuts are made of. Not so for one chunk a rank under 1F1B and GPipe.
bool hasCuts(const model::Choice &choice);

/// Logic-based Benders decomposition: Z3 (QF_FD) proposes how many layers every
/// virtual stage has, in any arrangement within the window; the cost model
/// answers with cuts, sets of stages that together have too many. Starts from
/// what is to be beaten and stops when Z3 has nothing left to propose, or after
/// AssignOptions::cuts.
///
/// Unlike solveProgram() it is free in how the chunks of a rank share its
/// layers.
Assigned solveBenders(Frame &frame);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_ASSIGN_BENDERS_H
