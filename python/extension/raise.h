// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "python/extension/text.h"

namespace millrace::python {

template <class Argument>
const Argument& as_python(const Argument& argument) {
  return argument;
}
inline nanobind::str as_python(const std::string& text) { return text_of(text); }
inline nanobind::str as_python(const char* text) { return text_of(text); }

// Sets the Python error that `name` of millrace/errors.py makes of the arguments. For exception
// translators, which must not throw: if Python raises another exception meanwhile, as a signal
// handler may, that one is set instead.
//
// Requires: the GIL.
template <class... Arguments>
void raise(const char* name, const Arguments&... arguments) {
  try {
    const nanobind::object raised =
        nanobind::module_::import_("millrace.errors").attr(name)(as_python(arguments)...);
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
  } catch (nanobind::python_error& error) {
    error.restore();
  }
}

}  // namespace millrace::python
