//===- Safetensors.cpp - named tensors in a file --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Safetensors.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace reckon::exec {

using Json = nlohmann::json;

static uint64_t elementBytes(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64")
    return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32")
    return 4;
  if (dtype == "BF16" || dtype == "F16" || dtype == "I16" || dtype == "U16")
    return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL" ||
      dtype.starts_with("F8_"))
    return 1;
  return 0;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Result<std::unique_ptr<SafetensorsFile>>
SafetensorsFile::open(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) {
    int reason = errno;
    if (fd >= 0)
      close(fd);
    return makeError(ExitCode::Environment,
                     path + ": cannot read (" + std::strerror(reason) +
                         "): expected a safetensors file");
  }
  auto size = static_cast<uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || size < 8) {
    close(fd);
    return makeError(ExitCode::Corrupt,
                     path + ": expected a safetensors file, got " +
                         std::to_string(size) + " bytes");
  }
  void *mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int reason = errno;
  close(fd);
  if (mapped == MAP_FAILED)
    return makeError(ExitCode::Environment,
                     path + ": cannot map (" + std::strerror(reason) + ")");
  std::unique_ptr<SafetensorsFile> file(
      new SafetensorsFile(path, static_cast<const uint8_t *>(mapped), size));
  RECKON_TRY(file->parse());
  return file;
}

SafetensorsFile::~SafetensorsFile() {
  munmap(const_cast<uint8_t *>(bytes_), size_);
}

Status SafetensorsFile::parse() {
  auto damaged = [&](const std::string &what) {
    return makeError(ExitCode::Corrupt,
                     path_ + ": the safetensors file is damaged (" + what +
                         "): fetch or write it again");
  };
  uint64_t length;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&length, bytes_, 8);
  if (length > size_ - 8)
    return damaged("its header is longer than the file");
  const char *text = reinterpret_cast<const char *>(bytes_ + 8);
  Json header = Json::parse(text, text + length, nullptr, false);
  if (!header.is_object())
    return damaged("its header is no JSON object");
  uint64_t dataStart = 8 + length;
  uint64_t dataSize = size_ - dataStart;
  for (const auto &[name, value] : header.items()) {
    if (name == "__metadata__")
      continue;
    if (!value.is_object() || !value.contains("dtype") ||
        !value["dtype"].is_string() || !value.contains("shape") ||
        !value["shape"].is_array() || !value.contains("data_offsets") ||
        !value["data_offsets"].is_array() ||
        value["data_offsets"].size() != 2 ||
        !value["data_offsets"][0].is_number_unsigned() ||
        !value["data_offsets"][1].is_number_unsigned())
      return damaged("tensor " + name + " lacks dtype, shape or data_offsets");
    TensorEntry entry;
    entry.dtype = value["dtype"].get<std::string>();
    uint64_t bytes = elementBytes(entry.dtype);
    if (bytes == 0)
      return damaged("tensor " + name + " has unknown dtype " + entry.dtype);
    for (const Json &dim : value["shape"]) {
      if (!dim.is_number_unsigned())
        return damaged("tensor " + name + " has a bad shape");
      uint64_t extent = dim.get<uint64_t>();
      if (extent != 0 && bytes > dataSize / extent)
        return damaged("tensor " + name + " is larger than the file");
      bytes *= extent;
      entry.shape.push_back(static_cast<int64_t>(extent));
    }
    uint64_t begin = value["data_offsets"][0].get<uint64_t>();
    uint64_t end = value["data_offsets"][1].get<uint64_t>();
    if (begin > end || end > dataSize || end - begin != bytes)
      return damaged("tensor " + name + " has bytes " + std::to_string(begin) +
                     " to " + std::to_string(end) + " of " +
                     std::to_string(dataSize) + ", expected " +
                     std::to_string(bytes));
    entry.begin = dataStart + begin;
    entry.end = dataStart + end;
    tensors_.emplace(name, std::move(entry));
  }
  return Status::success();
}

const TensorEntry *SafetensorsFile::find(const std::string &name) const {
  auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

bool SafetensorsFile::isFloat(const TensorEntry &entry) {
  return entry.dtype == "F32" || entry.dtype == "F64" ||
         entry.dtype == "BF16" || entry.dtype == "F16";
}

static float halfToFloat(uint16_t half) {
  int exponent = (half >> 10) & 31;
  auto mantissa = static_cast<float>(half & 1023);
  float value = exponent == 31
                    ? (mantissa == 0 ? INFINITY : NAN)
                    : std::ldexp(exponent ? 1024 + mantissa : mantissa,
                                 (exponent ? exponent : 1) - 25);
  return half & 0x8000 ? -value : value;
}

void SafetensorsFile::read(const TensorEntry &entry, int64_t first,
                           int64_t count, float *out) const {
  RECKON_CHECK(isFloat(entry));
  uint64_t size = elementBytes(entry.dtype);
  // Data need not be aligned, so every element goes through memcpy.
  const uint8_t *data = bytes_ + entry.begin + uint64_t(first) * size;
  RECKON_CHECK(data + uint64_t(count) * size <= bytes_ + entry.end);
  if (entry.dtype == "F32") {
    std::memcpy(out, data, uint64_t(count) * 4);
    return;
  }
  for (int64_t i = 0; i < count; ++i, data += size) {
    if (size == 8) {
      double value;
      std::memcpy(&value, data, 8);
      out[i] = static_cast<float>(value);
      continue;
    }
    uint16_t bits;
    std::memcpy(&bits, data, 2);
    out[i] = entry.dtype == "F16"
                 ? halfToFloat(bits)
                 : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
}

std::string safetensorsHeader(std::map<std::string, TensorEntry> &tensors) {
  Json header = Json::object();
  uint64_t offset = 0;
  for (auto &[name, entry] : tensors) {
    uint64_t bytes = 4;
    for (int64_t dim : entry.shape)
      bytes *= static_cast<uint64_t>(dim);
    entry.dtype = "F32";
    entry.begin = offset;
    entry.end = offset += bytes;
    header[name] = {{"dtype", entry.dtype},
                    {"shape", entry.shape},
                    {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t length = text.size();
  for (auto &[name, entry] : tensors) {
    entry.begin += 8 + length;
    entry.end += 8 + length;
  }
  return std::string(reinterpret_cast<const char *>(&length), 8) + text;
}

} // namespace reckon::exec
