# SPDX-License-Identifier: Apache-2.0
# Debian packages, by CPack: `millrace` and `libmillrace-dev`. scripts/packages builds them.
# The component `service` has the files of the system service. Only packages install it.
set(packaging ${CMAKE_SOURCE_DIR}/packaging)
set(built ${CMAKE_BINARY_DIR}/package)
configure_file(${packaging}/changelog.in ${built}/changelog @ONLY)

function(millrace_install_service files directory)
  install(FILES ${files} DESTINATION ${directory} COMPONENT service EXCLUDE_FROM_ALL)
endfunction()
millrace_install_service(${packaging}/millrace.toml /etc/millrace)
millrace_install_service(${packaging}/millrace.service /lib/systemd/system)
millrace_install_service("${packaging}/gpu.conf;${packaging}/keys.conf" /usr/share/doc/millrace/examples)
millrace_install_service("${packaging}/copyright;${built}/changelog" /usr/share/doc/millrace)
install(FILES ${packaging}/copyright ${built}/changelog DESTINATION /usr/share/doc/libmillrace-dev
        COMPONENT package_documents EXCLUDE_FROM_ALL)
install(FILES ${packaging}/millrace.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Millrace developers <millrace@users.noreply.github.com>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_files.cmake)
set(CPACK_COMPONENTS_ALL program service development package_documents)
set(CPACK_COMPONENT_PROGRAM_GROUP program)
set(CPACK_COMPONENT_SERVICE_GROUP program)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP development)
set(CPACK_COMPONENT_PACKAGE_DOCUMENTS_GROUP development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "chunks, batches and state resets for streaming models")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME millrace)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "The service receives live streams of audio or features over WebSocket or
 ZeroMQ, batches their chunks for workers that hold a model, and returns the
 results.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "adduser, ca-certificates, init-system-helpers (>= 1.54~)")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(script postinst prerm postrm conffiles)
  list(APPEND CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${packaging}/scripts/${script})
endforeach()

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmillrace-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Static libraries, headers and CMake files for workers and clients in C++.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libboost1.81-dev, libboost-json1.81-dev, libssl-dev, libzmq3-dev")
include(CPack)
cpack_add_component_group(program)
cpack_add_component_group(development)
