// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// Client and Stream: millrace::Client and millrace::ClientStream without the GIL, and with Python's
// signals. Events are tuples, which millrace/events.py names.
void add_client(nanobind::module_& module);

}  // namespace millrace::python
