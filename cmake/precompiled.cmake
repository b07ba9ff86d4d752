# SPDX-License-Identifier: Apache-2.0
# The headers of others that most sources include, read once instead of hundreds of times. Sources
# include what they use all the same: Clang's preset `fuzz` reads no such header.
set(use_precompiled OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(use_precompiled ON)
endif()

set(precompiled_headers
  <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <deque> <filesystem> <fstream> <functional> <future>
  <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <stdexcept> <string> <string_view> <thread>
  <unordered_map> <utility> <variant> <vector>
  <boost/asio/as_tuple.hpp> <boost/asio/co_spawn.hpp> <boost/asio/experimental/awaitable_operators.hpp>
  <boost/asio/io_context.hpp> <boost/asio/ip/tcp.hpp> <boost/asio/post.hpp> <boost/asio/read.hpp>
  <boost/asio/use_awaitable.hpp> <boost/asio/write.hpp>)

# GCC reads them only in code that is as relocatable as they are: -fPIC in libraries, -fPIE in
# programs. CLI11 takes seconds, so what has a command line has a set with it.
# millrace_precompile(NAME -fPIC|-fPIE [HEADERS…])
file(WRITE ${CMAKE_BINARY_DIR}/empty.cpp "")
function(millrace_precompile name relocatable)
  if(use_precompiled)
    add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/empty.cpp)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE ${relocatable})
    target_link_libraries(${name} PRIVATE millrace_options Boost::headers Threads::Threads)
    target_precompile_headers(${name} PRIVATE ${precompiled_headers} ${ARGN})
  endif()
endfunction()

# Gives `target` the headers of `name`.
function(millrace_use_precompiled target name)
  if(use_precompiled)
    target_precompile_headers(${target} REUSE_FROM ${name})
    # GCC 12 takes what it inlines of a precompiled std::string for accesses out of bounds.
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-stringop-overflow>")
  endif()
endfunction()
millrace_precompile(precompiled -fPIC)
if(NOT MILLRACE_PYTHON)
  millrace_precompile(precompiled_commands -fPIC <CLI/CLI.hpp>)
  millrace_precompile(precompiled_programs -fPIE <CLI/CLI.hpp>)
endif()
