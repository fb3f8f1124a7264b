//===- Safetensors.h - named tensors in a file ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The format of Hugging Face checkpoints: 8 bytes of header length, a JSON
// object that gives each tensor's type, shape and byte range, then the data,
// little-endian and row-major.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_SAFETENSORS_H
#define RECKON_RUNTIME_EXEC_SAFETENSORS_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::exec {

/// One tensor of a file.
struct TensorEntry {
  std::string dtype; ///< "F32", "BF16", "F16", "F64", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0; ///< byte range in the file
  uint64_t end = 0;
};

/// A file that is mapped into memory and whose header was checked.
class SafetensorsFile {
public:
  /// Environment when it cannot be read, Corrupt when it is damaged.
  static Result<std::unique_ptr<SafetensorsFile>> open(const std::string &path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile &) = delete;
  SafetensorsFile &operator=(const SafetensorsFile &) = delete;

  const std::string &path() const { return path_; }
  const std::map<std::string, TensorEntry> &tensors() const { return tensors_; }
  /// The tensor of this name, or null.
  const TensorEntry *find(const std::string &name) const;

  /// Elements [first, first + count) of the flattened tensor as f32. Only for
  /// F64, F32, BF16 and F16 tensors (isFloat).
  void read(const TensorEntry &entry, int64_t first, int64_t count,
            float *out) const;
  static bool isFloat(const TensorEntry &entry);

private:
  SafetensorsFile(std::string path, const uint8_t *bytes, uint64_t size)
      : path_(std::move(path)), bytes_(bytes), size_(size) {}
  Status parse();

  std::string path_;
  const uint8_t *bytes_;
  uint64_t size_;
  std::map<std::string, TensorEntry> tensors_;
};

/// The start of a file with these F32 tensors, data in order of names; fills
/// each entry's byte range. Data starts where the header ends, on 8 bytes.
std::string safetensorsHeader(std::map<std::string, TensorEntry> &tensors);

/// "[256, 64]".
std::string shapeText(const std::vector<int64_t> &shape);

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_SAFETENSORS_H
