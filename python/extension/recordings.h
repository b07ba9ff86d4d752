// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// Adds `Recordings`, a directory of recorded streams, and `RecordedStream`.
void add_recordings(nanobind::module_& module);

}  // namespace millrace::python
