// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// The values of an array or a scalar of NumPy or a similar library, an object with tolist(), as
// lists and numbers of Python. A float of 16 or 32 bits becomes a Python float with only the digits
// that this type needs: 0.1, where tolist() gives 0.10000000149011612.
//
// Requires: the GIL.
nanobind::object plain_values(nanobind::handle array);

}  // namespace millrace::python
