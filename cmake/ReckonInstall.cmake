# cmake --install BUILD --component compiler --prefix DIR
#
# reckon and the compiler that it loads; libMLIR and the rest are the system's.
if(NOT TARGET reckon-run)
  message(FATAL_ERROR "ReckonInstall.cmake: include it after the programs")
endif()
if(TARGET reckon_compiler)
  install(TARGETS reckon reckon_compiler
    RUNTIME DESTINATION bin COMPONENT compiler
    LIBRARY DESTINATION lib COMPONENT compiler)
  set_target_properties(reckon_compiler PROPERTIES
    INSTALL_RPATH_USE_LINK_PATH ON)
endif()

# cmake --install BUILD --component runtime --prefix DIR
#
# A folder for compute nodes that may be moved or copied: reckon-run and the
# shared libraries that it needs, apart from the C library's own, which belong
# to the kernel and loader of each machine.
install(TARGETS reckon-run RUNTIME DESTINATION bin COMPONENT runtime)
# The same in the build folder, where CMake would else pad it with empty
# entries: the current directory.
set_target_properties(reckon-run PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "$ORIGIN/../lib"
  INSTALL_RPATH_USE_LINK_PATH OFF)
# As RPATH and not as RUNPATH, which holds for the program's own libraries but
# not for theirs: libdnnl needs libOpenCL.
target_link_options(reckon-run PRIVATE -Wl,--disable-new-dtags)

# The CUDA device, which reckon-run looks for in ../lib when it is asked for.
# NVIDIA's libraries, a gigabyte, stay with the machine.
set(plugin_note "")
if(TARGET reckon_cuda)
  install(TARGETS reckon_cuda LIBRARY DESTINATION lib COMPONENT runtime)
  set(plugin_note "\
lib/libreckon_cuda.so, the CUDA device, is opened only for --device cuda, or for
--device auto where there is a GPU. It needs libcublasLt.so.\
${CUDAToolkit_VERSION_MAJOR}, plans need
libnccl.so.2, and libcudnn.so.9 makes it faster: load the cluster's CUDA module,
set LD_LIBRARY_PATH, or copy them into lib/.

")
endif()

install(CODE "set(plugin_note [[${plugin_note}]])" COMPONENT runtime)
install(CODE [[
  set(program "${CMAKE_INSTALL_PREFIX}/bin/reckon-run")
  set(target "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
  set(glibc "^(ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv)\\.so.*")
  file(GET_RUNTIME_DEPENDENCIES
    EXECUTABLES "$ENV{DESTDIR}${program}"
    RESOLVED_DEPENDENCIES_VAR found
    UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES "${glibc}")
  if(missing)
    message(FATAL_ERROR "reckon-run needs libraries that are not here: "
                        "${missing}; install them and try again")
  endif()
  file(MAKE_DIRECTORY "${target}/lib")
  set(names "")
  foreach(library ${found})
    file(REAL_PATH "${library}" real)
    get_filename_component(name "${library}" NAME)
    # Under the name that the loader looks for, not the versioned one.
    configure_file("${real}" "${target}/lib/${name}" COPYONLY)
    string(APPEND names "  ${name}\n")
  endforeach()
  file(WRITE "${target}/README" "\
Reckon's runtime. bin/reckon-run finds its libraries in lib/, wherever this
folder lies; copy it to the compute nodes or to a file system that they share,
and put bin/ on PATH or name bin/reckon-run in RECKON_RUN.

The C library is the machine's: Debian 12's or a later one (glibc 2.36).

${plugin_note}\
Libraries in lib/, copied from the machine that built this:
${names}")
]] COMPONENT runtime)
