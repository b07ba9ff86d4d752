# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: third-party headers that most sources include, compiled once. Sources must still include
# all that they use, because Clang's preset `fuzz` uses no precompiled headers.
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

# millrace_precompile(NAME [HEADERS…])
# HEADERS must not define constants with constructors (CLI11): these would be compiled again in each source.
file(WRITE ${CMAKE_BINARY_DIR}/empty.cpp "")
function(millrace_precompile name)
  if(use_precompiled)
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/empty.cpp)
    target_link_libraries(${name} PRIVATE millrace_options Boost::headers Threads::Threads)
    target_precompile_headers(${name} PRIVATE ${precompiled_headers} ${ARGN})
  endif()
endfunction()

# Makes `target` use the precompiled headers of `name`.
function(millrace_use_precompiled target name)
  if(use_precompiled)
    target_precompile_headers(${target} REUSE_FROM ${name})
    # GCC uses them only if -fPIC is the same, so programs need it too. With a precompiled std::string, GCC 12
    # gives false warnings about accesses out of bounds in inlined code.
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:-fPIC;-Wno-array-bounds;-Wno-stringop-overflow>")
  endif()
endfunction()
millrace_precompile(precompiled)
