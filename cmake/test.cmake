# SPDX-License-Identifier: Apache-2.0

# millrace_test(chunker SOURCES a_test.cpp … DEPS millrace::chunker)
# One Catch2 binary <folder>_test per folder; each of its cases is a CTest test with the folder as
# label.
function(millrace_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_test ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE millrace_options millrace_test_main ${arg_DEPS})
  catch_discover_tests(${name}_test TEST_PREFIX "${name}: " PROPERTIES LABELS ${name} TIMEOUT 120)
endfunction()
