//===- SafetensorsTest.cpp - named tensors in a file ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Safetensors.h"
#include "tests/unit/exec/TinyPlan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

using namespace reckon;
using namespace reckon::exec;

static std::string withHeader(const std::string &header,
                              const std::string &data) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), 8) + header +
         data;
}

static Result<std::unique_ptr<SafetensorsFile>>
openBytes(const test::TemporaryFolder &folder, const std::string &bytes) {
  std::ofstream(folder / "file", std::ios::binary) << bytes;
  return SafetensorsFile::open(folder / "file");
}

TEST(Safetensors, ReadsEveryFloatType) {
  test::TemporaryFolder folder;
  std::string data;
  auto append = [&](auto value) {
    data.append(reinterpret_cast<const char *>(&value), sizeof(value));
  };
  append(1.5f);
  append(-2.25);
  for (uint16_t bf16 : {0x3fc0, 0xc010})
    append(bf16);
  // 1, smallest subnormal, -65504, infinity
  for (uint16_t f16 : {0x3c00, 0x0001, 0xfbff, 0x7c00})
    append(f16);
  auto file = openBytes(
      folder,
      withHeader(R"({"__metadata__":{"format":"pt"},)"
                 R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"F64","shape":[],"data_offsets":[4,12]},)"
                 R"("c":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]},)"
                 R"("d":{"dtype":"F16","shape":[2,2],"data_offsets":[16,24]}})",
                 data));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->tensors().size(), 4u);
  float v[4];
  (*file)->read(*(*file)->find("a"), 0, 1, v);
  EXPECT_EQ(v[0], 1.5f);
  (*file)->read(*(*file)->find("b"), 0, 1, v);
  EXPECT_EQ(v[0], -2.25f);
  (*file)->read(*(*file)->find("c"), 0, 2, v);
  EXPECT_EQ(v[0], 1.5f);
  EXPECT_EQ(v[1], -2.25f);
  (*file)->read(*(*file)->find("d"), 0, 4, v);
  EXPECT_EQ(v[0], 1.0f);
  EXPECT_EQ(v[1], std::ldexp(1.0f, -24));
  EXPECT_EQ(v[2], -65504.0f);
  EXPECT_TRUE(std::isinf(v[3]));
  EXPECT_EQ((*file)->find("e"), nullptr);
}

TEST(Safetensors, WrittenHeadersReadBack) {
  test::TemporaryFolder folder;
  std::map<std::string, TensorEntry> tensors;
  tensors["w"].shape = {2, 3};
  tensors["b"].shape = {5};
  std::string bytes = safetensorsHeader(tensors);
  EXPECT_EQ(bytes.size() % 8, 0u);
  bytes.resize(tensors["w"].end);
  float value = 7;
  std::memcpy(bytes.data() + tensors["w"].begin + 4 * 4, &value, 4);
  auto file = openBytes(folder, bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->find("w")->shape, (std::vector<int64_t>{2, 3}));
  float got;
  (*file)->read(*(*file)->find("w"), 4, 1, &got);
  EXPECT_EQ(got, 7);
}

TEST(Safetensors, DamageIsCorrupt) {
  test::TemporaryFolder folder;
  std::string good =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_TRUE(openBytes(folder, withHeader(good, "12345678")).ok());
  std::string long64(8, '\xff');
  for (const std::string &bytes : {
           std::string(),
           std::string("abc"),
           long64 + "{}",
           withHeader("[1]", ""),
           withHeader("{", ""),
           withHeader(good, "1234567"),
           withHeader(R"({"a":{"shape":[2],"data_offsets":[0,8]}})",
                      "12345678"),
           withHeader(R"({"a":{"dtype":"F99","shape":[2],)"
                      R"("data_offsets":[0,8]}})",
                      "12345678"),
           withHeader(R"({"a":{"dtype":"F32","shape":[3],)"
                      R"("data_offsets":[0,8]}})",
                      "12345678"),
           withHeader(R"({"a":{"dtype":"F32","shape":[-2],)"
                      R"("data_offsets":[0,8]}})",
                      "12345678"),
           withHeader(R"({"a":{"dtype":"F32","shape":[2],)"
                      R"("data_offsets":[8,0]}})",
                      "12345678"),
           withHeader(R"({"a":{"dtype":"F32",)"
                      R"("shape":[4294967296,4294967296,4294967296],)"
                      R"("data_offsets":[0,8]}})",
                      "12345678"),
       }) {
    auto file = openBytes(folder, bytes);
    ASSERT_FALSE(file.ok()) << bytes;
    EXPECT_EQ(file.error().code, ExitCode::Corrupt) << file.error().message;
    EXPECT_EQ(file.error().message.find(folder / "file"), 0u);
  }
  EXPECT_EQ(SafetensorsFile::open(folder / "none").error().code,
            ExitCode::Environment);
}
