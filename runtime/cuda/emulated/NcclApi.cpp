//===- NcclApi.cpp - the emulated functions of NCCL -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/emulated/NcclApi.h"

#include "runtime/cuda/emulated/NcclComm.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace reckon::cuda::emulated {

namespace {

void configure(ncclComm &communicator, const ncclConfig_t *config) {
  if (!config)
    return;
  communicator.blocking = config->blocking != 0;
  communicator.name = config->commName ? config->commName : "";
  communicator.stalled = !communicator.name.empty() &&
                         communicator.name == NcclDevice::get().faults.stalled;
}

bool valid(const ncclConfig_t *config) {
  return !config ||
         (config->magic == 0xcafebeef && config->size == sizeof(ncclConfig_t) &&
          (config->minCTAs == NCCL_CONFIG_UNDEF_INT ||
           config->maxCTAs == NCCL_CONFIG_UNDEF_INT ||
           config->minCTAs <= config->maxCTAs));
}

/// "COLOR KEY ADDRESS" of every rank of the parent.
struct SplitVote {
  int color = 0, key = 0;
  std::string address;
};

/// The job of a split: finds the ranks of `child`'s color and joins them.
Status split(ncclComm &parent, ncclComm &child, int color, int key) {
  std::ostringstream mine;
  mine << color << ' ' << key << ' ' << NcclWorld::freshAddress();
  auto all = parent.world.ranks->allGatherBytes(mine.str(), 0);
  RECKON_TRY(all);
  std::vector<std::pair<int, int>> members; // key, rank of the parent
  std::vector<SplitVote> votes(all->size());
  for (size_t r = 0; r < all->size(); ++r) {
    std::istringstream in((*all)[r]);
    in >> votes[r].color >> votes[r].key >> votes[r].address;
    if (votes[r].color == color)
      members.emplace_back(votes[r].key, static_cast<int>(r));
  }
  if (color == NCCL_SPLIT_NOCOLOR)
    return Status();
  std::sort(members.begin(), members.end());
  auto self =
      std::find(members.begin(), members.end(), std::pair(key, parent.rank));
  child.rank = static_cast<int>(self - members.begin());
  child.size = static_cast<int>(members.size());
  auto first = static_cast<size_t>(members[0].second);
  auto world = NcclWorld::join(votes[first].address, child.rank, child.size,
                               &child.cancel);
  RECKON_TRY(world.status());
  child.world = std::move(*world);
  return Status();
}

void releaseJoints(ncclComm &communicator) {
  for (auto &[stream, events] : communicator.joints)
    for (cudaEvent_t event : {events.first, events.second})
      if (event)
        (void)cudaEventDestroy(event);
  communicator.joints.clear();
}

} // namespace

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error";
  case ncclSystemError:
    return "unhandled system error";
  case ncclInternalError:
    return "internal error";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  case ncclNumResults:
    break;
  }
  return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm) {
  auto communicator = NcclDevice::get().find(comm);
  return communicator && communicator->error != ncclSuccess
             ? communicator->errorText.c_str()
             : lastRefusal().c_str();
}

