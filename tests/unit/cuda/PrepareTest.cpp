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
#include "runtime/cuda/CudaDevice.h"
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
/// As roots, logarithms and divisors need them, in f32 or f64.
Value positives(DType dtype, int64_t n, uint32_t seed) {
  Doubles values = random(n, seed);
  for (double &value : values)
    value = std::abs(value) + 0.1;
  if (dtype == DType::F32)
    return {dtype, encoded(Storage::F32, values)};
  Value value{DType::F64, {}};
  value.bytes.resize(values.size() * 8);
  std::memcpy(value.bytes.data(), values.data(), value.bytes.size());
  return value;
}
Doubles decoded(const Value &value) {
  Doubles all(static_cast<size_t>(value.operand().elements));
  for (size_t i = 0; i < all.size(); ++i)
    if (value.dtype == DType::BF16) {
      uint16_t half;
      std::memcpy(&half, value.bytes.data() + 2 * i, 2);
      all[i] = fromBf16(half);
    } else if (value.dtype == DType::F64) {
      std::memcpy(&all[i], value.bytes.data() + 8 * i, 8);
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
  Value metrics() { return positives(DType::F64, device::metricSlots, 8); }

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
             {Kernel::LayerNorm,
              {n(t * h), n(h, 2), n(h, 3)},
              {n(t * h, 4)},
              {h},
              {1e-5}},
             {Kernel::LayerNormGradInput,
              {n(t * h), n(t * h, 2), n(h, 3)},
              {n(t * h, 4)},
              {h},
              {1e-5}},
             {Kernel::LayerNormGradWeight,
              {n(t * h), n(t * h, 2)},
              {f(h, 3), f(h, 4)},
              {h, flag},
              {1e-5}},
             {Kernel::Gelu, {n(t * h)}, {n(t * h, 2)}, {h}, {}},
             {Kernel::GeluGrad,
              {n(t * h), n(t * h, 2)},
              {n(t * h, 3)},
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

TEST_P(PrepareTest, AttentionGivesWhatTheCpuGives) {
  const int64_t hq = 4, hkv = 2, d = 8, s = 7, t = 2 * s;
  const int64_t q = t * hq * d, kv = t * hkv * d, rows = t * hq;
  Call forward{Kernel::Attention,
               {n(q), n(kv, 2), n(kv, 3)},
               {n(q, 4), f(rows, 5)},
               {hq, hkv, d, s},
               {}};
  expectSame(forward);
  std::vector<Doubles> results = onCpu(forward);
  Value o{n(0).dtype, encoded(storage, results[0])};
  Value lse{DType::F32, encoded(Storage::F32, results[1])};
  expectSame({Kernel::AttentionGrad,
              {n(q, 6), n(q), n(kv, 2), n(kv, 3), o, lse},
              {n(q, 7), n(kv, 8), n(kv, 9), f(rows, 10)},
              {hq, hkv, d, s},
              {}});
}

TEST_P(PrepareTest, LossAndOptimizerGiveWhatTheCpuGives) {
  const int64_t t = 14, v = 24, valid = 20, offset = 3;
  for (int64_t owner : {0, 1})
    for (bool cast : {false, true}) {
      Call adamw{Kernel::Adamw,
                 {f(t), metrics(), positives(DType::F64, 3, 2)},
                 {f(t, 3), f(t, 4), positives(DType::F32, t, 5)},
                 {},
                 {0.9, 0.95, 1e-8, 0.1}};
      if (cast)
        adamw.outputs.push_back(numbers(Storage::Bf16, t, 6));
      for (const Call &call : std::vector<Call>{
               {Kernel::CrossEntropyMax, {n(t * v)}, {f(t)}, {v, valid}, {}},
               {Kernel::CrossEntropySum,
                {n(t * v), words(t, 30), f(t, 2)},
                {f(2 * t, 3)},
                {v, valid, offset},
                {}},
               {Kernel::CrossEntropyLoss,
                {positives(DType::F32, 2 * t, 1), f(t, 2)},
                {f(t, 3), metrics()},
                {owner},
                {}},
               {Kernel::CrossEntropyGrad,
                {n(t * v), words(t, 30), f(t, 2)},
                {n(t * v, 3)},
                {v, valid, offset},
                {0.25}},
               {Kernel::SumSquares, {f(t * v)}, {metrics()}, {owner}, {}},
               {Kernel::ClipFactor, {}, {metrics()}, {}, {0.2}},
               adamw,
           })
        expectSame(call);
    }
}

// Scratch is reserved for those that need it only.
TEST_P(PrepareTest, OnlyTheOwnerReservesScratchForTheNorm) {
  device::Operand x{DType::F32, 3 << 14}, block{DType::F64, 4};
  for (int64_t owner : {0, 1}) {
    device::KernelCall call{{&x, 1}, {&block, 1}, {&owner, 1}, {}, 3};
    ASSERT_TRUE(prepareFunction(Kernel::SumSquares)(context(), call).ok());
    EXPECT_EQ(workspace.bytes(), owner * 24);
  }
}

TEST_P(PrepareTest, EveryKernelHasAFunction) {
  for (int id = 1; id < device::kernelCount; ++id)
    EXPECT_NE(prepareFunction(static_cast<Kernel>(id)), nullptr)
        << device::kernelSignature(static_cast<Kernel>(id))->name;
  EXPECT_EQ(prepareFunction(Kernel::None), nullptr);
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

  Call gradient{Kernel::CrossEntropyGrad,
                {n(t * v), words(t, 20), f(t, 2)},
                {n(t * v, 3)},
                {v, v, 0},
                {0.25}};
  want = onCpu(gradient);
  gradient.args[2] = 1;
  EXPECT_GT(worst(onCuda(gradient)[0], want[0], {0x1p-7, 1e-5}), 1.0);
}

TEST_P(PrepareTest, TheDeviceDrawsTheCpusRandomNumbers) {
  auto made = makeCudaDevice({});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const int64_t n = 1001, size = static_cast<int64_t>(bytesOf(storage));
  DType dtype = numbers(storage, 0, 1).dtype;
  device::NormalStream normal = device::normalStream(7, "w", 0.02);
  std::vector<unsigned char> host(static_cast<size_t>(n * size)), drawn(host);
  void *memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, host.size()), cudaSuccess);
  ASSERT_TRUE((*made)->fillNormal(memory, dtype, normal, 5, n).ok());
  ASSERT_TRUE((*made)->synchronize().ok());
  ASSERT_TRUE((*made)->copyToHost(drawn.data(), memory, n * size).ok());
  ASSERT_TRUE(cpu->fillNormal(host.data(), dtype, normal, 5, n).ok());
  EXPECT_EQ(drawn, host);
  ASSERT_TRUE(cpu->fillNormal(host.data(), dtype, normal, 6, n).ok());
  EXPECT_NE(drawn, host);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
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
