# The plans of `reckon-run --selftest` and the bundle for a bare GPU machine.
if(NOT TARGET reckon-run)
  message(FATAL_ERROR "ReckonSelfTest.cmake: include it after the programs")
endif()
if(NOT TARGET reckon_compiler)
  return()
endif()

# build/share/reckon/selftest, which reckon-run finds from build/bin.
set(plans ${CMAKE_BINARY_DIR}/share/reckon/selftest)
set(catalogue ${PROJECT_SOURCE_DIR}/frontends/spec/accelerators.csv)
add_custom_command(
  OUTPUT ${plans}/.complete
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/selftest-plans.sh $<TARGET_FILE:reckon>
          ${catalogue} ${plans}
  COMMAND ${CMAKE_COMMAND} -E touch ${plans}/.complete
  DEPENDS ${CMAKE_CURRENT_LIST_DIR}/selftest-plans.sh ${catalogue}
          reckon reckon_compiler
  COMMENT "Compiling the plans of the self-test"
  VERBATIM)
add_custom_target(selftest-plans ALL DEPENDS ${plans}/.complete)
install(DIRECTORY ${plans} DESTINATION share/reckon COMPONENT selftest
        PATTERN .complete EXCLUDE)

# ninja -C build selftest-bundle -> build/reckon-selftest.tar.gz
add_custom_target(selftest-bundle
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/selftest-bundle.sh ${CMAKE_BINARY_DIR}
          ${CMAKE_BINARY_DIR}/reckon-selftest.tar.gz
  COMMENT "Packing the self-test"
  VERBATIM)
add_dependencies(selftest-bundle selftest-plans reckon-run)
if(TARGET reckon_cuda_emulated_plugin)
  add_dependencies(selftest-bundle reckon_cuda_emulated_plugin)
endif()
if(TARGET reckon_cuda)
  add_dependencies(selftest-bundle reckon_cuda)
endif()
