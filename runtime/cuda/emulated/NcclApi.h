//===- NcclApi.h - the emulated part of NCCL ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The names, signatures and semantics of the NCCL functions that Reckon uses,
// as of nccl.h 2.28, over the CPU transport. Every communicator is a small
// world of its own, whose ranks are threads or processes of one host.
//
// What a program may not rely on does not work here:
//
//  - An operation begins at the head of its stream, and only when the earlier
//    ones of its communicator are complete, on whatever stream they are. It
//    ends when the other ranks have run theirs: a send waits for its receive,
//    however small the message is (NCCL itself has room for a few).
//  - What one group call has for one communicator runs as one operation, and
//    is put on the group's first stream of it; the group's other streams wait
//    for it and it for them. Different communicators are not joined.
//  - With NCCL_LAUNCH_ORDER_IMPLICIT=1 an operation begins only after all begun
//    that this device issued before it, of whatever communicator.
//  - Calls on a communicator that does not block return ncclInProgress, and
//    have put nothing on a stream until ncclCommGetAsyncError has said that
//    they are complete; another call before that is refused.
//  - After an error of another rank the streams stay where they are until
//    ncclCommAbort.
//
// What differs: sums of bf16 and f16 are accumulated in fp32 and rounded once.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_EMULATED_NCCLAPI_H
#define RECKON_RUNTIME_CUDA_EMULATED_NCCLAPI_H

#include "runtime/cuda/emulated/CudaRuntime.h"

#include <climits>

namespace reckon::cuda::emulated {

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_VERSION_CODE 22809

struct ncclComm;
using ncclComm_t = ncclComm *;

inline constexpr int NCCL_UNIQUE_ID_BYTES = 128;
struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclNumResults = 8,
};

enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3 };

enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
};

inline constexpr int NCCL_CONFIG_UNDEF_INT = INT_MIN;
inline constexpr int NCCL_SPLIT_NOCOLOR = -1;

struct ncclConfig_t {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char *netName;
  int splitShare;
  int trafficClass;
  const char *commName;
};
#define NCCL_CONFIG_INITIALIZER                                                \
  {sizeof(ncclConfig_t),                                                       \
   0xcafebeef,                                                                 \
   NCCL_VERSION_CODE,                                                          \
   NCCL_CONFIG_UNDEF_INT,                                                      \
   NCCL_CONFIG_UNDEF_INT,                                                      \
   NCCL_CONFIG_UNDEF_INT,                                                      \
   NCCL_CONFIG_UNDEF_INT,                                                      \
   nullptr,                                                                    \
   NCCL_CONFIG_UNDEF_INT,                                                      \
   NCCL_CONFIG_UNDEF_INT,                                                      \
   nullptr}

ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);

// --- Communicators ----------------------------------------------------------

ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
/// *child is null until the parent's asynchronous state is ncclSuccess.
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key,
                           ncclComm_t *child, ncclConfig_t *config);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);

ncclResult_t ncclMemAlloc(void **pointer, size_t bytes);
ncclResult_t ncclMemFree(void *pointer);
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *base, size_t bytes,
                              void **handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);

// --- Operations: counts are elements ----------------------------------------

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count,
                           ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count,
                               ncclDataType_t type, ncclRedOp_t reduction,
                               ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *in, void *out, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);
/// Between ranks of communicators of at most 8 ranks.
ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();

// --- What a real NCCL does not have: faults, for tests ----------------------

struct NcclFaults {
  /// Queries that find a call still in progress.
  int pollsInProgress = 2;
  /// This rank never takes part in making communicators of this name.
  const char *stalled = "";
};
/// For this thread's device.
void setNcclFaults(const NcclFaults &faults);
/// Communicators of this name and thread report `error` from now on.
void failCommunicators(const char *name, ncclResult_t error);
/// Communicators of this thread that are neither destroyed nor aborted.
size_t communicatorsAlive();

} // namespace reckon::cuda::emulated

#endif // RECKON_RUNTIME_CUDA_EMULATED_NCCLAPI_H
