//===- Formula.cpp - what failures and checkpoints cost -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Formula.h"

#include <cmath>

using namespace reckon;
using namespace reckon::goodput;

double goodput::jobMtbf(double gpuMtbf, double gpus) { return gpuMtbf / gpus; }

double goodput::firstOrderWaste(const Terms &terms, double tau) {
  return terms.delta / tau + tau / (2 * terms.mtbf);
}

double goodput::youngInterval(const Terms &terms) {
  return std::sqrt(2 * terms.delta * terms.mtbf);
}

double goodput::leastWaste(const Terms &terms) {
  return std::sqrt(2 * terms.delta / terms.mtbf);
}

std::optional<double> goodput::bestInterval(const Terms &terms) {
  double margin = terms.mtbf - terms.recovery();
  if (!(margin > 0))
    return std::nullopt;
  return std::sqrt(terms.delta * terms.delta + 2 * terms.delta * margin) -
         terms.delta;
}

double goodput::goodput(const Terms &terms, double tau) {
  return (1 - (terms.recovery() + tau / 2) / terms.mtbf) /
         (1 + terms.delta / tau);
}

double goodput::renewalGoodput(const Terms &terms, double tau) {
  double mean = terms.mtbf * std::exp(terms.recovery() / terms.mtbf) *
                std::expm1((tau + terms.delta) / terms.mtbf);
  return tau / mean;
}

Shares goodput::shares(const Terms &terms, double tau) {
  Shares shares;
  shares.useful = goodput::goodput(terms, tau);
  shares.save = shares.useful * terms.delta / tau;
  shares.rollback = tau / (2 * terms.mtbf);
  shares.detect = terms.detect / terms.mtbf;
  shares.restart = terms.restart / terms.mtbf;
  shares.load = terms.load / terms.mtbf;
  return shares;
}

bool goodput::makesProgress(const Terms &terms) {
  std::optional<double> best = bestInterval(terms);
  if (!best || leastWaste(terms) > 1)
    return false;
  return terms.delta == 0 || goodput::goodput(terms, *best) > 0;
}
