// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "training/contract/catalog.h"

namespace millrace::python {

// The exception of Python code as an error of a stream: its type and text, and then its traceback.
// Other exceptions than those of class Exception (Ctrl-C, an exit in a signal handler) are thrown
// again on the main thread. Other threads have no signal handlers.
//
// Requires: the GIL.
training::ReadError failure_of(nanobind::python_error& error, training::DataFault fault,
                               const std::string& what);

}  // namespace millrace::python
