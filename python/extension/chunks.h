// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// Adds `chunks` and `values`: the chunk rules as functions.
void add_chunks(nanobind::module_& module);

}  // namespace millrace::python
