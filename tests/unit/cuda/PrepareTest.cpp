//===- PrepareTest.cpp - kernel calls on the emulated device --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every call runs on both devices, on the same bits. That operands, constants
// and flags arrive where they belong is what is tested here; what a kernel
// computes is held to f64 elsewhere.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Prepare.h"
#include "runtime/cuda/Attention.h"
#include "runtime/cuda/Workspace.h"
#include "runtime/cuda/emulated/ReferenceMatmul.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/device/RopeTable.h"
#include "tests/unit/cuda/Support.h"

using namespace reckon;
using namespace reckon::cuda;
using namespace reckon::cuda::test;
using device::DType;

namespace {

/// An operand's first bytes.
struct Value {
  DType dtype = DType::F32;
  std::vector<unsigned char> bytes;

  device::Operand operand() const {
    return {dtype,
            static_cast<int64_t>(bytes.size()) / device::dtypeBytes(dtype)};
  }
};

Value numbers(Storage storage, int64_t n, uint32_t seed) {
  return {storage == Storage::Bf16 ? DType::BF16 : DType::F32,
          encoded(storage, random(n, seed))};
}
Value words(int64_t n, int32_t count) {
  Value value{DType::I32, {}};
  value.bytes.resize(static_cast<size_t>(n) * 4);
  for (int64_t i = 0; i < n; ++i) {
    auto word = static_cast<int32_t>(i * 7 % count);
    std::memcpy(value.bytes.data() + i * 4, &word, 4);
  }
  return value;
}
Doubles decoded(const Value &value) {
  Doubles all(static_cast<size_t>(value.operand().elements));
  for (size_t i = 0; i < all.size(); ++i)
    if (value.dtype == DType::BF16) {
      uint16_t half;
      std::memcpy(&half, value.bytes.data() + 2 * i, 2);
      all[i] = fromBf16(half);
    } else {
      float single;
      std::memcpy(&single, value.bytes.data() + 4 * i, 4);
      all[i] = single;
    }
  return all;
}

struct Call {
  Kernel kernel;
  std::vector<Value> inputs, outputs;
  std::vector<int64_t> args;
  std::vector<double> floats;

  std::vector<device::Operand>
  operands(const std::vector<Value> &values) const {
    std::vector<device::Operand> all;
    for (const Value &value : values)
      all.push_back(value.operand());
    return all;
  }
};

class PrepareTest : public Stored {
protected:
  void SetUp() override {
    auto made = device::makeCpuDevice({.threads = 1});
    ASSERT_TRUE(made.ok());
    cpu = std::move(*made);
  }

  CudaContext context() {
    return {[this](int number) -> Result<cudaStream_t> {
              used.push_back(number);
              return queue();
            },
            *matmul, attention, workspace};
  }

  std::vector<Doubles> onCpu(Call call) {
    auto in = call.operands(call.inputs), out = call.operands(call.outputs);
    auto prepared =
        cpu->prepare(call.kernel, {in, out, call.args, call.floats});
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
    std::vector<void *> pointers;
    for (std::vector<Value> *values : {&call.inputs, &call.outputs})
      for (Value &value : *values)
        pointers.push_back(value.bytes.data());
    EXPECT_TRUE((*prepared)->run(pointers).ok());
    std::vector<Doubles> results;
    for (const Value &value : call.outputs)
      results.push_back(decoded(value));
    return results;
  }

  std::vector<Doubles> onCuda(const Call &call) {
    auto in = call.operands(call.inputs), out = call.operands(call.outputs);
    PrepareFunction prepare = prepareFunction(call.kernel);
    EXPECT_NE(prepare, nullptr);
    CudaContext ctx = context();
    auto prepared = prepare(ctx, {in, out, call.args, call.floats, 3});
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<void *> pointers;
    for (const std::vector<Value> *values : {&call.inputs, &call.outputs})
      for (const Value &value : *values) {
        memory.push_back(std::make_unique<Memory>(value.bytes.data(),
                                                  value.bytes.size(), 0));
        pointers.push_back(memory.back()->data());
      }
    Status status = (*prepared)->run(pointers);
    EXPECT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(used, std::vector<int>{3});
    used.clear();
    std::vector<Doubles> results;
    for (size_t i = 0; i < call.outputs.size(); ++i)
      results.push_back(decoded(
          {call.outputs[i].dtype, memory[call.inputs.size() + i]->bytes()}));
    return results;
  }

  void expectSame(const Call &call) {
    SCOPED_TRACE(device::kernelSignature(call.kernel)->name);
    std::vector<Doubles> want = onCpu(call), got = onCuda(call);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      // Two f32 results beside a tie may be neighbours in bf16.
      Tolerance tolerance{call.outputs[i].dtype == DType::BF16 ? 0x1p-7 : 2e-6,
                          1e-5};
      expectClose(got[i], want[i], tolerance);
    }
  }

  Value n(int64_t count, uint32_t seed = 1) {
    return numbers(storage, count, seed);
  }
  Value f(int64_t count, uint32_t seed = 1) {
    return numbers(Storage::F32, count, seed);
  }

