# SPDX-License-Identifier: Apache-2.0
# All third-party libraries. All of them are in Debian 12.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(FlatBuffers REQUIRED)
find_package(cppzmq REQUIRED)
if(MILLRACE_PYTHON)
  return()
endif()
find_package(prometheus-cpp REQUIRED COMPONENTS core)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(isal REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(systemd REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(sndfile REQUIRED IMPORTED_TARGET sndfile)
# Debian's libjs-dygraphs: the plots of the live page.
find_path(dygraphs dygraph.min.js PATHS /usr/share/javascript/dygraphs NO_DEFAULT_PATH REQUIRED)
find_file(dygraphs_license copyright PATHS /usr/share/doc/libjs-dygraphs NO_DEFAULT_PATH REQUIRED)
