# SPDX-License-Identifier: Apache-2.0
# Install rules, besides those of the targets: the package that find_package(millrace) finds.
# Components: program, development.
include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/millrace-config.cmake.in
                              ${CMAKE_BINARY_DIR}/package/millrace-config.cmake
                              INSTALL_DESTINATION ${package_directory})
# Before 1.0 a minor version may break programs that link the library.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/millrace-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/millrace-config.cmake
              ${CMAKE_BINARY_DIR}/package/millrace-config-version.cmake
        DESTINATION ${package_directory} COMPONENT development)
install(EXPORT millrace NAMESPACE millrace:: FILE millrace-targets.cmake
        DESTINATION ${package_directory} COMPONENT development)

# Users include a part of the headers, as <millrace/…>. `millrace_headers` is from headers.cmake.
set(public_headers ${CMAKE_BINARY_DIR}/package/include)
if(NOT MILLRACE_HAS_CUDA)
  set(no_kernels --except gpu/cuda/kernels.h)
endif()
set(write_headers ${CMAKE_SOURCE_DIR}/tools/public_headers.py)
add_custom_command(
  OUTPUT ${public_headers}/written
  COMMAND ${MILLRACE_PYTHON3} -B ${write_headers} ${public_headers} ${no_kernels}
  COMMAND ${CMAKE_COMMAND} -E touch ${public_headers}/written
  DEPENDS ${millrace_headers} ${write_headers} ${CMAKE_SOURCE_DIR}/tools/layers.toml
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
add_custom_target(public_headers ALL DEPENDS ${public_headers}/written)
install(DIRECTORY ${public_headers}/millrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