// --- Communicators ----------------------------------------------------------

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  *id = {};
  std::string address = NcclWorld::freshAddress();
  std::memcpy(id->internal, address.c_str(), address.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  *comm = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks || !valid(config))
    return refuse(ncclInvalidArgument,
                  "ncclCommInitRankConfig: invalid rank or configuration");
  auto communicator = std::make_shared<ncclComm>();
  communicator->rank = rank;
  communicator->size = ranks;
  configure(*communicator, config);
  NcclDevice::get().add(communicator);
  *comm = communicator.get();
  if (!communicator->stalled) {
    ncclComm *self = communicator.get();
    std::string address = id.internal;
    auto joined = std::make_shared<NcclWorld>();
    communicator->job =
        std::make_unique<NcclJob>([self, address, joined]() -> Status {
          auto world =
              NcclWorld::join(address, self->rank, self->size, &self->cancel);
          RECKON_TRY(world.status());
          *joined = std::move(*world);
          return Status();
        });
    communicator->whenEnded = [self, joined] {
      self->world = std::move(*joined);
    };
  }
  return begun(*communicator);
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key,
                           ncclComm_t *child, ncclConfig_t *config) {
  *child = nullptr;
  if (ncclResult_t refused = ready(parent, "ncclCommSplit"))
    return refused;
  if ((color < 0 && color != NCCL_SPLIT_NOCOLOR) || !valid(config))
    return refuse(ncclInvalidArgument,
                  "ncclCommSplit: invalid color or configuration");
  if (!parent->unfinished.empty() || inGroupCall())
    return refuse(ncclInvalidUsage,
                  "ncclCommSplit: communicator '" + parent->name +
                      "' has operations that are not complete");
  auto communicator = std::make_shared<ncclComm>();
  communicator->blocking = parent->blocking;
  configure(*communicator, config);
  parent->stalled = std::exchange(communicator->stalled, false) &&
                    color != NCCL_SPLIT_NOCOLOR;
  parent->child = communicator;
  if (!parent->stalled)
    parent->job = std::make_unique<NcclJob>([parent, communicator, color, key] {
      return split(*parent, *communicator, color, key);
    });
  parent->whenEnded = [parent, color, child] {
    auto made = std::exchange(parent->child, nullptr);
    if (color == NCCL_SPLIT_NOCOLOR)
      return;
    NcclDevice::get().add(made);
    *child = made.get();
  };
  return begun(*parent);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (ncclResult_t refused = ready(comm, "ncclCommFinalize"))
    return refused;
  comm->finalized = true;
  return begun(*comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  auto communicator = NcclDevice::get().find(comm);
  if (!communicator)
    return refuse(ncclInvalidArgument, "ncclCommDestroy: no communicator");
  if (!communicator->finalized) {
    communicator->blocking = true;
    if (ncclResult_t result = ncclCommFinalize(comm))
      return result;
  }
  if (communicator->busy() || communicator->world.ranks)
    return refuse(ncclInvalidUsage, "ncclCommDestroy: communicator '" +
                                        communicator->name +
                                        "' is still being finalized");
  communicator->aborted = true; // what a captured graph may still launch
  releaseJoints(*communicator);
  NcclDevice::get().remove(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  auto communicator = NcclDevice::get().find(comm);
  if (!communicator)
    return refuse(ncclInvalidArgument, "ncclCommAbort: no communicator");
  communicator->abort();
  releaseJoints(*communicator);
  NcclDevice::get().remove(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  auto communicator = NcclDevice::get().find(comm);
  if (!communicator)
    return refuse(ncclInvalidArgument,
                  "ncclCommGetAsyncError: no communicator");
  *error = communicator->settle();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  if (ncclResult_t refused = ready(comm, "ncclCommCount"))
    return refused;
  *count = comm->size;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  if (ncclResult_t refused = ready(comm, "ncclCommUserRank"))
    return refused;
  *rank = comm->rank;
  return ncclSuccess;
}

// --- Memory -----------------------------------------------------------------

ncclResult_t ncclMemAlloc(void **pointer, size_t bytes) {
  return cudaMalloc(pointer, bytes) == cudaSuccess
             ? ncclSuccess
             : refuse(ncclUnhandledCudaError, "ncclMemAlloc: out of memory");
}

ncclResult_t ncclMemFree(void *pointer) {
  return cudaFree(pointer) == cudaSuccess
             ? ncclSuccess
             : refuse(ncclUnhandledCudaError,
                      "ncclMemFree: not memory of this device");
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *base, size_t bytes,
                              void **handle) {
  if (ncclResult_t refused = ready(comm, "ncclCommRegister"))
    return refused;
  if (!base || bytes == 0 || !comm->registered.insert(base).second)
    return refuse(ncclInvalidArgument,
                  "ncclCommRegister: no memory, or registered already");
  *handle = base;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
  if (ncclResult_t refused = ready(comm, "ncclCommDeregister"))
    return refused;
  return comm->registered.erase(handle)
             ? ncclSuccess
             : refuse(ncclInvalidArgument,
                      "ncclCommDeregister: nothing is registered as this");
}

// --- Faults -----------------------------------------------------------------

void setNcclFaults(const NcclFaults &faults) {
  NcclDevice::get().faults = faults;
}

void failCommunicators(const char *name, ncclResult_t error) {
  for (const auto &communicator : NcclDevice::get().communicators)
    if (communicator->name == name)
      communicator->fail(error, "a fault of the test");
}

size_t communicatorsAlive() { return NcclDevice::get().communicators.size(); }

} // namespace reckon::cuda::emulated