  std::unique_ptr<device::Device> cpu;
  std::unique_ptr<Matmul> matmul = makeReferenceMatmul();
  OwnAttention attention;
  Workspace workspace;
  std::vector<int> used;
};

} // namespace

TEST_P(PrepareTest, RowKernelsGiveWhatTheCpuGives) {
  const int64_t t = 12, h = 40, v = 9, s = 6, heads = 2, d = 20;
  Value table{DType::F32, {}};
  table.bytes.resize(static_cast<size_t>(s * d * 4));
  device::ropeTable(reinterpret_cast<float *>(table.bytes.data()), s, d, {});
  for (int64_t flag : {0, 1})
    for (const Call &call : std::vector<Call>{
             {Kernel::FillZero, {}, {n(t)}, {}, {}},
             {Kernel::Copy, {n(t)}, {n(t, 2)}, {}, {}},
             {Kernel::Add, {n(t), n(t, 2)}, {n(t, 3)}, {}, {}},
             {Kernel::Embedding,
              {words(t, 20), n(v * h)},
              {n(t * h, 2)},
              {v, h, 4},
              {}},
             {Kernel::EmbeddingGrad,
              {n(t * h), words(t, 20)},
              {f(v * h, 2)},
              {v, h, 4, flag},
              {}},
             {Kernel::RmsNorm, {n(t * h), n(h, 2)}, {n(t * h, 3)}, {h}, {1e-5}},
             {Kernel::RmsNormGradInput,
              {n(t * h), n(t * h, 2), n(h, 3)},
              {n(t * h, 4)},
              {h},
              {1e-5}},
             {Kernel::RmsNormGradWeight,
              {n(t * h), n(t * h, 2)},
              {f(h, 3)},
              {h, flag},
              {1e-5}},
             {Kernel::Rope,
              {n(t * heads * d), table},
              {n(t * heads * d, 2)},
              {heads, d, s, flag},
              {}},
             {Kernel::Swiglu, {n(t * h), n(t * h, 2)}, {n(t * h, 3)}, {h}, {}},
             {Kernel::SwigluGrad,
              {n(t * h), n(t * h, 2), n(t * h, 3)},
              {n(t * h, 4), n(t * h, 5)},
              {h},
              {}},
         })
      expectSame(call);
}

TEST_P(PrepareTest, LinearKernelsGiveWhatTheCpuGives) {
  const int64_t in = 24, out = 40;
  for (int64_t t : {0, 1, 17})
    for (int64_t flag : {0, 1})
      for (const Call &call : std::vector<Call>{{Kernel::Linear,
                                                 {n(t * in), n(out * in, 2)},
                                                 {n(t * out, 3)},
                                                 {out, in},
                                                 {}},
                                                {Kernel::LinearGradInput,
                                                 {n(t * out), n(out * in, 2)},
                                                 {n(t * in, 3)},
                                                 {out, in},
                                                 {}},
                                                {Kernel::LinearGradWeight,
                                                 {n(t * out), n(t * in, 2)},
                                                 {f(out * in, 3)},
                                                 {out, in, flag},
                                                 {}}})
        expectSame(call);
}

TEST_P(PrepareTest, RefusesWhatTheCpuRefuses) {
  Call call{Kernel::RmsNorm, {n(80), n(30)}, {n(80)}, {40}, {1e-5}};
  auto in = call.operands(call.inputs), out = call.operands(call.outputs);
  device::KernelCall bad{in, out, call.args, call.floats};
  auto cudaSays = prepareFunction(call.kernel)(context(), bad);
  auto cpuSays = cpu->prepare(call.kernel, bad);
  ASSERT_FALSE(cudaSays.ok());
  ASSERT_FALSE(cpuSays.ok());
  EXPECT_EQ(cudaSays.error().code, ExitCode::Incompatible);
  EXPECT_EQ(cudaSays.error().message, cpuSays.error().message);
}

// A wrong constant is seen: the other rotation, another word range.
TEST_P(PrepareTest, OtherConstantsFail) {
  const int64_t t = 12, h = 40, v = 9;
  Call call{Kernel::Embedding,
            {words(t, 20), n(v * h)},
            {n(t * h, 2)},
            {v, h, 4},
            {}};
  std::vector<Doubles> want = onCpu(call);
  call.args[2] = 5;
  EXPECT_GT(worst(onCuda(call)[0], want[0], {0x1p-7, 1e-5}), 1.0);
}

RECKON_STORED(PrepareTest);

TEST(Workspace, IsSharedByAStreamAndGrows) {
  Workspace workspace;
  EXPECT_EQ(workspace.data(0), nullptr);
  ASSERT_TRUE(workspace.reserve(0, 1000).ok());
  ASSERT_TRUE(workspace.reserve(2, 50).ok());
  ASSERT_TRUE(workspace.reserve(0, 10).ok());
  EXPECT_EQ(workspace.bytes(), 1050);
  EXPECT_NE(workspace.data(0), workspace.data(2));
  ASSERT_TRUE(workspace.reserve(2, 100).ok());
  EXPECT_EQ(workspace.bytes(), 1100);
}
