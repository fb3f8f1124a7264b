//===- PlanSyntax.cpp - custom pieces of the plan dialect's syntax --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan/PlanSyntax.h"

using namespace mlir;
using namespace reckon::planir;

/// The axis whose name comes next, if one does.
static std::optional<Axis> parseOptionalAxis(AsmParser &parser) {
  StringRef name;
  if (failed(
          parser.parseOptionalKeyword(&name, {"tp", "cp", "ep", "dp", "pp"})))
    return std::nullopt;
  return symbolizeAxis(name);
}

static ParseResult parseAxis(AsmParser &parser, Axis &axis) {
  SMLoc loc = parser.getCurrentLocation();
  auto found = parseOptionalAxis(parser);
  if (!found)
    return parser.emitError(loc, "expected an axis: tp, cp, ep, dp or pp");
  axis = *found;
  return success();
}

//===----------------------------------------------------------------------===//
// Pieces shared by attributes and directives
//===----------------------------------------------------------------------===//

ParseResult reckon::planir::parseExprBody(AsmParser &parser, ExprAttr &expr) {
  SmallVector<ExprCase> cases;
  while (auto axis = parseOptionalAxis(parser)) {
    ExprCase c{*axis, false, 0, 0};
    StringRef how;
    if (parser.parseKeyword(&how))
      return failure();
    if (how != "is" && how != "not")
      return parser.emitError(parser.getCurrentLocation(),
                              "expected 'is' or 'not' after an axis");
    c.differs = how == "not";
    if (parser.parseInteger(c.equals) || parser.parseQuestion() ||
        parser.parseInteger(c.value) || parser.parseColon())
      return failure();
    cases.push_back(c);
  }
  int64_t base = 0;
  SmallVector<ExprTerm> terms;
  do {
    int64_t number = 0;
    if (parser.parseInteger(number))
      return failure();
    if (failed(parser.parseOptionalStar())) {
      base += number;
      continue;
    }
    Axis axis;
    if (parseAxis(parser, axis))
      return failure();
    terms.push_back({axis, number});
  } while (succeeded(parser.parseOptionalPlus()));
  expr = ExprAttr::get(parser.getContext(), base, terms, cases);
  return success();
}

void reckon::planir::printExprBody(AsmPrinter &printer, ExprAttr expr) {
  auto &os = printer.getStream();
  for (const ExprCase &c : expr.getCases())
    os << stringifyAxis(c.axis) << (c.differs ? " not " : " is ") << c.equals
       << " ? " << c.value << " : ";
  bool first = true;
  if (expr.getBase() != 0 || expr.getTerms().empty()) {
    os << expr.getBase();
    first = false;
  }
  for (const ExprTerm &term : expr.getTerms()) {
    os << (first ? "" : " + ") << term.scale << " * "
       << stringifyAxis(term.axis);
    first = false;
  }
}

ParseResult reckon::planir::parseBindingBody(AsmParser &parser,
                                             BindingAttr &binding) {
  StringAttr symbol;
  int64_t index = 0;
  if (parser.parseSymbolName(symbol) || parser.parseLSquare() ||
      parser.parseInteger(index) || parser.parseRSquare())
    return failure();
  bool acquire = succeeded(parser.parseOptionalKeyword("acquire"));
  bool release = succeeded(parser.parseOptionalKeyword("release"));
  binding =
      BindingAttr::get(parser.getContext(), FlatSymbolRefAttr::get(symbol),
                       index, acquire, release);
  return success();
}

void reckon::planir::printBindingBody(AsmPrinter &printer,
                                      BindingAttr binding) {
  printer.printSymbolName(binding.getSlotClass().getValue());
  printer << '[' << binding.getIndex() << ']';
  if (binding.getAcquire())
    printer << " acquire";
  if (binding.getRelease())
    printer << " release";
}

ParseResult reckon::planir::parseExtentBody(AsmParser &parser,
                                            ExtentAttr &extent) {
  ExprAttr start, size;
  if (parseExprBody(parser, start) || parser.parseColon() ||
      parseExprBody(parser, size))
    return failure();
  extent = ExtentAttr::get(parser.getContext(), start, size);
  return success();
}

void reckon::planir::printExtentBody(AsmPrinter &printer, ExtentAttr extent) {
  printExprBody(printer, extent.getStart());
  printer << " : ";
  printExprBody(printer, extent.getSize());
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

Type BufferType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseGreater())
    return {};
  return parser.getChecked<BufferType>(loc, parser.getContext(),
                                       ArrayRef<int64_t>(shape), element);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t dim : getShape())
    printer << dim << 'x';
  printer << getElementType() << '>';
}

