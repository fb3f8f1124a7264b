//===- ListingTest.cpp - plan.cu.txt --------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/listing/CudaCalls.h"
#include "passes/listing/CudaListing.h"
#include "passes/listing/PlanText.h"
#include "runtime/device/Kernels.h"
#include "tests/unit/exec/TinyPlan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

using namespace reckon;
using namespace reckon::listing;
using namespace reckon::plan;

namespace {

using Stages = std::vector<std::unique_ptr<StagePlanT>>;

Stages tiny(bool zero1 = true) {
  return test::tinyPlan({.dp = 2, .pp = 2, .microBatches = 3, .zero1 = zero1});
}

std::string listingOf(const Stages &stages) {
  std::vector<const StagePlanT *> pointers;
  for (const auto &stage : stages)
    pointers.push_back(stage.get());
  return cudaListing(test::tinyManifest(*stages.front()), pointers);
}

/// Calls under a heading that begins with `heading` in the text of a stage:
/// those of numbered lines, and all others after the stream.
struct Section {
  std::vector<std::string> numbered, others;
};

Section section(const std::string &text, unsigned stage,
                const std::string &heading) {
  std::istringstream lines(
      text.substr(text.find("==== stage " + std::to_string(stage))));
  Section result;
  std::string line;
  bool within = false, stageSeen = false;
  while (std::getline(lines, line)) {
    if (line.rfind("==== ", 0) == 0) {
      if (stageSeen)
        break;
      stageSeen = true;
    }
    if (line.empty() || line[0] != ' ') {
      within = line.rfind(heading, 0) == 0;
      continue;
    }
    if (!within)
      continue;
    std::string call =
        line.substr(line.find_first_not_of(' ', line.find(']') + 1));
    bool numbered =
        line.substr(0, 6).find_first_of("0123456789") != std::string::npos;
    (numbered ? result.numbered : result.others).push_back(call);
  }
  return result;
}

/// What a call must begin with, by the instruction that it stands for.
std::string opening(const StagePlanT &plan, const InstructionT &op) {
  std::string many = "ncclGroup of " + std::to_string(op.inputs.size()) + " ";
  std::string group = op.inputs.size() > 1 ? many : "";
  switch (op.op) {
  case Opcode::record:
    return "cudaEventRecord(e" + std::to_string(op.event) + ", " +
           plan.streams[op.stream]->name + ")";
  case Opcode::wait:
    return "cudaStreamWaitEvent(" + plan.streams[op.stream]->name + ", e" +
           std::to_string(op.event) + ")";
  case Opcode::copy:
    return "cudaMemcpyAsync(";
  case Opcode::all_reduce:
    return group + "ncclAllReduce(";
  case Opcode::all_gather:
    return group + "ncclAllGather(";
  case Opcode::reduce_scatter:
    return group + "ncclReduceScatter(";
  case Opcode::launch:
    break;
  }
  if (op.kernel == Kernel::fill_zero)
    return "cudaMemsetAsync(";
  std::string name = EnumNameKernel(op.kernel);
  return name.rfind("linear", 0) == 0 ? "cublasLtMatmul(" : name + "<<<";
}

/// Why the text is not that of the plan, or "".
std::string mismatch(const Stages &stages, const std::string &text) {
  for (const auto &stage : stages)
    for (const auto &fragment : stage->fragments) {
      std::string heading = "fragment " + fragment->name + ":";
      Section found = section(text, stage->stage, heading);
      if (found.numbered.size() != fragment->instructions.size())
        return heading + " has " + std::to_string(found.numbered.size()) +
               " calls for " + std::to_string(fragment->instructions.size()) +
               " instructions";
      size_t segments = 0;
      for (size_t i = 0; i < found.numbered.size(); ++i) {
        const InstructionT &op = *fragment->instructions[i];
        if (found.numbered[i].rfind(opening(*stage, op), 0) != 0)
          return heading + " " + found.numbered[i] + " is not " +
                 opening(*stage, op);
        if (isCollective(op.op) && op.inputs.size() > 1)
          segments += op.inputs.size();
      }
      if (found.others.size() != segments)
        return heading + " lists " + std::to_string(found.others.size()) +
               " segments of " + std::to_string(segments);
    }
  return "";
}

} // namespace

TEST(CudaListing, IsTheGoldenText) {
  std::string text = listingOf(tiny());
  const std::string path = RECKON_GOLDEN;
  if (std::getenv("RECKON_UPDATE_GOLDENS")) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(golden.str(), text)
      << "if the change is meant: RECKON_UPDATE_GOLDENS=1 listing_test";
}

TEST(CudaListing, HasEveryInstructionOnceAndInOrder) {
  for (bool zero1 : {false, true}) {
    Stages stages = tiny(zero1);
    EXPECT_EQ("", mismatch(stages, listingOf(stages)));
  }
}

