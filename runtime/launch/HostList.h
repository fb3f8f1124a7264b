//===- HostList.h - Slurm's compressed lists ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// scontrol, which also expands them, may be missing on compute nodes.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_LAUNCH_HOSTLIST_H
#define RECKON_RUNTIME_LAUNCH_HOSTLIST_H

#include "runtime/base/Status.h"

#include <string_view>
#include <vector>

namespace reckon {

/// "gpu[001-003,007],h1" to gpu001, gpu002, gpu003, gpu007, h1. Any number of
/// brackets a name. BadSpec when the list is malformed or longer than 1 << 20.
Result<std::vector<std::string>> expandHostList(std::string_view list);

/// "2(x4),1" to 2, 2, 2, 2, 1: tasks of each node.
Result<std::vector<int>> expandTaskCounts(std::string_view list);

} // namespace reckon

#endif // RECKON_RUNTIME_LAUNCH_HOSTLIST_H
