// SPDX-License-Identifier: Apache-2.0
#include "python/extension/answers.h"

#include <cmath>
#include <string>
#include <utility>

namespace millrace::python {
namespace {

namespace nb = nanobind;
using Kind = Answer::Kind;

std::string text_of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* const begin = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (begin == nullptr) throw nb::python_error();  // a lone surrogate
  return {begin, static_cast<std::size_t>(size)};
}

std::string bytes_of(nb::handle object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_CONTIG_RO) != 0) throw nb::python_error();
  std::string bytes(static_cast<const char*>(view.buf), static_cast<std::size_t>(view.len));
  PyBuffer_Release(&view);
  return bytes;
}

// As json.dumps has it, without the call.
std::string number_of(double value) {
  char* const text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
  if (text == nullptr) throw nb::python_error();
  std::string number(text);
  PyMem_Free(text);
  return number;
}

// For the log: what is no Unicode is a question mark there.
std::string readable(const nb::str& text) {
  const auto encoded =
      nb::steal<nb::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "replace"));
  if (!encoded.is_valid()) throw nb::python_error();
  return {encoded.c_str(), encoded.size()};
}

Answer error_of(nb::handle exception) {
  return {Kind::error, readable(nb::str(exception.type().attr("__name__"))) + ": " +
                           readable(nb::str(exception))};
}

// An error of its row where a value cannot be said: it is not finite, or no Unicode.
template <class Text>
Answer said(Kind kind, Text text) {
  try {
    return {kind, text_of(text())};
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError)) throw;
    return error_of(error.value());
  }
}

Answer answer_of(nb::handle value, nb::handle encode) {
  PyObject* const object = value.ptr();
  if (value.is_none()) return {};
  if (PyFloat_CheckExact(object) && std::isfinite(PyFloat_AS_DOUBLE(object)))
    return {Kind::json, number_of(PyFloat_AS_DOUBLE(object))};
  if (PyUnicode_Check(object)) return said(Kind::text, [&] { return value; });
  if (PyBytes_Check(object) || PyByteArray_Check(object) || PyMemoryView_Check(object))
    return {Kind::bytes, bytes_of(value)};
  if (PyExceptionInstance_Check(object)) return error_of(value);
  return said(Kind::json, [&] { return encode(value); });
}

nb::list elements_of(nb::handle given) {
  if (nb::hasattr(given, "tolist")) return nb::list(given.attr("tolist")());
  if (PyUnicode_Check(given.ptr()) || PyBytes_Check(given.ptr()) || PyDict_Check(given.ptr()) ||
      PyAnySet_Check(given.ptr()))
    throw nb::type_error("answers are a sequence or an array: one for each row");
  return nb::list(given);
}

}  // namespace

std::vector<Answer> answers_from(nb::handle given, AnswerCount count, nb::handle encode) {
  if (given.is_none()) return {};
  const nb::list elements = elements_of(given);
  const std::size_t size = elements.size();
  if (size == 0) return {};
  if (size != count.rows && size != count.rows + count.padding) {
    const std::string sentence = std::to_string(size) + " answers for " +
                                 std::to_string(count.rows) + " rows: one for each, or none at all";
    throw nb::value_error(sentence.c_str());
  }
  std::vector<Answer> answers;
  answers.reserve(count.rows);
  for (std::size_t i = 0; i < count.rows; ++i) answers.push_back(answer_of(elements[i], encode));
  return answers;
}

}  // namespace millrace::python
