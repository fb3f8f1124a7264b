//===- KernelTable.cpp - operand counts of every kernel -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan/KernelTable.h"

#include "runtime/base/Fp8Layout.h"

#include "llvm/ADT/StringSwitch.h"

using namespace reckon::planir;

// clang-format off
static constexpr KernelSignature table[] = {
    // name                 ins outs optional args floats
    {"fill_zero",             0, 1, 0, 0, 0},
    {"copy",                  1, 1, 0, 0, 0},
    {"add",                   2, 1, 0, 0, 0},
    {"embedding",             2, 1, 0, 3, 0},
    {"embedding_grad",        2, 1, 0, 4, 0},
    {"rms_norm",              2, 1, 0, 1, 1},
    {"rms_norm_grad_input",   3, 1, 0, 1, 1},
    {"rms_norm_grad_weight",  2, 1, 0, 2, 1},
    {"linear",                2, 1, 0, 2, 0},
    {"linear_grad_input",     2, 1, 0, 2, 0},
    {"linear_grad_weight",    2, 1, 0, 3, 0},
    {"rope",                  2, 1, 0, 4, 0},
    {"attention",             3, 2, 0, 4, 0},
    {"attention_grad",        6, 4, 0, 4, 0},
    {"swiglu",                2, 1, 0, 1, 0},
    {"swiglu_grad",           3, 2, 0, 1, 0},
    {"cross_entropy_max",     1, 1, 0, 2, 0},
    {"cross_entropy_sum",     3, 1, 0, 3, 0},
    {"cross_entropy_loss",    2, 2, 0, 1, 0},
    {"cross_entropy_grad",    3, 1, 0, 3, 1},
    {"sum_squares",           1, 1, 0, 1, 0},
    {"clip_factor",           0, 1, 0, 0, 1},
    {"adamw",                 3, 3, 1, 0, 4},
    {"amax",                  1, 1, 0, 0, 0},
    {"cast_fp8",              2, 2, 1, 4, 0},
    {"linear_fp8",            4, 1, 0, 4, 0},
    {"layer_norm",            3, 1, 0, 1, 1},
    {"layer_norm_grad_input", 3, 1, 0, 1, 1},
    {"layer_norm_grad_weight",2, 2, 0, 2, 1},
    {"gelu",                  1, 1, 0, 1, 0},
    {"gelu_grad",             2, 1, 0, 1, 0},
};
// clang-format on

llvm::ArrayRef<KernelSignature> reckon::planir::kernelTable() { return table; }

const KernelSignature *reckon::planir::findKernel(llvm::StringRef name) {
  for (const KernelSignature &kernel : table)
    if (name == kernel.name)
      return &kernel;
  return nullptr;
}

namespace {

/// Collects the first disagreement.
class Checker {
public:
  Checker(const KernelCallShape &call) : call(call) {}

  void in(unsigned index, const char *what, int64_t expected) {
    check("in", index, what, call.ins[index], expected);
  }
  void out(unsigned index, const char *what, int64_t expected) {
    check("out", index, what, call.outs[index], expected);
  }
  void require(bool condition, const char *what) {
    if (message.empty() && !condition)
      message = what;
  }
  std::string message;

private:
  void check(const char *side, unsigned index, const char *what, int64_t got,
             int64_t expected) {
    if (message.empty() && got != expected)
      message = std::string(side) + " " + std::to_string(index) + " has " +
                std::to_string(got) + " elements, expected " + what + " = " +
                std::to_string(expected);
  }
  const KernelCallShape &call;
};

int64_t ceilDiv(int64_t a, int64_t b) { return b > 0 ? (a + b - 1) / b : 0; }

} // namespace

