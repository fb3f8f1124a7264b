//===- CallsFp8.cpp - checks of fp8 calls ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/base/Fp8Layout.h"
#include "runtime/device/kernels/CallCheck.h"
#include "runtime/device/kernels/Calls.h"

namespace reckon::device {

Result<AmaxCall> parseAmax(const KernelCall &call) {
  CallCheck check(Kernel::Amax, call);
  if (!check.ok())
    return check.error();
  AmaxCall parsed{.n = call.inputs[0].elements};
  check.input(0, "x", parsed.n, DType::BF16);
  check.output(0, "amax", 1);
  return check.result(parsed);
}

Result<CastFp8Call> parseCastFp8(const KernelCall &call) {
  CallCheck check(Kernel::CastFp8, call);
  if (!check.ok())
    return check.error();
  CastFp8Call parsed;
  parsed.rows = check.arg(0, "R");
  parsed.columns = check.arg(1, "C");
  parsed.codes = check.flag(2, "FORMAT") ? DType::F8E5M2 : DType::F8E4M3;
  int64_t layout = check.arg(3, "LAYOUT");
  check.require(layout <= 3, "argument LAYOUT of at most 3",
                std::to_string(layout));
  parsed.straight = (layout & 1) != 0;
  parsed.transposed = (layout & 2) != 0;
  check.require(call.outputs.size() == (layout == 3 ? 3u : 2u),
                layout == 3 ? "3 outputs" : "2 outputs",
                std::to_string(call.outputs.size()));
  check.input(0, "x", parsed.rows * parsed.columns, DType::BF16);
  check.input(1, "amax", 1);
  check.output(0, "scale", 1);
  int64_t elements = fp8Codes(parsed.rows, parsed.columns);
  if (check.ok())
    for (size_t i = 1; i < call.outputs.size(); ++i)
      check.output(static_cast<int>(i), "codes", elements, parsed.codes);
  return check.result(parsed);
}

Result<LinearFp8Call> parseLinearFp8(const KernelCall &call) {
  CallCheck check(Kernel::LinearFp8, call);
  if (!check.ok())
    return check.error();
  LinearFp8Call parsed;
  parsed.m = check.arg(0, "M");
  parsed.n = check.arg(1, "N");
  parsed.k = check.arg(2, "K");
  parsed.accumulate = check.flag(3, "ACC");
  parsed.a = call.inputs[0].dtype;
  parsed.b = call.inputs[2].dtype;
  parsed.to = call.outputs[0].dtype;
  for (DType codes : {parsed.a, parsed.b})
    check.require(codes == DType::F8E4M3 || codes == DType::F8E5M2,
                  "codes of f8e4m3 or f8e5m2", std::string(dtypeName(codes)));
  check.require(parsed.to == DType::F32 ||
                    (parsed.to == DType::BF16 && !parsed.accumulate),
                "y of f32, or of bf16 with ACC 0",
                std::string(dtypeName(parsed.to)) + " with ACC " +
                    std::to_string(parsed.accumulate));
  check.input(0, "a", fp8Codes(parsed.m, parsed.k), parsed.a);
  check.input(1, "sa", 1);
  check.input(2, "b", fp8Codes(parsed.n, parsed.k), parsed.b);
  check.input(3, "sb", 1);
  check.output(0, "y", parsed.m * parsed.n, parsed.to);
  return check.result(parsed);
}

} // namespace reckon::device
