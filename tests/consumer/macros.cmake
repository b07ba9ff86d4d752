# SPDX-License-Identifier: Apache-2.0
# Fails if a file in PREFIX for CMake or pkg-config defines a macro for programs that link Millrace: it
# could change what other libraries of the program are compiled to.
file(GLOB_RECURSE files ${PREFIX}/*.cmake ${PREFIX}/*.pc)
if(NOT files)
  message(FATAL_ERROR "nothing is installed in ${PREFIX}")
endif()
foreach(file IN LISTS files)
  file(STRINGS ${file} definitions REGEX "COMPILE_DEFINITIONS|[ \";]-D[A-Za-z_]")
  if(definitions)
    message(SEND_ERROR "${file}: ${definitions}")
  endif()
endforeach()
