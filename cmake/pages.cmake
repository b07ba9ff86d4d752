# SPDX-License-Identifier: Apache-2.0

# millrace_page(target live_page FILES…): compiles the files into `target`. The function live_page(), declared in
# service/admin/pages.h, returns them. index.html is the page itself.
function(millrace_page target name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  set(script ${CMAKE_SOURCE_DIR}/cmake/page_source.cmake)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} "-DFILES=${ARGN}" -DSOURCE=${source} -P ${script}
    DEPENDS ${ARGN} ${script}
    COMMENT "Embedding ${name}"
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
