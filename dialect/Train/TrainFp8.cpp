//===- TrainFp8.cpp - the operations on fp8 codes -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Train/Train.h"
#include "runtime/base/Fp8Layout.h"

using namespace mlir;
using namespace reckon;
using namespace reckon::train;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool isCode(Type element) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(element);
}

/// A tensor<1xf32>.
LogicalResult verifyScalar(Operation *op, Value value, StringRef what) {
  RankedTensorType type = typeOf(value);
  if (!type.getElementType().isF32() || type.getShape() != ArrayRef<int64_t>{1})
    return op->emitOpError() << what << " must be tensor<1xf32>, got " << type;
  return success();
}

/// Codes of a rows x columns matrix.
LogicalResult verifyCodes(Operation *op, Value value, StringRef what,
                          int64_t rows, int64_t columns) {
  RankedTensorType type = typeOf(value);
  int64_t shape[] = {fp8Padded(rows), fp8Padded(columns)};
  if (!isCode(type.getElementType()) || type.getShape() != ArrayRef(shape))
    return op->emitOpError()
           << what << " must be " << shape[0] << " x " << shape[1]
           << " codes of f8E4M3FN or f8E5M2, got " << type;
  return success();
}

LogicalResult verifyBf16(Operation *op, Value value) {
  RankedTensorType type = typeOf(value);
  if (!type.getElementType().isBF16() || !type.hasStaticShape() ||
      type.getRank() != 2)
    return op->emitOpError()
           << "operand must be a static matrix of bf16, got " << type;
  return success();
}

/// The last part of an operation's name: "layers.3.n1_fp8" gives "n1_fp8".
std::string nameOf(Operation *op) {
  auto named = dyn_cast<NameLoc>(op->getLoc());
  if (!named)
    return "";
  StringRef text = named.getName().getValue();
  return text.substr(text.rfind('.') + 1).str();
}

} // namespace

LogicalResult AmaxOp::verify() {
  return failed(verifyBf16(*this, getX()))
             ? failure()
             : verifyScalar(*this, getResult(), "result");
}

LogicalResult CastFp8Op::verify() {
  if (failed(verifyBf16(*this, getX())) ||
      failed(verifyScalar(*this, getAmax(), "the maximum")) ||
      failed(verifyScalar(*this, getScale(), "the scale")))
    return failure();
  unsigned wanted = getStraight() + getTransposed();
  if (wanted == 0 || getCodes().size() != wanted)
    return emitOpError() << "has " << getCodes().size()
                         << " results of codes, expected one for each of "
                            "straight and transposed, and one of them at least";
  int64_t rows = typeOf(getX()).getDimSize(0);
  int64_t columns = typeOf(getX()).getDimSize(1);
  if (getStraight() && failed(verifyCodes(*this, getStraightCodes(),
                                          "the codes", rows, columns)))
    return failure();
  if (getTransposed() &&
      failed(verifyCodes(*this, getTransposedCodes(), "the transposed codes",
                         columns, rows)))
    return failure();
  if (typeOf(getCodes().front()).getElementType() !=
      typeOf(getCodes().back()).getElementType())
    return emitOpError("codes and transposed codes must have one format");
  return success();
}

LogicalResult LinearFp8Op::verify() {
  RankedTensorType type = typeOf(getResult());
  if (type.getRank() != 2 || !type.hasStaticShape() ||
      (!type.getElementType().isF32() && !type.getElementType().isBF16()))
    return emitOpError() << "result must be a static matrix of bf16 or f32, "
                            "got "
                         << type;
  int64_t k = getK();
  if (k <= 0)
    return emitOpError() << "k must be positive, got " << k;
  if (failed(verifyCodes(*this, getA(), "a", type.getDimSize(0), k)) ||
      failed(verifyCodes(*this, getB(), "b", type.getDimSize(1), k)) ||
      failed(verifyScalar(*this, getAScale(), "the scale of a")))
    return failure();
  return verifyScalar(*this, getBScale(), "the scale of b");
}

uint64_t AmaxOp::getFlops() { return elementCount(getX()); }
uint64_t CastFp8Op::getFlops() { return elementCount(getX()); }
uint64_t LinearFp8Op::getFlops() {
  return 2 * elementCount(getResult()) * getK();
}

void AmaxOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (std::string name = nameOf(*this); !name.empty())
    setName(getResult(), name);
}

void CastFp8Op::getAsmResultNames(OpAsmSetValueNameFn setName) {
  std::string name = nameOf(*this);
  if (name.empty())
    return;
  setName(getScale(), name + "_scale");
  if (Value codes = getStraightCodes())
    setName(codes, name);
  if (Value codes = getTransposedCodes())
    setName(codes, name + "_t");
}

void LinearFp8Op::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (std::string name = nameOf(*this); !name.empty())
    setName(getResult(), name);
}
