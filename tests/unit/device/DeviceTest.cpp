//===- DeviceTest.cpp - arena, refusals, names, initial values ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/device/Support.h"

#include "runtime/device/RopeTable.h"
#include "runtime/device/kernels/CounterRng.h"

#include <bit>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <sstream>

using namespace reckon;
using namespace reckon::device;
using namespace reckon::device::test;

namespace {

std::unique_ptr<Device> makeDevice() {
  auto made = makeCpuDevice({.threads = 1, .isa = {}});
  RECKON_CHECK(made.ok());
  return std::move(*made);
}

/// Names of an enum in the plan's schema, in order.
std::vector<std::string> schemaNames(const std::string &name) {
  std::ifstream file(RECKON_SOURCE_DIR "/runtime/plan/plan.fbs");
  std::stringstream text;
  text << file.rdbuf();
  std::string schema = text.str();
  size_t begin = schema.find("enum " + name + " :");
  EXPECT_NE(begin, std::string::npos);
  begin = schema.find('{', begin);
  std::string body = schema.substr(begin + 1, schema.find('}', begin) - begin);
  std::vector<std::string> names;
  std::stringstream parts(body);
  for (std::string part; std::getline(parts, part, ',');) {
    std::stringstream words(part);
    words >> part;
    names.push_back(part.substr(0, part.find_first_of("}=")));
  }
  return names;
}

} // namespace

TEST(Names, AreThoseOfThePlanSchema) {
  std::vector<std::string> kernels = schemaNames("Kernel");
  ASSERT_EQ(kernels.size(), static_cast<size_t>(kernelCount));
  for (int id = 1; id < kernelCount; ++id)
    EXPECT_EQ(kernelSignature(static_cast<Kernel>(id))->name, kernels[id]);
  EXPECT_EQ(kernelSignature(Kernel::None), nullptr);
  EXPECT_EQ(kernelSignature(static_cast<Kernel>(kernelCount)), nullptr);
  std::vector<std::string> dtypes = schemaNames("DType");
  ASSERT_EQ(dtypes.size(), 9u);
  for (size_t id = 0; id < dtypes.size(); ++id)
    EXPECT_EQ(dtypeName(static_cast<DType>(id)), dtypes[id]);
}

TEST(Arena, IsZeroedAlignedAndCounted) {
  auto cpu = makeDevice();
  EXPECT_EQ(cpu->arenaBytes(), 0);
  const int64_t bytes = 5000001;
  auto arena = cpu->allocateArena(bytes);
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(cpu->arenaBytes(), bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*arena) % (2 << 20), 0u);
  auto *data = static_cast<unsigned char *>(*arena);
  for (int64_t i = 0; i < bytes; ++i)
    ASSERT_EQ(data[i], 0);
  std::string text = "abcdef", back(6, ' ');
  ASSERT_TRUE(cpu->copyToDevice(data + bytes - 6, text.data(), 6));
  ASSERT_TRUE(cpu->copyWithin(data, data + bytes - 6, 6));
  ASSERT_TRUE(cpu->copyWithin(data + 2, data, 4)); // overlapping
  ASSERT_TRUE(cpu->copyToHost(back.data(), data, 6));
  EXPECT_EQ(back, "ababcd");
  cpu->freeArena();
  EXPECT_EQ(cpu->arenaBytes(), 0);
  EXPECT_TRUE(cpu->allocateArena(1).ok());
}

TEST(Arena, RefusesWhatTheMachineLacks) {
  auto cpu = makeDevice();
  auto arena = cpu->allocateArena(int64_t{1} << 50);
  ASSERT_FALSE(arena.ok());
  EXPECT_EQ(arena.error().code, ExitCode::Environment);
  EXPECT_NE(arena.error().message.find("1125899906842624 bytes"),
            std::string::npos);
  EXPECT_EQ(cpu->arenaBytes(), 0);
}

TEST(Options, ChooseTheInstructionSet) {
  setenv("RECKON_ISA", "baseline", 1);
  auto forced = makeCpuDevice();
  ASSERT_TRUE(forced.ok());
  EXPECT_NE((*forced)->name().find("baseline"), std::string::npos);
  setenv("RECKON_ISA", "mmx", 1);
  auto unknown = makeCpuDevice();
  unsetenv("RECKON_ISA");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ExitCode::BadSpec);
  EXPECT_EQ(unknown.error().message,
            "expected RECKON_ISA to be baseline, avx2 or avx512, got mmx; "
            "unset it to use the best");
  auto two = makeCpuDevice({.threads = 2, .isa = "baseline"});
  EXPECT_EQ((*two)->threads(), 2);
  EXPECT_EQ((*two)->name(), "cpu (baseline, 2 threads)");
}

