# SPDX-License-Identifier: Apache-2.0

add_library(millrace_options INTERFACE)
target_compile_features(millrace_options INTERFACE cxx_std_20)
# -Wno-mismatched-new-delete: if GCC 12 inlines only one of Asio's functions that allocate and free coroutine
# frames, it gives a false warning.
# UNITY_BUILD: of sources that are compiled together, GCC reports local names that another source uses in an unnamed
# namespace, and takes unnamed namespaces for those of a header.
target_compile_options(millrace_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-mismatched-new-delete>"
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wno-shadow;-Wno-subobject-linkage>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")

# millrace_library(SOURCES … [SERVICE_SOURCES …] DEPS millrace::base PRIVATE_DEPS … [INSTALL] [EXPORT_NAME worker])
# One static library per folder, named by its path: transport/net is millrace::transport_net. Without sources it is
# header-only.
# SERVICE_SOURCES: not in the Python package, which has only clients and workers, and which pip compiles on the user's
#   machine.
# DEPS: libraries that its headers include. PRIVATE_DEPS: libraries that only its sources include.
# INSTALL: programs that find_package(millrace) can link it, as EXPORT_NAME if given. Its DEPS and PRIVATE_DEPS must
#   be installed too, or be found by cmake/millrace-config.cmake.in.
# Only headers that tools/layers.toml makes public are installed.
function(millrace_library)
  cmake_parse_arguments(arg "INSTALL" "EXPORT_NAME" "SOURCES;SERVICE_SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(NOT MILLRACE_PYTHON)
    list(APPEND arg_SOURCES ${arg_SERVICE_SOURCES})
  endif()
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" name ${name})
  set(target millrace_${name})
  if(NOT arg_EXPORT_NAME)
    set(arg_EXPORT_NAME ${name})
  endif()
  if(MILLRACE_FUZZ)
    millrace_leave_out_coroutines(arg_SOURCES)
  endif()
  set(scope PUBLIC)
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:millrace_options> ${arg_PRIVATE_DEPS})
    millrace_use_precompiled(${target} precompiled)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(millrace::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_EXPORT_NAME})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
  target_link_libraries(${target} ${scope} ${arg_DEPS})
  if(arg_INSTALL)
    install(TARGETS ${target} EXPORT millrace ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
            INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
endfunction()

# Removes the sources with coroutines from the list: Clang 14, which compiles the fuzz targets, cannot
# compile them with AddressSanitizer. No target calls them.
function(millrace_leave_out_coroutines list)
  foreach(source IN LISTS ${list})
    file(STRINGS ${source} coroutines REGEX "co_await|co_return|co_spawn|EndlessTask" LIMIT_COUNT 1)
    if(NOT coroutines)
      list(APPEND others ${source})
    endif()
  endforeach()
  set(${list} ${others} PARENT_SCOPE)
endfunction()

# millrace_program(NAME millrace SOURCES main.cpp DEPS millrace::commands)
# An executable of that name, installed with the component `program`.
function(millrace_program)
  cmake_parse_arguments(arg "" "NAME" "SOURCES;DEPS" ${ARGN})
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE millrace_options ${arg_DEPS})
  millrace_use_precompiled(${arg_NAME} precompiled)
  install(TARGETS ${arg_NAME} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endfunction()
