//===- CallCheck.cpp - a kernel call against its conventions --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/CallCheck.h"

namespace reckon::device {

CallCheck::CallCheck(Kernel kernel, const KernelCall &call) : call_(call) {
  const KernelSignature &signature = *kernelSignature(kernel);
  name_ = signature.name;
  auto count = [&](const char *what, size_t got, int least, int most) {
    std::string expected = std::to_string(least);
    if (most != least)
      expected += " or " + std::to_string(most);
    require(got >= static_cast<size_t>(least) &&
                got <= static_cast<size_t>(most),
            expected + " " + what, std::to_string(got));
  };
  count("inputs", call.inputs.size(), signature.inputs, signature.inputs);
  count("outputs", call.outputs.size(), signature.outputs,
        signature.outputs + signature.optionalOutputs);
  count("integer arguments", call.args.size(), signature.args, signature.args);
  count("float arguments", call.floats.size(), signature.floats,
        signature.floats);
}

void CallCheck::require(bool condition, const std::string &expected,
                        const std::string &got) {
  if (condition || error_)
    return;
  error_ = makeError(ExitCode::Incompatible,
                     "kernel " + std::string(name_) + ": expected " + expected +
                         ", got " + got +
                         "; compile the plan again with this version");
}

int64_t CallCheck::arg(int index, const char *name, int64_t least) {
  int64_t value = call_.args[index];
  require(value >= least,
          std::string("argument ") + name + " of at least " +
              std::to_string(least),
          std::to_string(value));
  return value;
}

bool CallCheck::flag(int index, const char *name) {
  int64_t value = call_.args[index];
  require(value == 0 || value == 1,
          std::string("argument ") + name + " to be 0 or 1",
          std::to_string(value));
  return value == 1;
}

int64_t CallCheck::rowsOfInput(int index, const char *name, int64_t each) {
  if (error_)
    return 0;
  int64_t elements = call_.inputs[index].elements;
  require(each > 0 && elements >= 0 && elements % each == 0,
          std::string(name) + " of a multiple of " + std::to_string(each) +
              " elements",
          std::to_string(elements));
  return error_ ? 0 : elements / each;
}

void CallCheck::operand(const Operand &operand, const char *name,
                        int64_t elements, DType dtype) {
  if (error_)
    return;
  require(operand.dtype == dtype && operand.elements == elements,
          std::string(name) + " of " + std::to_string(elements) + " " +
              std::string(dtypeName(dtype)) + " elements",
          std::to_string(operand.elements) + " " +
              std::string(dtypeName(operand.dtype)));
}

DType CallCheck::storage(int index, const char *name) {
  DType dtype = call_.inputs[index].dtype;
  require(dtype == DType::F32 || dtype == DType::BF16,
          std::string(name) + " of f32 or bf16 elements",
          std::string(dtypeName(dtype)));
  return dtype;
}

void CallCheck::input(int index, const char *name, int64_t elements,
                      DType dtype) {
  if (!error_)
    operand(call_.inputs[index], name, elements, dtype);
}

void CallCheck::output(int index, const char *name, int64_t elements,
                       DType dtype) {
  if (!error_)
    operand(call_.outputs[index], name, elements, dtype);
}

void CallCheck::block(const Operand &operand, const char *name, int64_t least) {
  require(operand.dtype == DType::F64 && operand.elements >= least,
          std::string(name) + " of at least " + std::to_string(least) +
              " f64 elements",
          std::to_string(operand.elements) + " " +
              std::string(dtypeName(operand.dtype)));
}

} // namespace reckon::device
