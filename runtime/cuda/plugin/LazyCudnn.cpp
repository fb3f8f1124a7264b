//===- LazyCudnn.cpp - cuDNN, opened when it is needed --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/CudnnAttention.h"
#include "runtime/cuda/plugin/LazyLibrary.h"
#include "runtime/cuda/plugin/Versions.h"

#include <cudnn.h>

#include <cstdlib>
#include <string_view>

#define RECKON_STRING_(x) #x
#define RECKON_STRING(x) RECKON_STRING_(x)

namespace {

const reckon::cuda::LazyLibrary &cudnn() {
  static const reckon::cuda::LazyLibrary library(
      "libcudnn.so." RECKON_STRING(CUDNN_MAJOR));
  return library;
}

} // namespace

#define CUDNN(NAME, PARAMETERS, ARGUMENTS)                                     \
  RECKON_LAZY(cudnn, CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, cudnnStatus_t,    \
              NAME, PARAMETERS, ARGUMENTS)

CUDNN(cudnnCreate, (cudnnHandle_t * handle), (handle))
CUDNN(cudnnDestroy, (cudnnHandle_t handle), (handle))
CUDNN(cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream),
      (handle, stream))
CUDNN(cudnnGetStream, (cudnnHandle_t handle, cudaStream_t *stream),
      (handle, stream))
CUDNN(cudnnBackendCreateDescriptor,
      (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *made),
      (type, made))
CUDNN(cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor),
      (descriptor))
CUDNN(cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor), (descriptor))
CUDNN(cudnnBackendSetAttribute,
      (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
       cudnnBackendAttributeType_t type, int64_t count, const void *values),
      (descriptor, name, type, count, values))
CUDNN(cudnnBackendGetAttribute,
      (const cudnnBackendDescriptor_t descriptor,
       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
       int64_t room, int64_t *count, void *values),
      (descriptor, name, type, room, count, values))
CUDNN(cudnnBackendExecute,
      (cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
       cudnnBackendDescriptor_t variant),
      (handle, plan, variant))
RECKON_LAZY(cudnn, "libcudnn cannot be opened", const char *,
            cudnnGetErrorString, (cudnnStatus_t status), (status))
RECKON_LAZY(cudnn, 0, size_t, cudnnGetVersion, (), ())
extern "C" void cudnnGetLastErrorString(char *message, size_t room) {
  static auto *const function = cudnn().find<decltype(cudnnGetLastErrorString)>(
      "cudnnGetLastErrorString");
  if (function)
    function(message, room);
  else if (room > 0)
    *message = '\0';
}

namespace reckon::cuda {

std::string cudnnMissing() {
  const char *wanted = std::getenv("RECKON_CUDNN_ATTENTION");
  if (wanted && std::string_view(wanted) == "0")
    return "RECKON_CUDNN_ATTENTION=0";
  return ::cudnn().missing();
}

std::string cudnnVersion() {
  size_t version = cudnnGetVersion(); // 91900: 9.19.0
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

} // namespace reckon::cuda
