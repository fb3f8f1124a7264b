//===- Nccl.h - NCCL, or its emulation ------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_NCCL_H
#define RECKON_RUNTIME_CUDA_NCCL_H

#include "runtime/cuda/Cuda.h"

#ifdef RECKON_CUDA_EMULATED
#include "runtime/cuda/emulated/NcclApi.h"
#else
#include <nccl.h>
#endif

// ncclCommSplit with named communicators, and buffers registered by
// ncclCommRegister.
#if NCCL_VERSION_CODE < 22700
#error "expected NCCL 2.27 or newer"
#endif

#endif // RECKON_RUNTIME_CUDA_NCCL_H
