//===- CudaCalls.cpp - an instruction as the CUDA call that it becomes ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/listing/CudaCalls.h"

#include "passes/listing/PlanText.h"
#include "runtime/base/Fp8Layout.h"

#include <map>

using namespace reckon;
using namespace reckon::listing;
using namespace reckon::plan;

const KernelNames &listing::kernelNames(Kernel kernel) {
  static const std::map<Kernel, KernelNames> names = {
      {Kernel::embedding, {{"V", "H", "vocab_offset"}, {}}},
      {Kernel::embedding_grad, {{"V", "H", "vocab_offset", "acc"}, {}}},
      {Kernel::rms_norm, {{"H"}, {"eps"}}},
      {Kernel::rms_norm_grad_input, {{"H"}, {"eps"}}},
      {Kernel::rms_norm_grad_weight, {{"H", "acc"}, {"eps"}}},
      {Kernel::layer_norm, {{"H"}, {"eps"}}},
      {Kernel::layer_norm_grad_input, {{"H"}, {"eps"}}},
      {Kernel::layer_norm_grad_weight, {{"H", "acc"}, {"eps"}}},
      {Kernel::gelu, {{"F"}, {}}},
      {Kernel::gelu_grad, {{"F"}, {}}},
      {Kernel::linear, {{"N", "K"}, {}}},
      {Kernel::linear_grad_input, {{"N", "K"}, {}}},
      {Kernel::linear_grad_weight, {{"N", "K", "acc"}, {}}},
      {Kernel::rope, {{"heads", "D", "S", "inverse"}, {}}},
      {Kernel::attention, {{"Hq", "Hkv", "D", "S"}, {}}},
      {Kernel::attention_grad, {{"Hq", "Hkv", "D", "S"}, {}}},
      {Kernel::swiglu, {{"F"}, {}}},
      {Kernel::swiglu_grad, {{"F"}, {}}},
      {Kernel::cross_entropy_max, {{"V", "valid"}, {}}},
      {Kernel::cross_entropy_sum, {{"V", "valid", "vocab_offset"}, {}}},
      {Kernel::cross_entropy_loss, {{"owner"}, {}}},
      {Kernel::cross_entropy_grad, {{"V", "valid", "vocab_offset"}, {"scale"}}},
      {Kernel::sum_squares, {{"owner"}, {}}},
      {Kernel::clip_factor, {{}, {"clip"}}},
      {Kernel::adamw, {{}, {"beta1", "beta2", "eps", "weight_decay"}}},
      {Kernel::cast_fp8, {{"R", "C", "format", "layout"}, {}}},
      {Kernel::linear_fp8, {{"M", "N", "K", "acc"}, {}}},
  };
  static const KernelNames none;
  auto it = names.find(kernel);
  return it == names.end() ? none : it->second;
}

const char *listing::ncclType(DType type) {
  switch (type) {
  case DType::f32:
    return "ncclFloat32";
  case DType::bf16:
    return "ncclBfloat16";
  case DType::f16:
    return "ncclFloat16";
  case DType::f64:
    return "ncclFloat64";
  case DType::i32:
    return "ncclInt32";
  case DType::i64:
    return "ncclInt64";
  case DType::u8:
    return "ncclUint8";
  case DType::f8e4m3:
  case DType::f8e5m2:
    break; // never between ranks
  }
  return "?";
}

const char *listing::ncclReduction(Reduction reduction) {
  return reduction == Reduction::max ? "ncclMax" : "ncclSum";
}

