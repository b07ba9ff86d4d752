// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// Adds Client: millrace::Client, which waits without the GIL. Its streams are those of
// client_stream.h.
void add_client(nanobind::module_& module);

}  // namespace millrace::python
