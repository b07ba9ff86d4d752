# SPDX-License-Identifier: Apache-2.0
# The target headers_alone compiles headers of the libraries by themselves, private headers too, without
# precompiled headers. So each must include all that it uses. `all` does not build this target.
# A header with a source of the same name is left out: the source includes it first, and scripts/check-all
# compiles each source without precompiled headers.
get_property(folders DIRECTORY PROPERTY SUBDIRECTORIES)
list(TRANSFORM folders APPEND /*.h)
file(GLOB_RECURSE millrace_headers RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${folders})
if(NOT MILLRACE_HAS_CUDA)
  list(FILTER millrace_headers EXCLUDE REGEX "^gpu/cuda/(calls|reader|slabs|sources)\\.h$")
endif()
foreach(header IN LISTS millrace_headers)
  string(REGEX REPLACE "h$" "cpp" own_source ${CMAKE_SOURCE_DIR}/${header})
  if(EXISTS ${own_source})
    continue()
  endif()
  set(source ${CMAKE_BINARY_DIR}/headers/${header}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
  list(APPEND header_sources ${source})
endforeach()
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${header_sources})
set_target_properties(headers_alone PROPERTIES UNITY_BUILD OFF)
target_compile_options(headers_alone PRIVATE -g0)  # saves a sixth of the time
target_link_libraries(headers_alone PRIVATE millrace_options Boost::headers Threads::Threads)
target_include_directories(headers_alone PRIVATE ${CMAKE_SOURCE_DIR})
if(MILLRACE_HAS_CUDA)
  target_link_libraries(headers_alone PRIVATE CUDA::cudart_static)
endif()