std::string listing::operandText(const StagePlanT &plan, const BufferT &buffer,
                                 const FragmentT *fragment) {
  std::string text = placeText(plan, buffer, fragment) + " " +
                     EnumNameDType(buffer.dtype) + "[";
  for (size_t i = 0; i < buffer.shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(buffer.shape[i]);
  return text + "]";
}

namespace {

class Call {
public:
  Call(const StagePlanT &plan, const FragmentT &fragment,
       const InstructionT &op)
      : plan_(plan), fragment_(fragment), op_(op),
        stream_(plan.streams[op.stream]->name) {}

  std::vector<std::string> lines() const {
    std::string event = "e" + std::to_string(op_.event);
    switch (op_.op) {
    case Opcode::record:
      return {"cudaEventRecord(" + event + ", " + stream_ + ")"};
    case Opcode::wait:
      return {"cudaStreamWaitEvent(" + stream_ + ", " + event + ")"};
    case Opcode::copy:
      return {copy()};
    case Opcode::launch:
      return {launch()};
    case Opcode::all_reduce:
    case Opcode::all_gather:
    case Opcode::reduce_scatter:
      return collective();
    }
    return {std::string("unknown ") + EnumNameOpcode(op_.op)};
  }

private:
  std::string operand(const BufferT &buffer) const {
    return operandText(plan_, buffer, &fragment_);
  }

  std::string list(const std::vector<std::unique_ptr<BufferT>> &all) const {
    std::string text;
    for (const auto &buffer : all)
      text += (text.empty() ? "" : ", ") + operand(*buffer);
    return text;
  }

  /// `inputs -> outputs`.
  std::string operands() const {
    std::string in = list(op_.inputs), out = list(op_.outputs);
    return in + (in.empty() || out.empty() ? "" : " ") +
           (out.empty() ? "" : "-> " + out);
  }

  std::string constants() const {
    const KernelNames &names = kernelNames(op_.kernel);
    std::string text;
    auto add = [&](const std::vector<const char *> &known, size_t i,
                   const std::string &value) {
      std::string name =
          i < known.size() ? known[i] : "arg" + std::to_string(i);
      text += (text.empty() ? "" : ", ") + name + "=" + value;
    };
    for (size_t i = 0; i < op_.args.size(); ++i)
      add(names.args, i, exprText(op_.args[i]));
    for (size_t i = 0; i < op_.floats.size(); ++i)
      add(names.floats, i, numberText(op_.floats[i]));
    return text;
  }

  std::string copy() const {
    return "cudaMemcpyAsync(" + operand(*op_.outputs[0]) + ", " +
           operand(*op_.inputs[0]) + ", " +
           std::to_string(bufferBytes(*op_.inputs[0])) +
           ", cudaMemcpyDeviceToDevice, " + stream_ + ")";
  }

  static std::string withConstants(const std::string &operands,
                                   const std::string &constants) {
    return operands + (constants.empty() ? "" : "; " + constants);
  }

  /// Rows of a product's operand with `columns` columns.
  static std::string rows(const BufferT &buffer, int64_t columns) {
    int64_t elements = elementCount(buffer.shape);
    return std::to_string(columns > 0 ? elements / columns : elements);
  }

  /// m, n and k of the row-major product that the kernel is, T being the local
  /// tokens: y[T,N] = x[T,K] w', dx[T,K] = dy[T,N] w, gw[N,K] = dy' x.
  std::string matmul() const {
    // Sizes are those of the first rank: the plan's shapes are all ranks'.
    Coord origin;
    origin.pp = plan_.stage;
    std::string n = std::to_string(evalExpr(op_.args[0], origin)),
                k = std::to_string(evalExpr(op_.args[1], origin));
    bool forward = op_.kernel == Kernel::linear;
    std::string tokens =
        rows(*op_.inputs[0], evalExpr(op_.args[forward ? 1 : 0], origin));
    std::string product, m, columns, depth, beta = "0";
    if (forward) {
      product = "A B^T", m = tokens, columns = n, depth = k;
    } else if (op_.kernel == Kernel::linear_grad_input) {
      product = "A B", m = tokens, columns = k, depth = n;
    } else {
      product = "A^T B", m = n, columns = k, depth = tokens;
      beta = exprText(op_.args[2]);
    }
    return "cublasLtMatmul(" + operands() + "; " + product + ", m=" + m +
           ", n=" + columns + ", k=" + depth + ", beta=" + beta +
           ", CUBLAS_COMPUTE_32F, " + stream_ + ")";
  }

  /// y[M,N] = sa sb a b' of codes, whose summed dimension is padded.
  std::string matmulFp8() const {
    Coord origin;
    origin.pp = plan_.stage;
    auto size = [&](size_t i) { return evalExpr(op_.args[i], origin); };
    return "cublasLtMatmul(" + operands() +
           "; A B^T, m=" + std::to_string(size(0)) +
           ", n=" + std::to_string(size(1)) +
           ", k=" + std::to_string(fp8Padded(size(2))) +
           ", beta=" + exprText(op_.args[3]) + ", CUBLAS_COMPUTE_32F, " +
           stream_ + ")";
  }

  std::string launch() const {
    std::string text = withConstants(operands(), constants());
    switch (op_.kernel) {
    case Kernel::copy:
      return copy();
    case Kernel::fill_zero:
      return "cudaMemsetAsync(" + operand(*op_.outputs[0]) + ", 0, " +
             std::to_string(bufferBytes(*op_.outputs[0])) + ", " + stream_ +
             ")";
    case Kernel::linear:
    case Kernel::linear_grad_input:
    case Kernel::linear_grad_weight:
      return matmul();
    case Kernel::linear_fp8:
      return matmulFp8();
    case Kernel::attention:
    case Kernel::attention_grad:
      if (op_.inputs[0]->dtype == DType::bf16)
        return std::string("cudnnBackendExecute<") +
               (op_.kernel == Kernel::attention ? "sdpa" : "sdpa_backward") +
               ">(" + text + ", " + stream_ + ")";
      break;
    default:
      break;
    }
    return std::string(EnumNameKernel(op_.kernel)) + "<<<" + stream_ + ">>>(" +
           text + ")";
  }

  std::string segment(size_t i) const {
    // NCCL counts what a rank gives to a gather and what it gets from a
    // scatter.
    const BufferT &in = *op_.inputs[i], &out = *op_.outputs[i];
    const BufferT &counted = op_.op == Opcode::reduce_scatter ? out : in;
    return placeText(plan_, in, &fragment_) + " -> " +
           placeText(plan_, out, &fragment_) + ", " +
           std::to_string(elementCount(counted.shape));
  }

  std::vector<std::string> collective() const {
    std::string name = op_.op == Opcode::all_reduce   ? "ncclAllReduce"
                       : op_.op == Opcode::all_gather ? "ncclAllGather"
                                                      : "ncclReduceScatter";
    std::string tail = std::string(", ") + ncclType(op_.inputs[0]->dtype);
    if (op_.op != Opcode::all_gather)
      tail += std::string(", ") + ncclReduction(op_.reduction);
    tail += ", " + plan_.groups[op_.group]->name + ", " + stream_ + ")";
    size_t count = op_.inputs.size();
    if (count == 1)
      return {name + "(" + segment(0) + tail};
    std::vector<std::string> lines = {"ncclGroup of " + std::to_string(count) +
                                      " " + name + "(..." + tail};
    for (size_t i = 0; i < count; ++i)
      lines.push_back(segment(i));
    return lines;
  }

  const StagePlanT &plan_;
  const FragmentT &fragment_;
  const InstructionT &op_;
  const std::string &stream_;
};

} // namespace

std::vector<std::string> listing::cudaCall(const StagePlanT &plan,
                                           const FragmentT &fragment,
                                           const InstructionT &op) {
  return Call(plan, fragment, op).lines();
}
