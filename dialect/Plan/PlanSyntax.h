//===- PlanSyntax.h - custom pieces of the plan dialect's syntax ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The custom directives that the generated parsers and printers call. Internal
// to dialect/Plan.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_PLAN_PLANSYNTAX_H
#define RECKON_DIALECT_PLAN_PLANSYNTAX_H

#include "dialect/Plan/Plan.h"

namespace reckon::planir {

/// `12 + 704 * dp`, `tp not 0 ? 0 : 1`.
mlir::ParseResult parseExprBody(mlir::AsmParser &parser, ExprAttr &expr);
void printExprBody(mlir::AsmPrinter &printer, ExprAttr expr);

/// `@stash[1] acquire release`.
mlir::ParseResult parseBindingBody(mlir::AsmParser &parser,
                                   BindingAttr &binding);
void printBindingBody(mlir::AsmPrinter &printer, BindingAttr binding);

/// `704 * dp : 704`, start and size.
mlir::ParseResult parseExtentBody(mlir::AsmParser &parser, ExtentAttr &extent);
void printExtentBody(mlir::AsmPrinter &printer, ExtentAttr extent);

mlir::ParseResult parseExpr(mlir::OpAsmParser &parser, ExprAttr &expr);
void printExpr(mlir::OpAsmPrinter &printer, mlir::Operation *, ExprAttr expr);

/// `[176, 64, 88 * tp]`.
mlir::ParseResult parseExprs(mlir::OpAsmParser &parser, mlir::ArrayAttr &exprs);
void printExprs(mlir::OpAsmPrinter &printer, mlir::Operation *,
                mlir::ArrayAttr exprs);

/// `[0 : 64, 88 * tp : 88]`.
mlir::ParseResult parseBox(mlir::OpAsmParser &parser, mlir::ArrayAttr &box);
void printBox(mlir::OpAsmPrinter &printer, mlir::Operation *,
              mlir::ArrayAttr box);

/// `(@tokens[1], @stash[1] acquire)`.
mlir::ParseResult parseBindings(mlir::OpAsmParser &parser,
                                mlir::ArrayAttr &bindings);
void printBindings(mlir::OpAsmPrinter &printer, mlir::Operation *,
                   mlir::ArrayAttr bindings);

/// `[tp = 2, cp = 1, ep = 1, dp = 2, pp = 1]`.
mlir::ParseResult parseMesh(mlir::OpAsmParser &parser,
                            mlir::DenseI64ArrayAttr &mesh);
void printMesh(mlir::OpAsmPrinter &printer, mlir::Operation *,
               mlir::DenseI64ArrayAttr mesh);

/// `[tp, dp]`.
mlir::ParseResult parseAxes(mlir::OpAsmParser &parser,
                            mlir::DenseI64ArrayAttr &axes);
void printAxes(mlir::OpAsmPrinter &printer, mlir::Operation *,
               mlir::DenseI64ArrayAttr axes);

/// `[256, 64]`.
mlir::ParseResult parseShape(mlir::OpAsmParser &parser,
                             mlir::DenseI64ArrayAttr &shape);
void printShape(mlir::OpAsmPrinter &printer, mlir::Operation *,
                mlir::DenseI64ArrayAttr shape);

/// `(tokens : @tokens, stash : @stash)`.
mlir::ParseResult parseFormals(mlir::OpAsmParser &parser,
                               mlir::ArrayAttr &names,
                               mlir::ArrayAttr &classes);
void printFormals(mlir::OpAsmPrinter &printer, mlir::Operation *,
                  mlir::ArrayAttr names, mlir::ArrayAttr classes);

} // namespace reckon::planir

#endif // RECKON_DIALECT_PLAN_PLANSYNTAX_H
