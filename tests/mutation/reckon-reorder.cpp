//===- reckon-reorder.cpp - plans that only buffered sends survive --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Writes a plan with the messages of its stages in another order, with digests
// that match, so that only a proof or an execution can tell. Prints how far a
// step comes with sends that wait for their receives and with buffered ones.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/PlanDirectory.h"
#include "runtime/plan/PlanIO.h"
#include "tests/mutation/Reorder.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace reckon;
using namespace reckon::mutation;

namespace {

void print(const char *what, const Progress &progress) {
  std::printf("%s: %zu of %zu actions end", what, progress.ended,
              progress.actions);
  for (size_t i = 0; i < progress.blocked.size(); ++i)
    std::printf("%s%s", i ? ", " : "; blocked: ", progress.blocked[i].c_str());
  std::printf("\n");
}

int run(const std::string &plan, const std::string &out, Order order) {
  auto read = prove::readPlanDirectory(systemFiles(), plan);
  if (!read) {
    std::fprintf(stderr, "%s\n", read.error().message.c_str());
    return static_cast<int>(read.error().code);
  }
  Stages stages = copyOf(read->stages);
  reorder(stages, order);
  print("waiting sends", play(stages, false));
  print("buffered sends", play(stages, true));
  std::vector<const plan::StagePlanT *> pointers;
  for (const auto &stage : stages)
    pointers.push_back(stage.get());
  auto written =
      plan::writePlanDirectory(systemFiles(), out, read->manifest, pointers);
  if (!written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return static_cast<int>(written.error().code);
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  std::string plan, out, name = orderName(Order::OneStream);
  CLI::App app("Puts the messages of a plan into another order.");
  app.add_option("PLAN_DIR", plan, "plan directory")->required();
  app.add_option("OUT_DIR", out, "existing folder for the result")->required();
  std::vector<std::string> names;
  for (Order order : kOrders)
    names.push_back(orderName(order));
  app.add_option("--order", name, "the order")->check(CLI::IsMember(names));
  CLI11_PARSE(app, argc, argv);
  for (Order order : kOrders)
    if (name == orderName(order))
      return run(plan, out, order);
  return 1;
}
