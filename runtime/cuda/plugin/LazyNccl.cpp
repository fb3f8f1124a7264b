//===- LazyNccl.cpp - NCCL, opened when it is needed ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/LazyLibrary.h"
#include "runtime/cuda/plugin/Versions.h"

#include <nccl.h>

namespace {

const reckon::cuda::LazyLibrary &nccl() {
  static const reckon::cuda::LazyLibrary library("libnccl.so.2");
  return library;
}

} // namespace

#define NCCL(NAME, PARAMETERS, ARGUMENTS)                                      \
  RECKON_LAZY(nccl, ncclSystemError, ncclResult_t, NAME, PARAMETERS, ARGUMENTS)

NCCL(ncclGetVersion, (int *version), (version))
NCCL(ncclGetUniqueId, (ncclUniqueId * id), (id))
NCCL(ncclMemAlloc, (void **memory, size_t bytes), (memory, bytes))
NCCL(ncclMemFree, (void *memory), (memory))
NCCL(ncclCommInitRankConfig,
     (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank,
      ncclConfig_t *config),
     (comm, ranks, id, rank, config))
NCCL(ncclCommSplit,
     (ncclComm_t comm, int color, int key, ncclComm_t *made,
      ncclConfig_t *config),
     (comm, color, key, made, config))
NCCL(ncclCommFinalize, (ncclComm_t comm), (comm))
NCCL(ncclCommDestroy, (ncclComm_t comm), (comm))
NCCL(ncclCommAbort, (ncclComm_t comm), (comm))
NCCL(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *error),
     (comm, error))
NCCL(ncclCommCount, (const ncclComm_t comm, int *count), (comm, count))
NCCL(ncclCommUserRank, (const ncclComm_t comm, int *rank), (comm, rank))
NCCL(ncclCommRegister,
     (const ncclComm_t comm, void *buffer, size_t bytes, void **handle),
     (comm, buffer, bytes, handle))
NCCL(ncclCommDeregister, (const ncclComm_t comm, void *handle), (comm, handle))
NCCL(ncclGroupStart, (), ())
NCCL(ncclGroupEnd, (), ())
NCCL(ncclAllReduce,
     (const void *from, void *to, size_t count, ncclDataType_t type,
      ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream),
     (from, to, count, type, operation, comm, stream))
NCCL(ncclReduceScatter,
     (const void *from, void *to, size_t count, ncclDataType_t type,
      ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream),
     (from, to, count, type, operation, comm, stream))
NCCL(ncclAllGather,
     (const void *from, void *to, size_t count, ncclDataType_t type,
      ncclComm_t comm, cudaStream_t stream),
     (from, to, count, type, comm, stream))
NCCL(ncclSend,
     (const void *from, size_t count, ncclDataType_t type, int peer,
      ncclComm_t comm, cudaStream_t stream),
     (from, count, type, peer, comm, stream))
NCCL(ncclRecv,
     (void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
      cudaStream_t stream),
     (to, count, type, peer, comm, stream))
RECKON_LAZY(nccl, "libnccl.so.2 cannot be opened", const char *,
            ncclGetErrorString, (ncclResult_t result), (result))
RECKON_LAZY(nccl, "libnccl.so.2 cannot be opened", const char *,
            ncclGetLastError, (ncclComm_t comm), (comm))

namespace reckon::cuda {

std::string ncclMissing() { return ::nccl().missing(); }

std::string ncclVersion() {
  int version = 0; // 22809: 2.28.9
  (void)ncclGetVersion(&version);
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

} // namespace reckon::cuda
