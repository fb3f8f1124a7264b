//===- CallsModel.cpp - calls of linear, rotary and attention kernels -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/CallCheck.h"
#include "runtime/device/kernels/Calls.h"

namespace reckon::device {

namespace {

/// args Hq, Hkv, D, S.
AttentionCall heads(CallCheck &check) {
  AttentionCall c;
  c.hq = check.arg(0, "Hq");
  c.hkv = check.arg(1, "Hkv");
  c.d = check.arg(2, "D");
  c.s = check.arg(3, "S");
  check.require(c.hkv >= 1 && c.hq % c.hkv == 0, "Hq to be a multiple of Hkv",
                std::to_string(c.hq) + " and " + std::to_string(c.hkv));
  return c;
}

} // namespace

Result<LinearCall> parseLinear(const KernelCall &call) {
  CallCheck check(Kernel::Linear, call);
  if (!check.ok())
    return check.error();
  LinearCall c;
  c.n = check.arg(0, "N");
  c.k = check.arg(1, "K");
  c.rows = check.rowsOfInput(0, "x", c.k);
  c.dtype = check.storage(0, "x");
  check.input(0, "x", c.rows * c.k, c.dtype);
  check.input(1, "w", c.n * c.k, c.dtype);
  check.output(0, "y", c.rows * c.n, c.dtype);
  return check.result(c);
}

Result<LinearCall> parseLinearGradInput(const KernelCall &call) {
  CallCheck check(Kernel::LinearGradInput, call);
  if (!check.ok())
    return check.error();
  LinearCall c;
  c.n = check.arg(0, "N");
  c.k = check.arg(1, "K");
  c.rows = check.rowsOfInput(0, "dy", c.n);
  c.dtype = check.storage(0, "dy");
  check.input(0, "dy", c.rows * c.n, c.dtype);
  check.input(1, "w", c.n * c.k, c.dtype);
  check.output(0, "dx", c.rows * c.k, c.dtype);
  return check.result(c);
}

Result<LinearCall> parseLinearGradWeight(const KernelCall &call) {
  CallCheck check(Kernel::LinearGradWeight, call);
  if (!check.ok())
    return check.error();
  LinearCall c;
  c.n = check.arg(0, "N");
  c.k = check.arg(1, "K");
  c.accumulate = check.flag(2, "ACC");
  c.rows = check.rowsOfInput(0, "dy", c.n);
  c.dtype = check.storage(0, "dy");
  check.input(0, "dy", c.rows * c.n, c.dtype);
  check.input(1, "x", c.rows * c.k, c.dtype);
  check.output(0, "gw", c.n * c.k);
  return check.result(c);
}

Result<RopeCall> parseRope(const KernelCall &call) {
  CallCheck check(Kernel::Rope, call);
  if (!check.ok())
    return check.error();
  RopeCall c;
  c.heads = check.arg(0, "heads");
  c.d = check.arg(1, "D");
  c.s = check.arg(2, "S");
  c.inverse = check.flag(3, "inverse");
  check.require(c.d % 2 == 0, "an even D", std::to_string(c.d));
  c.rows = check.rowsOfInput(0, "x", c.heads * c.d);
  c.dtype = check.storage(0, "x");
  check.input(0, "x", c.rows * c.heads * c.d, c.dtype);
  check.input(1, "table", c.s * c.d);
  check.output(0, "y", c.rows * c.heads * c.d, c.dtype);
  if (check.ok()) // else S may be 0
    check.require(c.rows % c.s == 0,
                  "tokens in whole sequences of " + std::to_string(c.s),
                  std::to_string(c.rows));
  return check.result(c);
}

Result<AttentionCall> parseAttention(const KernelCall &call) {
  CallCheck check(Kernel::Attention, call);
  if (!check.ok())
    return check.error();
  AttentionCall c = heads(check);
  c.batch = check.rowsOfInput(0, "q", c.s * c.hq * c.d);
  c.dtype = check.storage(0, "q");
  int64_t queries = c.batch * c.s * c.hq * c.d;
  int64_t keys = c.batch * c.s * c.hkv * c.d;
  check.input(0, "q", queries, c.dtype);
  check.input(1, "k", keys, c.dtype);
  check.input(2, "v", keys, c.dtype);
  check.output(0, "o", queries, c.dtype);
  check.output(1, "lse", c.batch * c.hq * c.s);
  return check.result(c);
}

Result<AttentionCall> parseAttentionGrad(const KernelCall &call) {
  CallCheck check(Kernel::AttentionGrad, call);
  if (!check.ok())
    return check.error();
  AttentionCall c = heads(check);
  c.batch = check.rowsOfInput(0, "do", c.s * c.hq * c.d);
  c.dtype = check.storage(0, "do");
  int64_t queries = c.batch * c.s * c.hq * c.d;
  int64_t keys = c.batch * c.s * c.hkv * c.d;
  check.input(0, "do", queries, c.dtype);
  check.input(1, "q", queries, c.dtype);
  check.input(2, "k", keys, c.dtype);
  check.input(3, "v", keys, c.dtype);
  check.input(4, "o", queries, c.dtype);
  check.input(5, "lse", c.batch * c.hq * c.s);
  check.output(0, "dq", queries, c.dtype);
  check.output(1, "dk", keys, c.dtype);
  check.output(2, "dv", keys, c.dtype);
  check.output(3, "delta", c.batch * c.hq * c.s);
  return check.result(c);
}

} // namespace reckon::device
