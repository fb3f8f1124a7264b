# The CUDA toolkit, where this machine has one, for libreckon_cuda.so.
#
# Sets RECKON_CUDA_TOOLKIT to TRUE when the plugin can be built; else to FALSE,
# with RECKON_CUDA_MISSING saying why. No other target needs any of this.
set(RECKON_CUDA AUTO CACHE STRING
    "Build libreckon_cuda.so: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE RECKON_CUDA PROPERTY STRINGS AUTO ON OFF)
set(RECKON_CUDA_TOOLKIT FALSE)
set(RECKON_CUDA_MISSING "")

# The chips of frontends/spec/accelerators.csv: A100 (8.0), H100, H200 and H800
# (9.0a), B200, GB200 (10.0), B300 and GB300 (10.3): the last four share the
# family target 100f. The PTX of 8.0 is for chips that the catalogue does not
# have; their driver compiles it when the plugin is first loaded.
set(RECKON_CUDA_TARGETS 80 90a-real 100f-real)

find_program(RECKON_NVCC nvcc
             HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
if(RECKON_CUDA STREQUAL "OFF")
  set(RECKON_CUDA_MISSING "RECKON_CUDA is OFF")
elseif(RECKON_SANITIZE)
  # The emulated device runs the same sources, and sanitizers see into it.
  set(RECKON_CUDA_MISSING "RECKON_SANITIZE is set")
elseif(NOT RECKON_NVCC)
  set(RECKON_CUDA_MISSING "nvcc is not on PATH nor in /usr/local/cuda/bin")
else()
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${RECKON_NVCC})
  endif()
  if(NOT CMAKE_CUDA_HOST_COMPILER)
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  if(NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  # For CMake's own check of the compiler, which knows no family targets.
  set(CMAKE_CUDA_ARCHITECTURES 90)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit 13.0)
  endif()
  find_path(RECKON_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(RECKON_NCCL nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  if(NOT CMAKE_CUDA_COMPILER)
    set(RECKON_CUDA_MISSING "${RECKON_NVCC} compiles nothing here")
  elseif(NOT CUDAToolkit_FOUND)
    set(RECKON_CUDA_MISSING "the toolkit of ${RECKON_NVCC} is not CUDA 13.0 \
or later")
  elseif(NOT TARGET CUDA::cublasLt)
    set(RECKON_CUDA_MISSING "the toolkit has no cuBLASLt")
  elseif(NOT RECKON_NCCL_INCLUDE OR NOT RECKON_NCCL)
    set(RECKON_CUDA_MISSING "the toolkit has no NCCL (nccl.h, libnccl.so)")
  else()
    set(RECKON_CUDA_TOOLKIT TRUE)
  endif()
endif()

# cuDNN's graphs of attention are described by NVIDIA's header-only
# cudnn-frontend, which Debian does not have; setup-debian.sh fetches it.
if(RECKON_CUDA_TOOLKIT)
  find_path(RECKON_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_path(RECKON_CUDNN_FRONTEND cudnn_frontend.h
            PATHS ${PROJECT_SOURCE_DIR}/.cache/cudnn-frontend/include
            NO_DEFAULT_PATH)
  message(STATUS "CUDA ${CUDAToolkit_VERSION}: building libreckon_cuda.so for "
                 "${RECKON_CUDA_TARGETS}")
  if(NOT RECKON_CUDNN_INCLUDE OR NOT RECKON_CUDNN_FRONTEND)
    message(STATUS "cuDNN's cudnn.h or cudnn_frontend.h not found: bf16 "
                   "attention will be the plugin's own kernel "
                   "(cmake/setup-debian.sh fetches cudnn_frontend.h)")
  endif()
elseif(RECKON_CUDA STREQUAL "ON")
  message(FATAL_ERROR "expected a CUDA toolkit, for RECKON_CUDA is ON, but "
                      "${RECKON_CUDA_MISSING}; install CUDA 13 with NCCL or "
                      "use RECKON_CUDA=AUTO")
else()
  message(STATUS "libreckon_cuda.so is not built: ${RECKON_CUDA_MISSING}; the "
                 "emulated device runs the same sources")
endif()