// The check above would see a listing that leaves out, repeats or swaps.
TEST(CudaListing, AnotherPlansTextIsNoticed) {
  std::string whole = listingOf(tiny());
  size_t tried = 0;
  for (unsigned stage = 0; stage < 2; ++stage)
    for (size_t f = 0; f < tiny()[stage]->fragments.size(); ++f)
      for (size_t i = 0; i < tiny()[stage]->fragments[f]->instructions.size();
           ++i) {
        Stages mutant = tiny();
        auto &list = mutant[stage]->fragments[f]->instructions;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        std::string text = listingOf(mutant);
        EXPECT_NE(whole, text);
        EXPECT_EQ("", mismatch(mutant, text));
        EXPECT_NE("", mismatch(tiny(), text));
        EXPECT_NE("", mismatch(mutant, whole));
        ++tried;
      }
  EXPECT_GT(tried, 30u);
}

TEST(CudaListing, ListsEveryActionWithItsEvents) {
  Stages stages = tiny();
  std::string text = listingOf(stages);
  for (const auto &stage : stages) {
    Section found = section(text, stage->stage, "list step:");
    EXPECT_EQ(found.numbered.size(), stage->lists[0]->actions.size());
    std::map<std::string, size_t> calls, expected;
    for (const auto *part : {&found.numbered, &found.others})
      for (const std::string &call : *part)
        ++calls[call.substr(0, call.find('('))];
    for (const auto &action : stage->lists[0]->actions) {
      const char *names[] = {"cudaGraphLaunch", "ncclSend", "ncclRecv",
                             "cudaMemcpyAsync"};
      size_t count =
          action->kind == ActionKind::run ? 1 : action->buffers.size();
      expected[names[static_cast<int>(action->kind)]] += count;
      if (!action->waits.empty())
        expected["cudaStreamWaitEvent"] += action->waits.size();
      expected["cudaEventRecord"] += action->records.size();
    }
    EXPECT_EQ(expected, calls);
  }
}

TEST(CudaListing, SaysWhatDiffersBetweenRanks) {
  std::string text = listingOf(tiny());
  // The dp ranks' ranges of a flat gradient, 960 elements of 4 bytes each.
  EXPECT_NE(text.find("head#gradient+3840*dp"), std::string::npos);
  EXPECT_EQ(listingOf(tiny(false)).find("*dp"), std::string::npos);
}

TEST(CudaListing, NamesTheConstantsOfEveryKernel) {
  size_t kernels = 0;
  for (Kernel kernel : EnumValuesKernel()) {
    const device::KernelSignature *signature =
        device::kernelSignature(static_cast<device::Kernel>(kernel));
    if (!signature)
      continue;
    ++kernels;
    const KernelNames &names = kernelNames(kernel);
    EXPECT_EQ(signature->name, EnumNameKernel(kernel));
    EXPECT_EQ(signature->args, static_cast<int>(names.args.size()))
        << signature->name << ": add it to passes/listing/CudaCalls.cpp";
    EXPECT_EQ(signature->floats, static_cast<int>(names.floats.size()))
        << signature->name << ": add it to passes/listing/CudaCalls.cpp";
  }
  EXPECT_EQ(kernels + 1, std::size(EnumValuesKernel()));
}

TEST(CudaListing, AttentionIsTheLibrarysInBf16) {
  StagePlanT plan;
  plan.streams.push_back(std::make_unique<StreamT>());
  plan.streams[0]->name = "compute";
  plan.lanes.push_back(std::make_unique<LaneT>());
  plan.lanes[0]->name = "lane";
  FragmentT fragment;
  InstructionT op;
  op.op = Opcode::launch;
  op.kernel = Kernel::attention;
  op.inputs.push_back(std::make_unique<BufferT>());
  op.inputs[0]->region = Region::lane;
  op.inputs[0]->shape = {4, 8};
  for (auto [type, expected] :
       {std::pair{DType::f32, "attention<<<compute>>>(lane f32[4,8])"},
        std::pair{DType::bf16,
                  "cudnnBackendExecute<sdpa>(lane bf16[4,8], compute)"}}) {
    op.inputs[0]->dtype = type;
    EXPECT_EQ(cudaCall(plan, fragment, op).at(0), expected);
  }
}

TEST(PlanText, SpellsExpressionsAndTheirValues) {
  auto value = constantExpr(4);
  EXPECT_EQ(exprText(value), "4");
  EXPECT_EQ(exprText(nullptr), "0");
  value->terms.push_back(Term(Axis::tp, 16));
  value->cases.push_back(Case(Axis::dp, true, 2, 7));
  EXPECT_EQ(exprText(value), "dp not 2 ? 7 : 4 + 16*tp");
  EXPECT_EQ(exprText(value, Coord{.tp = 3, .dp = 2}), "52");
  EXPECT_EQ(exprText(value, Coord{.tp = 3, .dp = 1}), "7");
}

TEST(PlanText, CountsTheRanksOfAGroup) {
  MeshT mesh;
  mesh.tp = 4, mesh.cp = 1, mesh.ep = 1, mesh.dp = 3, mesh.pp = 8;
  GroupT group;
  group.axes = {Axis::dp, Axis::pp};
  EXPECT_EQ(groupSize(group, mesh), 24);
  auto filter = std::make_unique<AxisFilterT>();
  filter->axis = Axis::pp;
  filter->values = {0, 7};
  group.filters.push_back(std::move(filter));
  EXPECT_EQ(groupSize(group, mesh), 6);
  // As many as the runtime would name.
  EXPECT_EQ(groupRanks(group, mesh, {}).size(), 6u);
}
