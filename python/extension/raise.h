// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// Sets the Python error that `name` of millrace/errors.py makes of the arguments. For exception
// translators, which must not throw: if Python raises another exception meanwhile, as a signal
// handler may, that one is set instead.
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
