# cmake -DPLUGIN=FILE -DASKED=AUTO|ON|OFF -DSANITIZED=0|1 [-DWHY=TEXT]
#       -P plugin_built.cmake
#
# Fails if this machine has nvcc and the build has no plugin.
find_program(nvcc nvcc
             HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
if(EXISTS ${PLUGIN})
  message(STATUS "${PLUGIN} is there")
elseif(NOT nvcc)
  message(STATUS "skipped: no nvcc on this machine, so no libreckon_cuda.so and "
                 "no check of its registers, spills and loading")
elseif(ASKED STREQUAL "OFF" OR SANITIZED)
  message(STATUS "skipped: ${WHY}")
else()
  message(FATAL_ERROR "expected ${PLUGIN}, for ${nvcc} is on this machine, got "
                      "none; ${WHY}")
endif()
