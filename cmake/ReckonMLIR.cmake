# MLIR 22 from Debian, linked as the two shared libraries only: naming one of
# its component archives beside them would put a second copy of MLIR's
# registries into the process.

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(reckon_mlir INTERFACE)
target_include_directories(reckon_mlir SYSTEM INTERFACE
                           ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_definitions(reckon_mlir INTERFACE ${LLVM_DEFINITIONS_LIST})
target_link_libraries(reckon_mlir INTERFACE MLIR LLVM)

# mlir-tblgen takes its include path from the folder's include directories.
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
