//===- reckon-show-against.h - what differs between two plans -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_RECKON_SHOW_AGAINST_H
#define RECKON_FRONTENDS_TOOLS_RECKON_SHOW_AGAINST_H

#include "frontends/tools/reckon-show-views.h"

namespace reckon::show {

/// The facts that differ between two plan directories, or between the choices
/// of two reports of `reckon plan --format json`, as a table or as JSON. One of
/// each is BadSpec.
Result<std::string> against(const std::string &a, const std::string &b,
                            bool asJson);

} // namespace reckon::show

#endif // RECKON_FRONTENDS_TOOLS_RECKON_SHOW_AGAINST_H
