//===- Kernels.cpp - names and signatures of the kernels ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/Kernels.h"

namespace reckon::device {

namespace {

struct DTypeInfo {
  std::string_view name;
  int64_t bytes;
};

constexpr DTypeInfo dtypes[] = {{"f32", 4}, {"bf16", 2},   {"f16", 2},
                                {"f64", 8}, {"i32", 4},    {"i64", 8},
                                {"u8", 1},  {"f8e4m3", 1}, {"f8e5m2", 1}};

// name, inputs, outputs, optional outputs, args, floats
constexpr KernelSignature signatures[kernelCount] = {
    {"none", 0, 0, 0, 0, 0},
    {"fill_zero", 0, 1, 0, 0, 0},
    {"copy", 1, 1, 0, 0, 0},
    {"add", 2, 1, 0, 0, 0},
    {"embedding", 2, 1, 0, 3, 0},
    {"embedding_grad", 2, 1, 0, 4, 0},
    {"rms_norm", 2, 1, 0, 1, 1},
    {"rms_norm_grad_input", 3, 1, 0, 1, 1},
    {"rms_norm_grad_weight", 2, 1, 0, 2, 1},
    {"linear", 2, 1, 0, 2, 0},
    {"linear_grad_input", 2, 1, 0, 2, 0},
    {"linear_grad_weight", 2, 1, 0, 3, 0},
    {"rope", 2, 1, 0, 4, 0},
    {"attention", 3, 2, 0, 4, 0},
    {"attention_grad", 6, 4, 0, 4, 0},
    {"swiglu", 2, 1, 0, 1, 0},
    {"swiglu_grad", 3, 2, 0, 1, 0},
    {"cross_entropy_max", 1, 1, 0, 2, 0},
    {"cross_entropy_sum", 3, 1, 0, 3, 0},
    {"cross_entropy_loss", 2, 2, 0, 1, 0},
    {"cross_entropy_grad", 3, 1, 0, 3, 1},
    {"sum_squares", 1, 1, 0, 1, 0},
    {"clip_factor", 0, 1, 0, 0, 1},
    {"adamw", 3, 3, 1, 0, 4},
    {"amax", 1, 1, 0, 0, 0},
    {"cast_fp8", 2, 2, 1, 4, 0},
    {"linear_fp8", 4, 1, 0, 4, 0},
    {"layer_norm", 3, 1, 0, 1, 1},
    {"layer_norm_grad_input", 3, 1, 0, 1, 1},
    {"layer_norm_grad_weight", 2, 2, 0, 2, 1},
    {"gelu", 1, 1, 0, 1, 0},
    {"gelu_grad", 2, 1, 0, 1, 0},
};

} // namespace

int64_t dtypeBytes(DType dtype) {
  return dtypes[static_cast<int>(dtype)].bytes;
}

std::string_view dtypeName(DType dtype) {
  return dtypes[static_cast<int>(dtype)].name;
}

const KernelSignature *kernelSignature(Kernel kernel) {
  int id = static_cast<int>(kernel);
  return id > 0 && id < kernelCount ? &signatures[id] : nullptr;
}

} // namespace reckon::device
