//===- Device.cpp - what devices have in common ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/Device.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace reckon::device {

Status Device::fillNormal(void *to, DType dtype, const NormalStream &normal,
                          int64_t first, int64_t count) {
  RECKON_CHECK(dtype == DType::F32 || dtype == DType::BF16);
  constexpr int64_t chunk = 1 << 16;
  int64_t size = dtypeBytes(dtype);
  std::vector<std::byte> host(
      static_cast<size_t>(std::min(count, chunk) * size));
  for (int64_t done = 0; done < count; done += chunk) {
    int64_t n = std::min(count - done, chunk);
    writeNormal(host.data(), dtype == DType::BF16, normal, first + done, n);
    RECKON_TRY(copyToDevice(static_cast<std::byte *>(to) + done * size,
                            host.data(), n * size));
  }
  return Status::success();
}

} // namespace reckon::device
