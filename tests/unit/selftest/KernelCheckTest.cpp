//===- KernelCheckTest.cpp - what the check of kernels must find ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/selftest/FaultyDevice.h"

#include "runtime/selftest/SelfTest.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace reckon;
using namespace reckon::selftest;
using namespace reckon::test;
using device::DType;
using device::Kernel;

namespace {

std::unique_ptr<device::Device> cpu(const char *isa = nullptr) {
  device::CpuDeviceOptions options;
  options.threads = 1;
  if (isa)
    options.isa = isa;
  auto made = device::makeCpuDevice(options);
  RECKON_CHECK(made.ok());
  return std::move(*made);
}

constexpr uint64_t kSeed = 20;

std::vector<KernelOutcome> checkAll(device::Device &device,
                                    const std::vector<KernelCase> &cases,
                                    const char *reference = nullptr,
                                    uint64_t seed = kSeed) {
  auto other = cpu(reference);
  auto checker = KernelChecker::create(*other, device, seed, cases);
  RECKON_CHECK(checker.ok());
  std::vector<KernelOutcome> outcomes;
  for (const KernelCase &each : cases)
    outcomes.push_back((*checker)->check(each));
  return outcomes;
}

std::vector<KernelCase> casesOf(Kernel kernel) {
  std::vector<KernelCase> cases;
  for (KernelCase &each : kernelCases(Sizes::Small))
    if (each.kernel == kernel)
      cases.push_back(std::move(each));
  return cases;
}

std::vector<Kernel> allKernels() {
  std::vector<Kernel> kernels;
  for (int i = 1; i < device::kernelCount; ++i)
    kernels.push_back(static_cast<Kernel>(i));
  return kernels;
}

std::string nameOf(Kernel kernel) {
  return std::string(device::kernelSignature(kernel)->name);
}

/// The outcomes of one kernel whose results a fault spoils.
std::vector<KernelOutcome> withFault(Kernel kernel, Fault fault) {
  FaultyDevice device(cpu(), kernel, std::move(fault));
  return checkAll(device, casesOf(kernel));
}

TEST(KernelCases, CoverEveryKernel) {
  for (Sizes sizes : {Sizes::Small, Sizes::Full}) {
    std::map<Kernel, std::set<DType>> covered;
    std::set<std::string> names;
    for (const KernelCase &each : kernelCases(sizes)) {
      covered[each.kernel].insert(each.dtype);
      EXPECT_TRUE(names.insert(each.name()).second) << each.name();
    }
    for (Kernel kernel : allKernels())
      EXPECT_FALSE(covered[kernel].empty())
          << nameOf(kernel) << ": add cases to runtime/selftest/Cases*.cpp";
  }
}

TEST(KernelCheck, PassesADeviceOfOtherArithmetic) {
  // Another instruction set sums in another order.
  auto device = cpu();
  double worst = 0;
  for (uint64_t seed = 0; seed < 5; ++seed)
    for (const KernelOutcome &outcome :
         checkAll(*device, kernelCases(Sizes::Small), "baseline", seed)) {
      EXPECT_TRUE(outcome.passed()) << nameOf(outcome.kernel) << " "
                                    << outcome.sizes << ": " << outcome.fault;
      worst = std::max(worst, outcome.error);
    }
  if (device->name().find("baseline") == std::string::npos) {
    EXPECT_GT(worst, 0) << "nothing was compared";
  }
}

TEST(KernelCheck, FindsAnElementThatIsOff) {
  // By 300 units in the last place in f32, 6 in bf16.
  for (Kernel kernel : allKernels()) {
    bool touched = false;
    auto spoil = [&](std::vector<Touched> &outputs, int64_t) {
      int64_t at = outputs[0].largest();
      if (at < 0)
        return; // nothing but zeros, or no element
      touched = true;
      outputs[0].scale(at, outputs[0].operand.dtype == DType::BF16
                               ? 1 + 0x1.8p-5
                               : 1 + 300 * 0x1p-23);
    };
    int64_t found = 0;
    for (const KernelOutcome &outcome : withFault(kernel, spoil))
      found += outcome.fault.find("output 0 differs: element") == 0;
    if (kernel != Kernel::FillZero) {
      EXPECT_TRUE(touched) << nameOf(kernel);
      EXPECT_GT(found, 0) << nameOf(kernel);
    }
  }
}

TEST(KernelCheck, FindsAWriteThatIsMissing) {
  for (Kernel kernel : allKernels()) {
    // The last element of each output in turn.
    size_t outputs =
        static_cast<size_t>(device::kernelSignature(kernel)->outputs);
    for (size_t i = 0; i < outputs; ++i) {
      if (kernel == Kernel::AttentionGrad && i == 3)
        continue; // scratch
      auto drop = [&](std::vector<Touched> &all, int64_t) {
        Touched &output = all[i];
        if (output.bytes() == 0)
          return;
        // The metrics block's last place is what only clip_factor writes.
        int64_t size = device::dtypeBytes(output.operand.dtype);
        int64_t at =
            output.operand.dtype == DType::F64 ? 0 : output.bytes() - size;
        int64_t count =
            output.operand.dtype == DType::F64 ? output.bytes() : size;
        std::memcpy(static_cast<std::byte *>(output.data) + at,
                    output.before.data() + at, static_cast<size_t>(count));
      };
      int64_t found = 0;
      for (const KernelOutcome &outcome : withFault(kernel, drop))
        found += !outcome.passed();
      EXPECT_GT(found, 0) << nameOf(kernel) << " output " << i;
    }
  }
}

TEST(KernelCheck, FindsAWriteOutsideTheOutputs) {
  for (Kernel kernel : allKernels()) {
    auto overrun = [](std::vector<Touched> &outputs, int64_t) {
      static_cast<std::byte *>(outputs[0].data)[outputs[0].bytes()] =
          std::byte{1};
    };
    for (const KernelOutcome &outcome : withFault(kernel, overrun))
      EXPECT_NE(outcome.fault.find("wrote outside its outputs"),
                std::string::npos)
          << nameOf(kernel) << " " << outcome.sizes << ": " << outcome.fault;
  }
}

TEST(KernelCheck, FindsRunsThatDiffer) {
  // Within the tolerance, but only the second time.
  auto drift = [](std::vector<Touched> &outputs, int64_t run) {
    int64_t at = outputs[0].largest();
    if (run % 2 == 1 && at >= 0)
      outputs[0].scale(at, 1 + 0x1p-22);
  };
  int64_t found = 0;
  for (const KernelOutcome &outcome : withFault(Kernel::Linear, drift))
    found += outcome.fault.find("not deterministic") == 0;
  EXPECT_GT(found, 0);
}

TEST(KernelCheck, FindsRoundingTowardsZero) {
  // Every element of a bf16 result may be one unit off, but not all of them.
  auto truncate = [](std::vector<Touched> &outputs, int64_t) {
    Touched &y = outputs[0];
    if (y.operand.dtype != DType::BF16)
      return;
    for (int64_t i = 0; i < y.operand.elements; i += 2)
      static_cast<uint16_t *>(y.data)[i] -= 1;
  };
  int64_t found = 0;
  for (const KernelOutcome &outcome : withFault(Kernel::Linear, truncate))
    found += !outcome.passed();
  EXPECT_EQ(found, 3); // the bf16 cases
}

TEST(KernelCheck, TellsWhatADeviceSays) {
  auto cases = casesOf(Kernel::Rope);
  cases.resize(1);
  cases[0].args[1] = 3; // an odd D: every device refuses it
  auto device = cpu();
  KernelOutcome outcome = checkAll(*device, cases)[0];
  EXPECT_NE(outcome.fault.find("an even D"), std::string::npos)
      << outcome.fault;
}

TEST(SelfTest, NamesTheWrongKernelAndNoOther) {
  Options options;
  options.sizes = Sizes::Small;
  options.seed = kSeed;
  options.plans = options.stacks = false;
  options.out = std::fopen("/dev/null", "w");
  Target target;
  target.kind = "cpu";
  target.makeDevice = [] {
    auto spoil = [](std::vector<Touched> &outputs, int64_t) {
      if (int64_t at = outputs[0].largest(); at >= 0)
        outputs[0].scale(at, 1.0625);
    };
    return Result<std::unique_ptr<device::Device>>(
        std::make_unique<FaultyDevice>(cpu(), Kernel::SwigluGrad, spoil));
  };
  auto reference = cpu();
  auto report = runSelfTest(options, *reference, target);
  std::fclose(options.out);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->passed());
  for (const KernelOutcome &outcome : report->kernels)
    EXPECT_EQ(outcome.passed(), outcome.kernel != Kernel::SwigluGrad)
        << nameOf(outcome.kernel) << " " << outcome.sizes;
  const KernelOutcome &last = report->kernels.back();
  EXPECT_NE(kernelLine({last}).find(nameOf(last.kernel)), std::string::npos);
  EXPECT_NE(reportTable(*report).find("FAILED"), std::string::npos);
}

TEST(SelfTest, OutOfTimeIsNotPassed) {
  Options options;
  options.sizes = Sizes::Small;
  options.plans = options.stacks = false;
  options.budgetSeconds = 0;
  options.out = std::fopen("/dev/null", "w");
  Target target;
  target.makeDevice = [] {
    return Result<std::unique_ptr<device::Device>>(cpu());
  };
  auto reference = cpu();
  auto report = runSelfTest(options, *reference, target);
  std::fclose(options.out);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->notRun, int64_t(kernelCases(Sizes::Small).size()));
  EXPECT_FALSE(report->passed());
}

} // namespace
