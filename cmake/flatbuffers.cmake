# SPDX-License-Identifier: Apache-2.0

# millrace_flatbuffers(target [EMBED] a.fbs …): generates a_generated.h in the build tree with flatc. Only the
# sources of `target` can include it. EMBED: also a_bfbs_generated.h, with the schema in binary form.
function(millrace_flatbuffers target)
  cmake_parse_arguments(arg "EMBED" "" "" ${ARGN})
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/generated)
  foreach(schema ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(name ${schema} NAME_WE)
    set(headers ${directory}/${name}_generated.h)
    if(arg_EMBED)
      list(APPEND headers ${directory}/${name}_bfbs_generated.h)
    endif()
    add_custom_command(
      OUTPUT ${headers}
      COMMAND flatbuffers::flatc --cpp --cpp-std c++17 --scoped-enums $<$<BOOL:${arg_EMBED}>:--bfbs-gen-embed>
              -o ${directory} ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${schema} flatbuffers::flatc
      COMMAND_EXPAND_LISTS VERBATIM)
    target_sources(${target} PRIVATE ${headers})
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE ${directory})
endfunction()
