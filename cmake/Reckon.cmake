# Functions that every folder's CMakeLists.txt uses.

add_library(reckon_flags INTERFACE)
target_compile_options(reckon_flags INTERFACE -Wall -Wextra
                       -Wno-unused-parameter -Wno-missing-field-initializers)
target_include_directories(reckon_flags INTERFACE
                           ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
if(RECKON_SANITIZE)
  target_compile_options(reckon_flags INTERFACE
                         -fsanitize=${RECKON_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(reckon_flags INTERFACE -fsanitize=${RECKON_SANITIZE})
endif()

# lld links a tool with libMLIR in under a second, GNU ld in four.
find_program(RECKON_LLD NAMES ld.lld
             HINTS /usr/lib/llvm-22/bin NO_DEFAULT_PATH)
if(RECKON_LLD)
  get_filename_component(RECKON_LLD_DIR ${RECKON_LLD} DIRECTORY)
  add_link_options(-fuse-ld=lld -B${RECKON_LLD_DIR})
endif()

# reckon_library(NAME SOURCES a.cpp ... [DEPS x y])
# A static library of Reckon's own code.
function(reckon_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC reckon_flags ${ARG_DEPS})
endfunction()

# reckon_tool(NAME SOURCES a.cpp ... [DEPS x y])
# A program in build/bin.
function(reckon_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE reckon_flags ${ARG_DEPS})
endfunction()

# reckon_unit_test(NAME SOURCES a.cpp ... [DEPS x y])
# One GoogleTest program, registered with ctest. RECKON_TEST_RUNNER, such as
# valgrind with its options, goes before it.
set(RECKON_TEST_RUNNER "" CACHE STRING "Command that runs the unit tests")
function(reckon_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE reckon_flags ${ARG_DEPS}
                        GTest::gtest GTest::gtest_main)
  add_test(NAME ${name}
           COMMAND ${RECKON_TEST_RUNNER} $<TARGET_FILE:${name}>
                   --gtest_brief=1)
endfunction()

# Debian's libz3-dev has no CMake package.
find_path(RECKON_Z3_INCLUDE z3.h)
find_library(RECKON_Z3_LIBRARY z3)
if(NOT RECKON_Z3_INCLUDE OR NOT RECKON_Z3_LIBRARY)
  message(FATAL_ERROR "expected Z3, got no z3.h or libz3; "
                      "install Debian's libz3-dev (cmake/setup-debian.sh)")
endif()
add_library(z3::libz3 UNKNOWN IMPORTED)
set_target_properties(z3::libz3 PROPERTIES
  IMPORTED_LOCATION ${RECKON_Z3_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${RECKON_Z3_INCLUDE})
