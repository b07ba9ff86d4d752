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
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
