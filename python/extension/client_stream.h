// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// Stream: millrace::ClientStream without the GIL, and with Python's signals. Events are tuples,
// which millrace/events.py names; a ClientError is raised as the one of that name in
// millrace/errors.py.
void add_client_stream(nanobind::module_& module);

}  // namespace millrace::python
