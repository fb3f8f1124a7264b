//===- PlanDialect.cpp - registration, values, places ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan/Plan.h"
#include "dialect/Plan/PlanSyntax.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reckon::planir;

#include "dialect/Plan/PlanDialect.cpp.inc"
#include "dialect/Plan/PlanEnums.cpp.inc"
#include "dialect/Plan/PlanInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/Plan/PlanTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Plan/PlanAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/Plan/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/Plan/PlanTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Plan/PlanAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/Plan/PlanOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// BufferType
//===----------------------------------------------------------------------===//

static int64_t elementBytes(Type type) {
  return TypeSwitch<Type, int64_t>(type)
      .Case<Float64Type>([](auto) { return 8; })
      .Case<Float32Type>([](auto) { return 4; })
      .Case<Float16Type, BFloat16Type>([](auto) { return 2; })
      .Case<Float8E4M3FNType, Float8E5M2Type>([](auto) { return 1; })
      .Case<IntegerType>([](IntegerType integer) {
        unsigned width = integer.getWidth();
        return width == 8 || width == 32 || width == 64 ? width / 8 : 0;
      })
      .Default([](Type) { return 0; });
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type elementType) {
  for (int64_t dim : shape)
    if (dim <= 0)
      return emitError() << "buffer dimension is " << dim
                         << ", expected a positive size";
  if (elementBytes(elementType) == 0)
    return emitError()
           << "buffer element type is " << elementType
           << ", expected f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i64, i32 or "
              "i8";
  return success();
}

int64_t BufferType::getNumElements() const {
  int64_t count = 1;
  for (int64_t dim : getShape())
    count *= dim;
  return count;
}

int64_t BufferType::getElementBytes() const {
  return elementBytes(getElementType());
}

//===----------------------------------------------------------------------===//
// ExprAttr
//===----------------------------------------------------------------------===//

int64_t ExprAttr::evaluate(ArrayRef<int64_t> coordinates) const {
  for (const ExprCase &c : getCases())
    if ((coordinates[static_cast<size_t>(c.axis)] == c.equals) != c.differs)
      return c.value;
  int64_t value = getBase();
  for (const ExprTerm &term : getTerms())
    value += term.scale * coordinates[static_cast<size_t>(term.axis)];
  return value;
}

/// Smallest or largest value. A case's value counts whether or not some rank
/// reaches it: the bound may be loose, never wrong.
static int64_t bound(ExprAttr expr, ArrayRef<int64_t> degrees, bool largest) {
  auto pick = [&](int64_t a, int64_t b) {
    return largest ? std::max(a, b) : std::min(a, b);
  };
  int64_t value = expr.getBase();
  for (const ExprTerm &term : expr.getTerms())
    value +=
        pick(0, term.scale * (degrees[static_cast<size_t>(term.axis)] - 1));
  for (const ExprCase &c : expr.getCases())
    value = pick(value, c.value);
  return value;
}

int64_t ExprAttr::getMin(ArrayRef<int64_t> degrees) const {
  return bound(*this, degrees, /*largest=*/false);
}

int64_t ExprAttr::getMax(ArrayRef<int64_t> degrees) const {
  return bound(*this, degrees, /*largest=*/true);
}

bool ExprAttr::isMultipleOf(int64_t divisor) const {
  return getBase() % divisor == 0 &&
         llvm::all_of(
             getTerms(),
             [&](const ExprTerm &term) { return term.scale % divisor == 0; }) &&
         llvm::all_of(getCases(), [&](const ExprCase &c) {
           return c.value % divisor == 0;
         });
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr FragmentOp::getSlotClass(StringRef name) {
  for (auto [formal, slotClass] : llvm::zip(getSlotNames(), getSlotClasses()))
    if (cast<StringAttr>(formal).getValue() == name)
      return cast<FlatSymbolRefAttr>(slotClass);
  return {};
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

bool Place::overlaps(const Place &other) const {
  if (kind != other.kind || name != other.name)
    return false;
  if (kind == Kind::Temp)
    return temp == other.temp;
  return begin < other.end && other.begin < end;
}

Place reckon::planir::placeOf(Value buffer, ArrayRef<int64_t> degrees) {
  MLIRContext *context = buffer.getContext();
  int64_t bytes = cast<BufferType>(buffer.getType()).getBytes();
  Operation *op = buffer.getDefiningOp();
  auto make = [&](Place::Kind kind, StringAttr name, ExprAttr offset) {
    return Place{kind,
                 name,
                 Value(),
                 offset,
                 offset.getMin(degrees),
                 offset.getMax(degrees) + bytes};
  };
  if (auto ref = dyn_cast_or_null<StateRefOp>(op))
    return make(Place::Kind::State, ref.getStateAttr().getAttr(),
                ref.getOffsetAttr());
  if (auto ref = dyn_cast_or_null<SlotRefOp>(op))
    return make(Place::Kind::Slot, ref.getSlotAttr(),
                ExprAttr::get(context, ref.getOffset()));
  if (auto ref = dyn_cast_or_null<LaneRefOp>(op))
    return make(Place::Kind::Lane, {}, ExprAttr::get(context, ref.getOffset()));
  return Place{Place::Kind::Temp, {}, buffer, {}, 0, bytes};
}
