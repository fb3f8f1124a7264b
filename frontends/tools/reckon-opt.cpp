//===- reckon-opt.cpp - runs Reckon's passes on IR files ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/Pipelines.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  reckon::registerReckonDialects(registry);
  reckon::registerReckonPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Reckon's pass driver\n", registry));
}