std::string reckon::planir::checkKernelSizes(const KernelSignature &kernel,
                                             const KernelCallShape &call) {
  llvm::StringRef name = kernel.name;
  auto arg = [&](unsigned i) { return call.args[i]; };
  Checker c(call);
  // Everything that divides below must be positive.
  unsigned sizes =
      llvm::StringSwitch<unsigned>(name)
          .Cases({"linear", "linear_grad_input", "linear_grad_weight",
                  "embedding", "embedding_grad", "cross_entropy_max",
                  "cross_entropy_sum", "cross_entropy_grad"},
                 2)
          .Cases({"rms_norm", "rms_norm_grad_input", "rms_norm_grad_weight",
                  "layer_norm", "layer_norm_grad_input",
                  "layer_norm_grad_weight", "swiglu", "swiglu_grad", "gelu",
                  "gelu_grad"},
                 1)
          .Case("cast_fp8", 2)
          .Cases({"rope", "linear_fp8"}, 3)
          .Cases({"attention", "attention_grad"}, 4)
          .Default(0);
  for (unsigned i = 0; i < sizes; ++i)
    if (arg(i) <= 0)
      return "argument " + std::to_string(i) + " is " + std::to_string(arg(i)) +
             ", expected a positive size";

  if (name == "copy") {
    c.out(0, "that of the input", call.ins[0]);
  } else if (name == "add") {
    c.in(1, "that of in 0", call.ins[0]);
    c.out(0, "that of in 0", call.ins[0]);
  } else if (name == "embedding") {
    c.in(1, "V * H", arg(0) * arg(1));
    c.out(0, "tokens * H", call.ins[0] * arg(1));
  } else if (name == "embedding_grad") {
    c.in(0, "tokens * H", call.ins[1] * arg(1));
    c.out(0, "V * H", arg(0) * arg(1));
  } else if (name.starts_with("rms_norm")) {
    c.require(call.ins[0] % arg(0) == 0, "in 0 is not a whole number of rows");
    if (name == "rms_norm") {
      c.in(1, "H", arg(0));
      c.out(0, "that of in 0", call.ins[0]);
    } else {
      c.in(1, "that of in 0", call.ins[0]);
      if (name == "rms_norm_grad_input")
        c.in(2, "H", arg(0));
      c.out(0, name == "rms_norm_grad_input" ? "that of in 0" : "H",
            name == "rms_norm_grad_input" ? call.ins[0] : arg(0));
    }
  } else if (name == "linear") {
    int64_t rows = ceilDiv(call.ins[0], arg(1));
    c.in(0, "rows * K", rows * arg(1));
    c.in(1, "N * K", arg(0) * arg(1));
    c.out(0, "rows * N", rows * arg(0));
  } else if (name == "linear_grad_input") {
    int64_t rows = ceilDiv(call.ins[0], arg(0));
    c.in(0, "rows * N", rows * arg(0));
    c.in(1, "N * K", arg(0) * arg(1));
    c.out(0, "rows * K", rows * arg(1));
  } else if (name == "linear_grad_weight") {
    int64_t rows = ceilDiv(call.ins[0], arg(0));
    c.in(0, "rows * N", rows * arg(0));
    c.in(1, "rows * K", rows * arg(1));
    c.out(0, "N * K", arg(0) * arg(1));
  } else if (name == "rope") {
    c.require(call.ins[0] % (arg(0) * arg(1)) == 0,
              "in 0 is not a whole number of rows");
    c.in(1, "S * D", arg(2) * arg(1));
    c.out(0, "that of in 0", call.ins[0]);
  } else if (name == "attention" || name == "attention_grad") {
    bool grad = name == "attention_grad";
    int64_t heads = arg(0), kv = arg(1), d = arg(2), s = arg(3);
    unsigned q = grad ? 1 : 0;
    c.require(heads % kv == 0, "query heads are no multiple of kv heads");
    int64_t rows = ceilDiv(call.ins[q], heads * d);
    c.require(rows % s == 0, "the rows are not whole sequences");
    c.in(q, "rows * Hq * D", rows * heads * d);
    c.in(q + 1, "rows * Hkv * D", rows * kv * d);
    c.in(q + 2, "rows * Hkv * D", rows * kv * d);
    if (grad) {
      c.in(0, "rows * Hq * D", rows * heads * d);
      c.in(4, "rows * Hq * D", rows * heads * d);
      c.in(5, "rows * Hq", rows * heads);
      c.out(0, "rows * Hq * D", rows * heads * d);
      c.out(1, "rows * Hkv * D", rows * kv * d);
      c.out(2, "rows * Hkv * D", rows * kv * d);
      c.out(3, "rows * Hq", rows * heads);
    } else {
      c.out(0, "rows * Hq * D", rows * heads * d);
      c.out(1, "rows * Hq", rows * heads);
    }
  } else if (name.starts_with("layer_norm")) {
    c.require(call.ins[0] % arg(0) == 0, "in 0 is not a whole number of rows");
    bool forward = name == "layer_norm";
    if (!forward)
      c.in(1, "that of in 0", call.ins[0]);
    for (unsigned i = forward ? 1 : 2; i < call.ins.size(); ++i)
      c.in(i, "H", arg(0));
    bool weights = name == "layer_norm_grad_weight";
    for (unsigned i = 0; i < call.outs.size(); ++i)
      c.out(i, weights ? "H" : "that of in 0", weights ? arg(0) : call.ins[0]);
  } else if (name.starts_with("swiglu") || name.starts_with("gelu")) {
    for (unsigned i = 1; i < call.ins.size(); ++i)
      c.in(i, "that of in 0", call.ins[0]);
    for (unsigned i = 0; i < call.outs.size(); ++i)
      c.out(i, "that of in 0", call.ins[0]);
    c.require(call.ins[0] % arg(0) == 0, "in 0 is not a whole number of rows");
  } else if (name.starts_with("cross_entropy") &&
             name != "cross_entropy_loss") {
    int64_t rows = call.ins[0] / arg(0);
    c.require(call.ins[0] % arg(0) == 0,
              "the logits are not a whole number of rows");
    c.require(arg(1) <= arg(0), "more valid columns than columns");
    if (name == "cross_entropy_max") {
      c.out(0, "rows", rows);
    } else {
      c.in(1, "rows", rows);
      c.in(2, "rows", rows);
      c.out(0, name == "cross_entropy_sum" ? "2 * rows" : "rows * V",
            name == "cross_entropy_sum" ? 2 * rows : call.ins[0]);
    }
  } else if (name == "cross_entropy_loss") {
    c.in(0, "2 * rows", 2 * call.ins[1]);
    c.out(0, "rows", call.ins[1]);
  } else if (name == "adamw") {
    for (unsigned i = 0; i < call.outs.size(); ++i)
      c.out(i, "that of the gradient", call.ins[0]);
  } else if (name == "amax") {
    c.out(0, "one maximum", 1);
  } else if (name == "cast_fp8") {
    c.require(arg(2) == 0 || arg(2) == 1, "the format is neither 0 nor 1");
    c.require(arg(3) >= 1 && arg(3) <= 3, "the layout is not 1, 2 or 3");
    c.require((call.outs.size() == 3) == (arg(3) == 3),
              "two matrices of codes go with layout 3, one with 1 or 2");
    c.in(0, "R * C", arg(0) * arg(1));
    c.in(1, "one maximum", 1);
    c.out(0, "one scale", 1);
    for (unsigned i = 1; i < call.outs.size(); ++i)
      c.out(i, "padded R * padded C", reckon::fp8Codes(arg(0), arg(1)));
  } else if (name == "linear_fp8") {
    c.in(0, "padded M * padded K", reckon::fp8Codes(arg(0), arg(2)));
    c.in(1, "one scale", 1);
    c.in(2, "padded N * padded K", reckon::fp8Codes(arg(1), arg(2)));
    c.in(3, "one scale", 1);
    c.out(0, "M * N", arg(0) * arg(1));
  }
  return c.message;
}

int64_t reckon::planir::kernelFlops(const KernelSignature &kernel,
                                    const KernelCallShape &call) {
  llvm::StringRef name = kernel.name;
  if (name == "linear" || name == "linear_grad_weight")
    // rows * K or rows * N elements, times the other dimension.
    return 2 * call.ins[0] * (name == "linear" ? call.args[0] : call.args[1]);
  if (name == "linear_grad_input")
    return 2 * call.ins[0] * call.args[1];
  if (name == "linear_fp8")
    return 2 * call.args[0] * call.args[1] * call.args[2];
  if (name == "attention") // two products of S * S / 2 per sequence and head
    return 2 * call.ins[0] * call.args[3];
  if (name == "attention_grad") // five
    return 5 * call.ins[0] * call.args[3];
  return 0;
}