TEST(Refusals, SayWhatIsWrong) {
  auto cpu = makeDevice();
  Floats x(12), w(20), y(15);
  Doubles metrics(4);
  Halves half(12);
  struct {
    Call call;
    const char *message;
  } cases[] = {
      {{Kernel::Linear, {x}, {y}, {5, 4}, {}},
       "kernel linear: expected 2 inputs, got 1"},
      {{Kernel::Linear, {x, w}, {y}, {5}, {}},
       "kernel linear: expected 2 integer arguments, got 1"},
      {{Kernel::Linear, {x, w}, {y}, {5, 4}, {1.0}},
       "kernel linear: expected 0 float arguments, got 1"},
      {{Kernel::Linear, {x, w}, {y}, {5, 5}, {}},
       "kernel linear: expected x of a multiple of 5 elements, got 12"},
      {{Kernel::Linear, {x, w}, {y}, {4, 4}, {}},
       "kernel linear: expected w of 16 f32 elements, got 20 f32"},
      {{Kernel::Linear, {x, w}, {metrics}, {5, 4}, {}},
       "kernel linear: expected y of 15 f32 elements, got 4 f64"},
      {{Kernel::Linear, {half, w}, {y}, {5, 4}, {}},
       "kernel linear: expected w of 20 bf16 elements, got 20 f32"},
      {{Kernel::LinearGradWeight, {half, half}, {half}, {3, 4, 0}, {}},
       "kernel linear_grad_weight: expected x of 16 bf16 elements, got 12 "
       "bf16"},
      {{Kernel::LinearGradWeight, {half, half}, {half}, {4, 4, 0}, {}},
       "kernel linear_grad_weight: expected gw of 16 f32 elements, got 12 "
       "bf16"},
      {{Kernel::Add, {metrics, metrics}, {metrics}, {}, {}},
       "kernel add: expected a of f32 or bf16 elements, got f64"},
      {{Kernel::Linear, {x, w}, {y}, {5, -4}, {}},
       "kernel linear: expected argument K of at least 1, got -4"},
      {{Kernel::SumSquares, {x}, {metrics}, {2}, {}},
       "kernel sum_squares: expected argument OWNER to be 0 or 1, got 2"},
      {{Kernel::Attention, {x, x, x}, {x, y}, {3, 2, 2, 2}, {}},
       "kernel attention: expected Hq to be a multiple of Hkv, got 3 and 2"},
      {{Kernel::Rope, {x, w}, {x}, {1, 3, 4, 0}, {}},
       "kernel rope: expected an even D, got 3"},
      {{Kernel::CrossEntropyMax, {x}, {y}, {4, 5}, {}},
       "kernel cross_entropy_max: expected valid of at most V = 4, got 5"},
      {{Kernel::ClipFactor, {}, {x}, {}, {1.0}},
       "kernel clip_factor: expected metrics of at least 4 f64 elements, got "
       "12 f32"},
      {{Kernel::Adamw, {x, metrics, metrics}, {x}, {}, {1, 1, 1, 1}},
       "kernel adamw: expected 3 or 4 outputs, got 1"},
  };
  for (const auto &[call, message] : cases) {
    auto prepared = call.prepare(*cpu);
    ASSERT_FALSE(prepared.ok()) << message;
    EXPECT_EQ(prepared.error().code, ExitCode::Incompatible);
    EXPECT_EQ(prepared.error().message,
              std::string(message) + "; compile the plan again with this "
                                     "version");
  }
  auto none = cpu->prepare(Kernel::None, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ExitCode::Incompatible);
}

// Philox4x32-10 of the authors' known answers (Random123, kat_vectors).
TEST(Random, PhiloxKnownAnswers) {
  auto words = [](Philox4 r) { return std::vector<uint32_t>(r.w, r.w + 4); };
  using Words = std::vector<uint32_t>;
  EXPECT_EQ(words(philox({{0, 0, 0, 0}}, 0, 0)),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t ones = 0xffffffff;
  EXPECT_EQ(words(philox({{ones, ones, ones, ones}}, ones, ones)),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                         0xa4093822, 0x299f31d0)),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, HasTheStatedMoments) {
  const int64_t n = 1 << 20;
  Floats x(n);
  fillNormal(x.data(), 1234, "model.embed_tokens.weight", 0, n, 0.02);
  double mean = 0.0, second = 0.0, fourth = 0.0, most = 0.0, lag = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    double z = x[i] / 0.02;
    mean += z / n;
    second += z * z / n;
    fourth += z * z * z * z / n;
    most = std::max(most, std::abs(z));
    lag += i ? z * x[i - 1] / 0.02 / n : 0.0;
  }
  // Five standard errors of each for 2^20 samples: 1/sqrt(n) = 9.8e-4.
  EXPECT_NEAR(mean, 0.0, 5e-3);
  EXPECT_NEAR(second, 1.0, 7e-3);
  EXPECT_NEAR(fourth / (second * second), 3.0 - 0.075, 0.03);
  EXPECT_NEAR(lag, 0.0, 5e-3);
  EXPECT_LT(most, 6.94);
  EXPECT_GT(most, 4.0);
}

TEST(Random, AnyPartIsPartOfTheWhole) {
  Floats whole(1000), part(300);
  fillNormal(whole.data(), 7, "w", int64_t{1} << 33, 1000, 0.5);
  fillNormal(part.data(), 7, "w", (int64_t{1} << 33) + 450, 300, 0.5);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 450));
}

