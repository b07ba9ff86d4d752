// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace millrace::python {

// Names and paths are bytes, which need not be UTF-8. Python's texts have these bytes as
// os.fsdecode() makes them (surrogateescape).
//
// Requires: the GIL.

inline nanobind::str text_of(std::string_view bytes) {
  PyObject* text =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape");
  if (text == nullptr) throw nanobind::python_error();
  return nanobind::steal<nanobind::str>(text);
}

// Throws nanobind::python_error, a TypeError, if it is no text.
inline std::string bytes_of(nanobind::handle text) {
  PyObject* bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape");
  if (bytes == nullptr) throw nanobind::python_error();
  const auto kept = nanobind::steal<nanobind::bytes>(bytes);
  return {kept.c_str(), kept.size()};
}

// Throws a ValueError.
[[noreturn]] inline void refuse(std::string_view sentence) {
  PyErr_SetObject(PyExc_ValueError, text_of(sentence).ptr());
  throw nanobind::python_error();
}

}  // namespace millrace::python
