//===- Isa.cpp - which kernels this build and this machine have -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/RowKernels.h"

namespace reckon::device {

namespace baseline {
extern const RowKernels table;
}
#ifdef RECKON_X86_KERNELS
namespace avx2 {
extern const RowKernels table;
}
namespace avx512 {
extern const RowKernels table;
}
#endif

const RowKernels *rowKernels(Isa isa) {
  switch (isa) {
  case Isa::Baseline:
    return &baseline::table;
#ifdef RECKON_X86_KERNELS
  case Isa::Avx2:
    return &avx2::table;
  case Isa::Avx512:
    return &avx512::table;
#else
  default:
    break;
#endif
  }
  return nullptr;
}

bool isaSupported(Isa isa) {
  if (!rowKernels(isa))
    return false;
#ifdef RECKON_X86_KERNELS
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl");
  if (isa == Isa::Avx2)
    return avx2;
  if (isa == Isa::Avx512)
    return avx512;
#endif
  return true;
}

} // namespace reckon::device