Attribute ExprAttr::parse(AsmParser &parser, Type) {
  ExprAttr expr;
  if (parser.parseLess() || parseExprBody(parser, expr) ||
      parser.parseGreater())
    return {};
  return expr;
}

void ExprAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printExprBody(printer, *this);
  printer << '>';
}

Attribute ExtentAttr::parse(AsmParser &parser, Type) {
  ExtentAttr extent;
  if (parser.parseLess() || parseExtentBody(parser, extent) ||
      parser.parseGreater())
    return {};
  return extent;
}

void ExtentAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printExtentBody(printer, *this);
  printer << '>';
}

Attribute BindingAttr::parse(AsmParser &parser, Type) {
  BindingAttr binding;
  if (parser.parseLess() || parseBindingBody(parser, binding) ||
      parser.parseGreater())
    return {};
  return binding;
}

void BindingAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBindingBody(printer, *this);
  printer << '>';
}

Attribute AxisFilterAttr::parse(AsmParser &parser, Type) {
  Axis axis;
  SmallVector<int64_t> values;
  if (parser.parseLess() || parseAxis(parser, axis) ||
      parser.parseKeyword("in") ||
      parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square,
          [&] { return parser.parseInteger(values.emplace_back()); }) ||
      parser.parseGreater())
    return {};
  return AxisFilterAttr::get(parser.getContext(), axis, values);
}

void AxisFilterAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyAxis(getAxis()) << " in [";
  llvm::interleaveComma(getValues(), printer);
  printer << "]>";
}

Attribute InitAttr::parse(AsmParser &parser, Type) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&name))
    return {};
  auto kind = symbolizeInitKind(name);
  if (!kind) {
    parser.emitError(loc, "expected none, zeros, ones, normal or rope");
    return {};
  }
  SmallVector<double> numbers;
  while (failed(parser.parseOptionalGreater()))
    if (parser.parseFloat(numbers.emplace_back()))
      return {};
  return InitAttr::get(parser.getContext(), *kind,
                       DenseF64ArrayAttr::get(parser.getContext(), numbers));
}

void InitAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyInitKind(getKind());
  for (double number : getNumbers().asArrayRef()) {
    printer << ' ';
    printer.printFloat(APFloat(number));
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Directives
//===----------------------------------------------------------------------===//

/// Parses `body` pieces between delimiters into an array attribute.
template <typename AttrT>
static ParseResult parseArray(OpAsmParser &parser,
                              AsmParser::Delimiter delimiter, ArrayAttr &array,
                              ParseResult (*body)(AsmParser &, AttrT &)) {
  SmallVector<Attribute> elements;
  auto one = [&] {
    AttrT element;
    if (body(parser, element))
      return failure();
    elements.push_back(element);
    return success();
  };
  if (parser.parseCommaSeparatedList(delimiter, one))
    return failure();
  array = parser.getBuilder().getArrayAttr(elements);
  return success();
}

template <typename AttrT>
static void printArray(OpAsmPrinter &printer, const char *open,
                       const char *close, ArrayAttr array,
                       void (*body)(AsmPrinter &, AttrT)) {
  printer << open;
  llvm::interleaveComma(array, printer, [&](Attribute element) {
    body(printer, cast<AttrT>(element));
  });
  printer << close;
}

ParseResult reckon::planir::parseExpr(OpAsmParser &parser, ExprAttr &expr) {
  return parseExprBody(parser, expr);
}
void reckon::planir::printExpr(OpAsmPrinter &printer, Operation *,
                               ExprAttr expr) {
  printExprBody(printer, expr);
}

ParseResult reckon::planir::parseExprs(OpAsmParser &parser, ArrayAttr &exprs) {
  return parseArray<ExprAttr>(parser, AsmParser::Delimiter::Square, exprs,
                              parseExprBody);
}
void reckon::planir::printExprs(OpAsmPrinter &printer, Operation *,
                                ArrayAttr exprs) {
  printArray<ExprAttr>(printer, "[", "]", exprs, printExprBody);
}

ParseResult reckon::planir::parseBox(OpAsmParser &parser, ArrayAttr &box) {
  return parseArray<ExtentAttr>(parser, AsmParser::Delimiter::Square, box,
                                parseExtentBody);
}
void reckon::planir::printBox(OpAsmPrinter &printer, Operation *,
                              ArrayAttr box) {
  printArray<ExtentAttr>(printer, "[", "]", box, printExtentBody);
}

ParseResult reckon::planir::parseBindings(OpAsmParser &parser,
                                          ArrayAttr &bindings) {
  return parseArray<BindingAttr>(parser, AsmParser::Delimiter::Paren, bindings,
                                 parseBindingBody);
}
void reckon::planir::printBindings(OpAsmPrinter &printer, Operation *,
                                   ArrayAttr bindings) {
  printArray<BindingAttr>(printer, "(", ")", bindings, printBindingBody);
}

ParseResult reckon::planir::parseMesh(OpAsmParser &parser,
                                      DenseI64ArrayAttr &mesh) {
  SmallVector<int64_t> degrees;
  SMLoc loc = parser.getCurrentLocation();
  auto one = [&]() -> ParseResult {
    Axis axis;
    SMLoc at = parser.getCurrentLocation();
    if (parseAxis(parser, axis))
      return failure();
    if (static_cast<size_t>(axis) != degrees.size())
      return parser.emitError(at, "expected the axes in the order tp, cp, ep, "
                                  "dp, pp");
    return failure(parser.parseEqual() ||
                   parser.parseInteger(degrees.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one))
    return failure();
  if (degrees.size() != kNumAxes)
    return parser.emitError(loc, "expected a degree for each of tp, cp, ep, "
                                 "dp, pp");
  mesh = parser.getBuilder().getDenseI64ArrayAttr(degrees);
  return success();
}

void reckon::planir::printMesh(OpAsmPrinter &printer, Operation *,
                               DenseI64ArrayAttr mesh) {
  printer << '[';
  llvm::interleaveComma(
      llvm::enumerate(mesh.asArrayRef()), printer, [&](auto it) {
        printer << stringifyAxis(static_cast<Axis>(it.index())) << " = "
                << it.value();
      });
  printer << ']';
}

ParseResult reckon::planir::parseAxes(OpAsmParser &parser,
                                      DenseI64ArrayAttr &axes) {
  SmallVector<int64_t> list;
  auto one = [&] {
    Axis axis;
    if (parseAxis(parser, axis))
      return failure();
    list.push_back(static_cast<int64_t>(axis));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one))
    return failure();
  axes = parser.getBuilder().getDenseI64ArrayAttr(list);
  return success();
}

void reckon::planir::printAxes(OpAsmPrinter &printer, Operation *,
                               DenseI64ArrayAttr axes) {
  printer << '[';
  llvm::interleaveComma(axes.asArrayRef(), printer, [&](int64_t axis) {
    printer << stringifyAxis(static_cast<Axis>(axis));
  });
  printer << ']';
}

ParseResult reckon::planir::parseShape(OpAsmParser &parser,
                                       DenseI64ArrayAttr &shape) {
  SmallVector<int64_t> dims;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseInteger(dims.emplace_back());
      }))
    return failure();
  shape = parser.getBuilder().getDenseI64ArrayAttr(dims);
  return success();
}

void reckon::planir::printShape(OpAsmPrinter &printer, Operation *,
                                DenseI64ArrayAttr shape) {
  printer << '[';
  llvm::interleaveComma(shape.asArrayRef(), printer);
  printer << ']';
}

ParseResult reckon::planir::parseFormals(OpAsmParser &parser, ArrayAttr &names,
                                         ArrayAttr &classes) {
  SmallVector<Attribute> nameList, classList;
  Builder &builder = parser.getBuilder();
  auto one = [&] {
    std::string name;
    StringAttr symbol;
    if (parser.parseKeywordOrString(&name) || parser.parseColon() ||
        parser.parseSymbolName(symbol))
      return failure();
    nameList.push_back(builder.getStringAttr(name));
    classList.push_back(FlatSymbolRefAttr::get(symbol));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one))
    return failure();
  names = builder.getArrayAttr(nameList);
  classes = builder.getArrayAttr(classList);
  return success();
}

void reckon::planir::printFormals(OpAsmPrinter &printer, Operation *,
                                  ArrayAttr names, ArrayAttr classes) {
  printer << '(';
  llvm::interleaveComma(llvm::zip(names, classes), printer, [&](auto pair) {
    printer.printKeywordOrString(
        cast<StringAttr>(std::get<0>(pair)).getValue());
    printer << " : ";
    printer.printSymbolName(
        cast<FlatSymbolRefAttr>(std::get<1>(pair)).getValue());
  });
  printer << ')';
}
