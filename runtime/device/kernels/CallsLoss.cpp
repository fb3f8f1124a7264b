//===- CallsLoss.cpp - calls of loss, norm and optimizer kernels ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/CallCheck.h"
#include "runtime/device/kernels/Calls.h"

namespace reckon::device {

namespace {

/// args V, valid and, when `located`, vocab_offset; the logits.
CrossEntropyCall logits(CallCheck &check, bool located) {
  CrossEntropyCall c;
  c.v = check.arg(0, "V");
  c.valid = check.arg(1, "valid", 0);
  if (located)
    c.offset = check.arg(2, "vocab_offset", 0);
  check.require(c.valid <= c.v, "valid of at most V = " + std::to_string(c.v),
                std::to_string(c.valid));
  c.rows = check.rowsOfInput(0, "logits", c.v);
  c.dtype = check.storage(0, "logits");
  check.input(0, "logits", c.rows * c.v, c.dtype);
  return c;
}

} // namespace

Result<CrossEntropyCall> parseCrossEntropyMax(const KernelCall &call) {
  CallCheck check(Kernel::CrossEntropyMax, call);
  if (!check.ok())
    return check.error();
  CrossEntropyCall c = logits(check, false);
  check.output(0, "max", c.rows);
  return check.result(c);
}

Result<CrossEntropyCall> parseCrossEntropySum(const KernelCall &call) {
  CallCheck check(Kernel::CrossEntropySum, call);
  if (!check.ok())
    return check.error();
  CrossEntropyCall c = logits(check, true);
  check.input(1, "targets", c.rows, DType::I32);
  check.input(2, "max", c.rows);
  check.output(0, "sums", 2 * c.rows);
  return check.result(c);
}

Result<CrossEntropyCall> parseCrossEntropyGrad(const KernelCall &call) {
  CallCheck check(Kernel::CrossEntropyGrad, call);
  if (!check.ok())
    return check.error();
  CrossEntropyCall c = logits(check, true);
  c.scale = static_cast<float>(call.floats[0]);
  check.input(1, "targets", c.rows, DType::I32);
  check.input(2, "lse", c.rows);
  check.output(0, "dlogits", c.rows * c.v, c.dtype);
  return check.result(c);
}

Result<CrossEntropyLossCall> parseCrossEntropyLoss(const KernelCall &call) {
  CallCheck check(Kernel::CrossEntropyLoss, call);
  if (!check.ok())
    return check.error();
  CrossEntropyLossCall c;
  c.owner = check.flag(0, "OWNER");
  c.rows = check.rowsOfInput(0, "sums", 2);
  check.input(0, "sums", 2 * c.rows);
  check.input(1, "max", c.rows);
  check.output(0, "lse", c.rows);
  check.block(call.outputs[1], "metrics", metricSlots);
  return check.result(c);
}

Result<SumSquaresCall> parseSumSquares(const KernelCall &call) {
  CallCheck check(Kernel::SumSquares, call);
  if (!check.ok())
    return check.error();
  SumSquaresCall c;
  c.owner = check.flag(0, "OWNER");
  c.n = call.inputs[0].elements;
  check.input(0, "x", c.n);
  check.block(call.outputs[0], "metrics", metricSlots);
  return check.result(c);
}

Result<ClipFactorCall> parseClipFactor(const KernelCall &call) {
  CallCheck check(Kernel::ClipFactor, call);
  if (!check.ok())
    return check.error();
  check.block(call.outputs[0], "metrics", metricSlots);
  return check.result(ClipFactorCall{call.floats[0]});
}

Result<AdamwCall> parseAdamw(const KernelCall &call) {
  CallCheck check(Kernel::Adamw, call);
  if (!check.ok())
    return check.error();
  AdamwCall c;
  c.n = call.inputs[0].elements;
  check.input(0, "grad", c.n);
  check.block(call.inputs[1], "metrics", metricSlots);
  check.block(call.inputs[2], "scalars", scalarSlots);
  check.output(0, "main", c.n);
  check.output(1, "m", c.n);
  check.output(2, "v", c.n);
  c.cast = call.outputs.size() == 4;
  if (c.cast)
    check.output(3, "param", c.n, DType::BF16);
  c.beta1 = call.floats[0];
  c.beta2 = call.floats[1];
  c.eps = call.floats[2];
  c.decay = call.floats[3];
  return check.result(c);
}

} // namespace reckon::device
