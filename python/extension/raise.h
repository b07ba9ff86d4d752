// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// Sets the error that `name` of millrace/errors.py makes of the arguments: sentences that a Python
// program sees are there. For exception translators, which must not throw: what Python raises
// meanwhile, as a signal's handler may, is the error instead.
//
// Requires: the GIL.
template <class... Arguments>
void raise(const char* name, const Arguments&... arguments) {
  try {
    const nanobind::object raised =
        nanobind::module_::import_("millrace.errors").attr(name)(arguments...);
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
  } catch (nanobind::python_error& error) {
    error.restore();
  }
}

}  // namespace millrace::python
