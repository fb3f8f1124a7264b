//===- Program.h - assignment as a dynamic program ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_ASSIGN_PROGRAM_H
#define RECKON_PASSES_SEARCH_ASSIGN_PROGRAM_H

#include "passes/search/assign/Frame.h"

namespace reckon::search {

/// Layers of the chunks of a rank that has `count` of them: as few as the
/// window allows, then one more on the later chunks, which hold fewer stashes
/// and follow each other in the layout, and on the head's last of all.
std::vector<int64_t> spreadOver(const Frame &frame, int64_t rank,
                                int64_t count);

/// Over ranks and the layers of those before them, the chunks of each by
/// spreadOver(): the longest path through the pipeline is minimised, then the
/// work of all.
Assigned solveProgram(Frame &frame);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_ASSIGN_PROGRAM_H
