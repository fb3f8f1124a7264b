//===- reckon-lsp-server.cpp - editor support for Reckon's IR -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/Pipelines.h"

#include "mlir/IR/Dialect.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  reckon::registerReckonDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
