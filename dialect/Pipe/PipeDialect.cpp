//===- PipeDialect.cpp - registration, syntax and accessors of level 3 ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialect/Pipe/Pipe.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reckon::pipe;

//===----------------------------------------------------------------------===//
// Custom syntax
//===----------------------------------------------------------------------===//

/// Parses `class index [acquire] [release]`.
static FailureOr<SlotUseAttr> parseSlotUse(AsmParser &parser) {
  llvm::SMLoc where = parser.getCurrentLocation();
  StringRef name;
  int64_t index = 0;
  if (parser.parseKeyword(&name) || parser.parseInteger(index))
    return failure();
  std::optional<SlotClass> slotClass = symbolizeSlotClass(name);
  if (!slotClass)
    return parser.emitError(where, "expected a slot class, got '")
           << name << "'";
  bool acquire = succeeded(parser.parseOptionalKeyword("acquire"));
  bool release = succeeded(parser.parseOptionalKeyword("release"));
  return SlotUseAttr::get(parser.getContext(), *slotClass, index, acquire,
                          release);
}

static void printSlotUse(AsmPrinter &printer, SlotUseAttr use) {
  printer << stringifySlotClass(use.getSlotClass()) << ' ' << use.getIndex();
  if (use.getAcquire())
    printer << " acquire";
  if (use.getRelease())
    printer << " release";
}

Attribute SlotUseAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<SlotUseAttr> use = parseSlotUse(parser);
  if (failed(use) || parser.parseGreater())
    return {};
  return *use;
}

void SlotUseAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printSlotUse(printer, *this);
  printer << '>';
}

static ParseResult parseSlotUses(OpAsmParser &parser, ArrayAttr &uses) {
  SmallVector<Attribute> parsed;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() {
        FailureOr<SlotUseAttr> use = parseSlotUse(parser);
        if (failed(use))
          return failure();
        parsed.push_back(*use);
        return success();
      }))
    return failure();
  uses = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printSlotUses(OpAsmPrinter &printer, Operation *, ArrayAttr uses) {
  printer << '[';
  llvm::interleaveComma(uses, printer, [&](Attribute use) {
    printSlotUse(printer, cast<SlotUseAttr>(use));
  });
  printer << ']';
}

/// Parses `["tokens", "saved" * 24]`: a role and how often it stands there.
static ParseResult parseRoles(OpAsmParser &parser, ArrayAttr &roles) {
  SmallVector<Attribute> parsed;
  auto parseRun = [&]() -> ParseResult {
    StringAttr role;
    int64_t count = 1;
    if (parser.parseAttribute(role))
      return failure();
    if (succeeded(parser.parseOptionalStar())) {
      llvm::SMLoc where = parser.getCurrentLocation();
      if (parser.parseInteger(count))
        return failure();
      if (count < 1)
        return parser.emitError(where, "expected a count above 0, got ")
               << count;
    }
    parsed.append(count, role);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRun))
    return failure();
  roles = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printRoles(OpAsmPrinter &printer, Operation *, ArrayAttr roles) {
  printer << '[';
  for (auto it = roles.begin(); it != roles.end();) {
    auto end = std::find_if(it, roles.end(),
                            [&](Attribute role) { return role != *it; });
    // Short runs are easier to read as they are.
    auto step = end - it > 2 ? end : it + 1;
    if (it != roles.begin())
      printer << ", ";
    printer << *it;
    if (step - it > 1)
      printer << " * " << (step - it);
    it = step;
  }
  printer << ']';
}

/// Parses `(%a: type, ...) { ... }`, the signature and body of a fragment.
static ParseResult parseFragmentBody(OpAsmParser &parser, Region &body) {
  SmallVector<OpAsmParser::Argument> arguments;
  return failure(parser.parseArgumentList(arguments,
                                          OpAsmParser::Delimiter::Paren,
                                          /*allowType=*/true) ||
                 parser.parseRegion(body, arguments));
}

static void printFragmentBody(OpAsmPrinter &printer, Operation *,
                              Region &body) {
  printer << '(';
  llvm::interleaveComma(body.getArguments(), printer, [&](BlockArgument arg) {
    printer.printRegionArgument(arg);
  });
  printer << ") ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

std::optional<SlotClass> reckon::pipe::slotClassOfRole(StringRef role) {
  if (role == "saved")
    return SlotClass::Stash;
  // "stash" names the slot as a whole, never one value in it.
  if (role == "stash")
    return std::nullopt;
  return symbolizeSlotClass(role);
}

FragmentOp StageOp::findFragment(FragmentKind kind, bool firstMicroBatch) {
  for (FragmentOp fragment : getFragments())
    if (fragment.getKind() == kind &&
        fragment.getFirstMicroBatch() == firstMicroBatch)
      return fragment;
  return {};
}

ActionsOp StageOp::findActions() {
  auto lists = getBody()->getOps<ActionsOp>();
  return lists.empty() ? ActionsOp() : *lists.begin();
}

ProgramOp StageOp::getProgram() {
  return cast<ProgramOp>((*this)->getParentOp());
}

bool StageOp::isLast() {
  return &getProgram().getBody()->back() == getOperation();
}

StageOp FragmentOp::getStage() { return cast<StageOp>((*this)->getParentOp()); }

ReturnOp FragmentOp::getReturn() {
  return cast<ReturnOp>(getBody()->getTerminator());
}

StringRef FragmentOp::getArgumentRole(unsigned number) {
  return cast<StringAttr>(getRoles()[number]).getValue();
}

StringRef FragmentOp::getResultRole(unsigned number) {
  return cast<StringAttr>(getReturn().getRoles()[number]).getValue();
}

Value FragmentOp::findArgument(StringRef role) {
  for (BlockArgument argument : getBody()->getArguments())
    if (getArgumentRole(argument.getArgNumber()) == role)
      return argument;
  return {};
}

Value FragmentOp::findResult(StringRef role) {
  for (auto [number, value] : llvm::enumerate(getReturn().getValues()))
    if (getResultRole(number) == role)
      return value;
  return {};
}

SmallVector<SlotClass> FragmentOp::getSlotClasses() {
  SmallVector<SlotClass> classes;
  for (ArrayAttr roles : {getRoles(), getReturn().getRoles()})
    for (StringRef role : roles.getAsValueRange<StringAttr>())
      if (auto slotClass = slotClassOfRole(role))
        classes.push_back(*slotClass);
  llvm::sort(classes);
  classes.erase(llvm::unique(classes), classes.end());
  return classes;
}

/// Names arguments after their roles, and saved ones after the value that was
/// saved where its location has a name: dumps read %input and %layers.3.gate.
void FragmentOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  if (region.getNumArguments() != getRoles().size())
    return;
  for (BlockArgument argument : region.getArguments()) {
    StringRef role = getArgumentRole(argument.getArgNumber());
    auto name = argument.getLoc()->findInstanceOf<NameLoc>();
    setName(argument,
            role == "saved" && name ? name.getName().getValue() : role);
  }
}

//===----------------------------------------------------------------------===//
// Generated code
//===----------------------------------------------------------------------===//

#include "dialect/Pipe/PipeDialect.cpp.inc"
#include "dialect/Pipe/PipeEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Pipe/PipeAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/Pipe/PipeOps.cpp.inc"

void PipeDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Pipe/PipeAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/Pipe/PipeOps.cpp.inc"
      >();
}
