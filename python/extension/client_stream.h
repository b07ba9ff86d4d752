// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// Adds Stream: millrace::ClientStream, which waits without the GIL and runs Python's signal
// handlers. Events are tuples, of which millrace/events.py makes objects. A ClientError is raised
// as the exception with the same name in millrace/errors.py.
void add_client_stream(nanobind::module_& module);

}  // namespace millrace::python
