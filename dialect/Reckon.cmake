# reckon_add_dialect(Train PREFIX train TD TrainOps.td SOURCES a.cpp ...
#                    [ENUMS] [ATTRS] [INTERFACES TrainInterfaces.td])
#
# One call per dialect folder: runs tablegen on TD, writes the reference page
# docs/reference/<prefix>.md into the build folder, and builds
# reckon_dialect_<prefix>.
# The generated headers land in the build folder beside their source, so they
# are included as "dialect/Train/TrainOps.h.inc".
function(reckon_add_dialect name)
  cmake_parse_arguments(ARG "ENUMS;ATTRS;TYPES" "PREFIX;TD;INTERFACES"
                        "SOURCES;DEPS" ${ARGN})
  string(TOLOWER ${name} lower)
  set(LLVM_TARGET_DEFINITIONS ${ARG_TD})
  mlir_tablegen(${name}Ops.h.inc -gen-op-decls)
  mlir_tablegen(${name}Ops.cpp.inc -gen-op-defs)
  mlir_tablegen(${name}Dialect.h.inc -gen-dialect-decls
                -dialect=${ARG_PREFIX})
  mlir_tablegen(${name}Dialect.cpp.inc -gen-dialect-defs
                -dialect=${ARG_PREFIX})
  if(ARG_ENUMS)
    mlir_tablegen(${name}Enums.h.inc -gen-enum-decls)
    mlir_tablegen(${name}Enums.cpp.inc -gen-enum-defs)
  endif()
  if(ARG_ATTRS)
    mlir_tablegen(${name}Attrs.h.inc -gen-attrdef-decls
                  -attrdefs-dialect=${ARG_PREFIX})
    mlir_tablegen(${name}Attrs.cpp.inc -gen-attrdef-defs
                  -attrdefs-dialect=${ARG_PREFIX})
  endif()
  if(ARG_TYPES)
    mlir_tablegen(${name}Types.h.inc -gen-typedef-decls
                  -typedefs-dialect=${ARG_PREFIX})
    mlir_tablegen(${name}Types.cpp.inc -gen-typedef-defs
                  -typedefs-dialect=${ARG_PREFIX})
  endif()
  if(ARG_INTERFACES)
    set(LLVM_TARGET_DEFINITIONS ${ARG_INTERFACES})
    mlir_tablegen(${name}Interfaces.h.inc -gen-op-interface-decls)
    mlir_tablegen(${name}Interfaces.cpp.inc -gen-op-interface-defs)
  endif()
  add_public_tablegen_target(reckon_dialect_${lower}_inc)

  set(LLVM_TARGET_DEFINITIONS ${ARG_TD})
  tablegen(MLIR ${ARG_PREFIX}.md -gen-dialect-doc -dialect=${ARG_PREFIX})
  set(page ${PROJECT_BINARY_DIR}/docs/reference/${ARG_PREFIX}.md)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E copy
            ${CMAKE_CURRENT_BINARY_DIR}/${ARG_PREFIX}.md ${page}
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${ARG_PREFIX}.md)
  add_custom_target(reckon_dialect_${lower}_doc DEPENDS ${page})
  if(TARGET reckon_docs)
    add_dependencies(reckon_docs reckon_dialect_${lower}_doc)
  endif()

  add_library(reckon_dialect_${lower} STATIC ${ARG_SOURCES})
  add_dependencies(reckon_dialect_${lower} reckon_dialect_${lower}_inc)
  target_link_libraries(reckon_dialect_${lower} PUBLIC reckon_flags reckon_mlir
                        ${ARG_DEPS})
endfunction()
