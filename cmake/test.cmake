# SPDX-License-Identifier: Apache-2.0

# Prefers the system's Python, because it has the system's packages.
find_program(MILLRACE_PYTHON3 python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(MILLRACE_PYTHON3 python3 REQUIRED)

# millrace_test(chunker SOURCES a_test.cpp … DEPS millrace::chunker)
# One Catch2 binary <folder>_test per folder. Each of its cases is a CTest test with the folder as label.
# A case whose name CTest cannot pass back (for example with a semicolon) fails. A case that prints
# `skipped: …` (tests/support/skipped.h) counts as skipped. Without `cpp_suites` the binary is built only on demand.
function(millrace_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_test ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE millrace_options millrace_test_main ${arg_DEPS})
  target_compile_options(${name}_test PRIVATE ${test_options})
  millrace_use_precompiled(${name}_test precompiled_tests)
  if(NOT cpp_suites)
    set_target_properties(${name}_test PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  catch_discover_tests(${name}_test TEST_PREFIX "${name}: " PROPERTIES LABELS ${name} TIMEOUT 300
                       FAIL_REGULAR_EXPRESSION "No tests ran" SKIP_REGULAR_EXPRESSION "skipped: ")
endfunction()

# millrace_python_test(tools a_test.py [ARGS…])
# A CTest test "tools: a_test" that runs the file, with the folder as label.
function(millrace_python_test folder file)
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME "${folder}: ${name}"
           COMMAND ${MILLRACE_PYTHON3} -B ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${ARGN})
  set_tests_properties("${folder}: ${name}" PROPERTIES LABELS ${folder} TIMEOUT 120)
endfunction()
