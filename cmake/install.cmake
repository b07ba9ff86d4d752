# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, beside the targets: the package that find_package(millrace)
# finds. Components: program, development.
include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/millrace-config.cmake.in
                              ${CMAKE_BINARY_DIR}/package/millrace-config.cmake
                              INSTALL_DESTINATION ${package_directory})
# Before 1.0 a minor version may break what links the library.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/millrace-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/millrace-config.cmake
              ${CMAKE_BINARY_DIR}/package/millrace-config-version.cmake
        DESTINATION ${package_directory} COMPONENT development)
install(EXPORT millrace NAMESPACE millrace:: FILE millrace-targets.cmake
        DESTINATION ${package_directory} COMPONENT development)

# Users include a part of the headers, by names of their own.
set(public_headers ${CMAKE_BINARY_DIR}/package/include)
if(NOT MILLRACE_HAS_CUDA)
  set(no_kernels --except gpu/cuda/kernels.h)
endif()
string(JOIN " " write_headers ${MILLRACE_PYTHON3} -B ${CMAKE_SOURCE_DIR}/tools/public_headers.py ${public_headers} ${no_kernels})
install(CODE "execute_process(COMMAND ${write_headers} COMMAND_ERROR_IS_FATAL ANY)" COMPONENT development)
install(DIRECTORY ${public_headers}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
