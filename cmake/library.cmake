# SPDX-License-Identifier: Apache-2.0

add_library(millrace_options INTERFACE)
target_compile_features(millrace_options INTERFACE cxx_std_20)
target_compile_options(millrace_options INTERFACE -Wall -Wextra -Wshadow -Wconversion)

# millrace_library(NAME chunker HEADERS … SOURCES … DEPS millrace::base PRIVATE_DEPS …)
# One static library (header-only where there are no sources) per folder, with the alias
# millrace::<folder>. DEPS is what its headers include; PRIVATE_DEPS stays in its sources.
function(millrace_library)
  cmake_parse_arguments(arg "" "NAME" "HEADERS;SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target millrace_${arg_NAME})
  set(scope PUBLIC)
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:millrace_options> ${arg_PRIVATE_DEPS})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(millrace::${arg_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_sources(${target} ${scope} FILE_SET HEADERS
                 BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${arg_HEADERS})
  target_link_libraries(${target} ${scope} ${arg_DEPS})
endfunction()
