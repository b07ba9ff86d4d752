# SPDX-License-Identifier: Apache-2.0

# millrace_flatbuffers(target a.fbs …): generates a_generated.h in the build tree with flatc. Only the
# sources of `target` can include it.
function(millrace_flatbuffers target)
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/generated)
  foreach(schema ${ARGN})
    get_filename_component(name ${schema} NAME_WE)
    set(header ${directory}/${name}_generated.h)
    add_custom_command(
      OUTPUT ${header}
      COMMAND flatbuffers::flatc --cpp --cpp-std c++17 --scoped-enums -o ${directory}
              ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${schema} flatbuffers::flatc
      VERBATIM)
    target_sources(${target} PRIVATE ${header})
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE ${directory})
endfunction()