TEST(Random, SeedNameAndElementAllCount) {
  Floats base(64), other(64);
  fillNormal(base.data(), 7, "a", 0, 64, 1.0);
  fillNormal(other.data(), 8, "a", 0, 64, 1.0);
  EXPECT_NE(base, other);
  fillNormal(other.data(), 7, "b", 0, 64, 1.0);
  EXPECT_NE(base, other);
  fillNormal(other.data(), 7, "a", int64_t{1} << 32, 64, 1.0);
  EXPECT_NE(base, other);
}

// Fixed for ever: a checkpoint-free restart on another version or device must
// find the same initial weights. The values come from a Python transcription.
TEST(Random, DevicesDrawTheHostsBits) {
  auto made = makeCpuDevice({.threads = 3, .isa = {}});
  ASSERT_TRUE(made.ok());
  const int64_t n = 70000, first = (int64_t{1} << 31) - 100;
  Floats host(n), drawn(n), fallback(n);
  fillNormal(host.data(), 7, "w", first, n, 0.5);
  NormalStream normal = normalStream(7, "w", 0.5);
  Device &device = **made;
  ASSERT_TRUE(
      device.fillNormal(drawn.data(), DType::F32, normal, first, n).ok());
  EXPECT_EQ(drawn, host);
  // What a device without an implementation of its own does.
  ASSERT_TRUE(
      device.Device::fillNormal(fallback.data(), DType::F32, normal, first, n)
          .ok());
  EXPECT_EQ(fallback, host);
  Halves halves(n), want(n);
  for (int64_t i = 0; i < n; ++i) {
    // Nearest, to even on ties: within half a unit of the last place.
    auto bits = std::bit_cast<uint32_t>(host[i]);
    uint32_t below = bits >> 16, rest = bits & 0xffff;
    want[i] = static_cast<uint16_t>(
        below + (rest > 0x8000 || (rest == 0x8000 && below % 2 == 1)));
  }
  ASSERT_TRUE(
      device.fillNormal(halves.data(), DType::BF16, normal, first, n).ok());
  EXPECT_EQ(halves, want);
  ASSERT_TRUE(
      device.fillNormal(drawn.data(), DType::F32, normal, first + 1, n).ok());
  EXPECT_NE(drawn, host);
}

TEST(Random, BitsAreFrozen) {
  Floats x(3);
  fillNormal(x.data(), 1234, "model.norm.weight", 5, 3, 0.02);
  EXPECT_EQ(x, (Floats{0x1.4bbd5c0000000p-7f, -0x1.2cd2080000000p-5f,
                       0x1.24477c0000000p-5f}));
}

TEST(Rope, Llama3Frequencies) {
  // Llama 3.1: theta 5e5, D 128, factor 8. Plain frequencies are
  // 5e5^(-2i/128); wavelengths 2 pi / f under 2048 stay, over 8192 are
  // divided by 8.
  RopeScaling plain{.theta = 5e5}, scaled = plain;
  scaled.factor = 8.0;
  auto before = ropeFrequencies(128, plain),
       after = ropeFrequencies(128, scaled);
  ASSERT_EQ(after.size(), 64u);
  int kept = 0, divided = 0, blended = 0;
  for (int i = 0; i < 64; ++i) {
    EXPECT_DOUBLE_EQ(before[i], std::pow(5e5, -i / 64.0));
    double wavelength = 2.0 * std::numbers::pi / before[i];
    if (wavelength < 2048.0) {
      ++kept;
      EXPECT_EQ(after[i], before[i]);
    } else if (wavelength > 8192.0) {
      ++divided;
      EXPECT_DOUBLE_EQ(after[i], before[i] / 8.0);
    } else {
      ++blended;
      EXPECT_GT(after[i], before[i] / 8.0);
      EXPECT_LT(after[i], before[i]);
    }
  }
  // 2 pi * 5e5^(i/64) passes 2048 at i = 28.2 and 8192 at i = 34.98.
  EXPECT_EQ(kept, 29);
  EXPECT_EQ(blended, 6);
  EXPECT_EQ(divided, 29);
  // i = 32: wavelength 2 pi sqrt(5e5) = 4442.88; smooth = (8192 / 4442.88 - 1)
  // / 3 = 0.281283; f = f0 * (0.281283 + 0.718717 / 8) with f0 = 1.414214e-3.
  EXPECT_NEAR(after[32], 1.414214e-3 * (0.281283 + 0.718717 / 8.0), 1e-9);
}

TEST(Rope, TableHoldsCosinesThenSines) {
  Floats table(6 * 4), tail(2 * 4);
  ropeTable(table.data(), 6, 4, {});
  for (int p = 0; p < 6; ++p) {
    EXPECT_FLOAT_EQ(table[p * 4], std::cos(p * 1.0));
    EXPECT_FLOAT_EQ(table[p * 4 + 1], std::cos(p * 0.01));
    EXPECT_FLOAT_EQ(table[p * 4 + 2], std::sin(p * 1.0));
    EXPECT_FLOAT_EQ(table[p * 4 + 3], std::sin(p * 0.01));
  }
  ropeTable(tail.data(), 2, 4, {}, 4);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), table.begin() + 16));
}
