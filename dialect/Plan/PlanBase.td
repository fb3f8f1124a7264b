//===- PlanBase.td - the plan dialect, its types and attributes -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_PLAN_PLANBASE_TD
#define RECKON_DIALECT_PLAN_PLANBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let summary = "one stage's program: offsets, streams, events, instructions";
  let description = [{
    The last level. **No allocation, no shape inference and no name lookup
    remains: a program is offsets, streams, events and instructions, one
    program per pipeline stage.** Every op mirrors a table of the plan file
    (`runtime/plan/plan.fbs`), so that a dump reads like the file.
  }];
  // The plan file's own C++ structs live in reckon::plan.
  let cppNamespace = "::reckon::planir";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Enums; the numbers are those of the plan file.
//===----------------------------------------------------------------------===//

class Plan_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::reckon::planir";
  let genSpecializedAttr = 0;
}

def Plan_Axis : Plan_Enum<"Axis", "an axis of the mesh, fastest rank first", [
  I32EnumAttrCase<"tp", 0>, I32EnumAttrCase<"cp", 1>, I32EnumAttrCase<"ep", 2>,
  I32EnumAttrCase<"dp", 3>, I32EnumAttrCase<"pp", 4>]>;

def Plan_Role : Plan_Enum<"Role", "what a state is for", [
  I32EnumAttrCase<"parameter", 0>, I32EnumAttrCase<"gradient", 1>,
  I32EnumAttrCase<"main_weight", 2>, I32EnumAttrCase<"momentum", 3>,
  I32EnumAttrCase<"variance", 4>, I32EnumAttrCase<"buffer", 5>,
  I32EnumAttrCase<"scalars", 6>, I32EnumAttrCase<"metrics", 7>]>;
def Plan_RoleAttr : EnumAttr<Plan_Dialect, Plan_Role, "role">;

def Plan_InitKind : Plan_Enum<"InitKind", "how a state starts", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"zeros", 1>,
  I32EnumAttrCase<"ones", 2>, I32EnumAttrCase<"normal", 3>,
  I32EnumAttrCase<"rope", 4>]>;

def Plan_Reduction : Plan_Enum<"Reduction", "how values are combined", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>]>;
def Plan_ReductionAttr : EnumAttr<Plan_Dialect, Plan_Reduction, "reduction">;

def Plan_Direction : Plan_Enum<"Direction", "what a channel carries", [
  I32EnumAttrCase<"forward", 0>, I32EnumAttrCase<"backward", 1>]>;
def Plan_DirectionAttr : EnumAttr<Plan_Dialect, Plan_Direction, "direction">;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Plan_Buffer : TypeDef<Plan_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "bytes of the arena, seen as a row-major tensor";
  let description = [{
    Local shape and element type of what an instruction reads or writes.

    Example: `!plan.buffer<128x64xf32>`
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getNumElements() const;
    /// Bytes of one element: f64 and i64 8, f32 and i32 4, f16 and bf16 2,
    /// codes of fp8 1.
    int64_t getElementBytes() const;
    int64_t getBytes() const { return getNumElements() * getElementBytes(); }
  }];
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Plan_Attr<string name, string attrMnemonic>
    : AttrDef<Plan_Dialect, name> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
}

def Plan_ExprAttr : Plan_Attr<"Expr", "expr"> {
  let summary = "an integer that depends on a rank's coordinates";
  let description = [{
    The value of the first case that matches, else base + the sum of
    scale * coordinate. Fragments therefore do not grow with the degrees.

    Example: `#plan.expr<12 + 704 * dp>`, and
    `#plan.expr<tp not 0 ? 0 : dp not 0 ? 0 : 1>`: 1 exactly where the
    coordinates tp and dp are 0.
  }];
  let parameters = (ins "int64_t":$base,
                        ArrayRefParameter<"ExprTerm">:$terms,
                        ArrayRefParameter<"ExprCase">:$cases);
  let builders = [
    AttrBuilder<(ins "int64_t":$base),
                [{ return $_get($_ctxt, base, llvm::ArrayRef<ExprTerm>(),
                                llvm::ArrayRef<ExprCase>()); }]>
  ];
  let extraClassDeclaration = [{
    bool isConstant() const { return getTerms().empty() && getCases().empty(); }
    /// `coordinates` and `degrees` by axis: tp, cp, ep, dp, pp.
    int64_t evaluate(llvm::ArrayRef<int64_t> coordinates) const;
    /// Smallest and largest value over all ranks of a mesh.
    int64_t getMin(llvm::ArrayRef<int64_t> degrees) const;
    int64_t getMax(llvm::ArrayRef<int64_t> degrees) const;
    /// Whether every value over all ranks is a multiple of `divisor`.
    bool isMultipleOf(int64_t divisor) const;
  }];
}

def Plan_ExtentAttr : Plan_Attr<"Extent", "extent"> {
  let summary = "elements [start, start + size) of one global dimension";
  let parameters = (ins "ExprAttr":$start, "ExprAttr":$size);
}

def Plan_AxisFilterAttr : Plan_Attr<"AxisFilter", "filter"> {
  let summary = "ranks whose coordinate is one of some values";
  let parameters = (ins "Axis":$axis, ArrayRefParameter<"int64_t">:$values);
}

def Plan_InitAttr : Plan_Attr<"Init", "init"> {
  let summary = "initial value of a state, with its numbers";
  let description = [{
    `normal` has the standard deviation; `rope` has theta, factor, low and high
    frequency factor and original length.

    Example: `#plan.init<normal 2.0e-02>`
  }];
  let parameters = (ins "InitKind":$kind, "::mlir::DenseF64ArrayAttr":$numbers);
}

def Plan_BindingAttr : Plan_Attr<"Binding", "binding"> {
  let summary = "a slot of a class, bound to an action";
  let description = [{
    `acquire` marks the first use of a slot's new content, `release` the last.

    Example: `#plan.binding<@stash[1] acquire>`
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$slotClass,
                        "int64_t":$index, "bool":$acquire, "bool":$release);
}

#endif // RECKON_DIALECT_PLAN_PLANBASE_TD
