# SPDX-License-Identifier: Apache-2.0
# The target headers_alone compiles each header of the libraries by itself, the private ones too and
# without precompiled ones, so that each includes what it uses. `all` leaves it out.
file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/*/*.h)
list(FILTER headers EXCLUDE REGEX "^(build|tests|bench|examples|python)/")
if(NOT MILLRACE_HAS_CUDA)
  list(FILTER headers EXCLUDE REGEX "^gpu/cuda/(calls|reader|slabs|sources)\\.h$")
endif()
foreach(header IN LISTS headers)
  set(source ${CMAKE_BINARY_DIR}/headers/${header}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
  list(APPEND header_sources ${source})
endforeach()
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${header_sources})
target_link_libraries(headers_alone PRIVATE millrace_options Boost::headers Threads::Threads)
target_include_directories(headers_alone PRIVATE ${CMAKE_SOURCE_DIR})
if(MILLRACE_HAS_CUDA)
  target_link_libraries(headers_alone PRIVATE CUDA::cudart_static)
endif()
