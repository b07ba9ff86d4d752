// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// Client: millrace::Client without the GIL, whose streams are those of client_stream.h.
void add_client(nanobind::module_& module);

}  // namespace millrace::python
