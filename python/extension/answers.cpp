// SPDX-License-Identifier: Apache-2.0
#include "python/extension/answers.h"

#include <cmath>
#include <string>

#include "python/extension/plain_values.h"
#include "schemas/text.h"
#include "workers/library/worker.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using Kind = Answer::Kind;

std::string utf8_of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* const begin = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (begin == nullptr) throw nb::python_error();  // a lone surrogate
  return {begin, static_cast<std::size_t>(size)};
}

std::string content_of(nb::handle object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_CONTIG_RO) != 0) throw nb::python_error();
  std::string bytes(static_cast<const char*>(view.buf), static_cast<std::size_t>(view.len));
  PyBuffer_Release(&view);
  return bytes;
}

// The same text as json.dumps, without the call.
std::string number_of(double value) {
  char* const text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
  if (text == nullptr) throw nb::python_error();
  std::string number(text);
  PyMem_Free(text);
  return number;
}

// For the log: each character that UTF-8 cannot encode becomes a question mark.
std::string readable(const nb::str& text) {
  const auto encoded =
      nb::steal<nb::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "replace"));
  if (!encoded.is_valid()) throw nb::python_error();
  return {encoded.c_str(), encoded.size()};
}

// The text of an exception after a colon; empty if making the text raises an exception.
std::string message_of(nb::handle exception) {
  try {
    return ": " + readable(nb::str(exception));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return {};
  }
}

Answer error_of(nb::handle exception) { return {Kind::error, error_text(exception)}; }

// The raised exception as an object: Python may have its type and its text separately.
nb::object exception_of(nb::python_error& error) {
  if (PyExceptionInstance_Check(error.value().ptr())) return nb::borrow(error.value());
  return error.type()(error.value());
}

// An answer of this kind, or an error of the row if `text` raises ValueError: the value is not
// finite, or not Unicode.
template <class Text>
Answer answer_or_error(Kind kind, Text text, bool& fits) {
  try {
    return {kind, utf8_of(text())};
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError)) throw;
    fits = false;
    return error_of(exception_of(error));
  }
}

// `fits` becomes false if the value has no text.
Answer answer_of(nb::handle value, nb::handle encode, bool& fits) {
  PyObject* const object = value.ptr();
  if (value.is_none()) return {};
  if (PyFloat_CheckExact(object) && std::isfinite(PyFloat_AsDouble(object)))
    return {Kind::json, number_of(PyFloat_AsDouble(object))};
  if (PyUnicode_Check(object))
    return answer_or_error(
        Kind::text, [&] { return value; }, fits);
  if (PyBytes_Check(object) || PyByteArray_Check(object) || PyMemoryView_Check(object))
    return {Kind::bytes, content_of(value)};
  if (PyExceptionInstance_Check(object)) return error_of(value);
  if (nb::isinstance<Pending>(value)) return {Kind::pending};
  return answer_or_error(
      Kind::json, [&] { return encode(value); }, fits);
}

[[noreturn]] void refuse_type(nb::handle given, const AnswerCount& count) {
  const std::string sentence = std::string(count.answer) +
                               "s must be a sequence or an array, one for each " + count.row +
                               ", not " + nb::str(given.type().attr("__name__")).c_str();
  throw nb::type_error(sentence.c_str());
}

nb::list elements_of(nb::handle given, const AnswerCount& count) {
  nb::object elements = nb::hasattr(given, "tolist") ? plain_values(given) : nb::borrow(given);
  PyObject* const object = elements.ptr();
  if (PyUnicode_Check(object) || PyBytes_Check(object) || PyDict_Check(object) ||
      PyAnySet_Check(object) || !nb::hasattr(elements, "__iter__"))
    refuse_type(given, count);
  return nb::list(elements);
}

std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void check_number(std::size_t given, const AnswerCount& count) {
  if (given == count.rows || given == count.rows + count.padding) return;
  const std::string sentence = counted(given, count.answer) + " for " +
                               counted(count.rows, count.row) + ": give one for each, or None";
  throw nb::value_error(sentence.c_str());
}

// A bool, 0 or 1, also of NumPy and similar libraries. Other values are more likely a mistake, such
// as probabilities, or a mask with an axis too many.
bool bool_of(nb::handle value, const AnswerCount& count) {
  nb::object plain = nb::borrow(value);
  if (!PyLong_Check(value.ptr()) && nb::hasattr(value, "tolist")) plain = value.attr("tolist")();
  int overflow = 0;
  const long number =
      PyLong_Check(plain.ptr()) ? PyLong_AsLongAndOverflow(plain.ptr(), &overflow) : -1;
  if (number == 0 || number == 1) return number == 1;
  const std::string sentence =
      std::string("each ") + count.answer + " must be a bool, not " + nb::repr(plain).c_str();
  throw nb::type_error(sentence.c_str());
}

}  // namespace

std::string error_text(nb::handle exception) {
  const std::string words =
      readable(nb::str(exception.type().attr("__name__"))) + message_of(exception);
  return std::string(cut_text(words, Worker::longest_error));
}

std::vector<Answer> answers_from(nb::handle given, AnswerCount count, nb::handle encode,
                                 std::vector<std::string>& unfit) {
  if (given.is_none()) return {};
  const nb::list elements = elements_of(given, count);
  const std::size_t size = elements.size();
  if (size == 0) return {};
  check_number(size, count);
  std::vector<Answer> answers;
  answers.reserve(count.rows);
  for (std::size_t i = 0; i < count.rows; ++i) {
    bool fits = true;
    answers.push_back(answer_of(elements[i], encode, fits));
    if (!fits)
      unfit.push_back(std::string("the ") + count.answer + " to " + count.row + " " +
                      std::to_string(i) + " cannot be sent: " + answers.back().data);
  }
  return answers;
}

Answer answer_from(nb::handle value, nb::handle encode) {
  bool fits = true;
  Answer answer = answer_of(value, encode, fits);
  if (!fits) throw nb::value_error(("the value cannot be sent: " + answer.data).c_str());
  return answer;
}

void set_endpoints(std::vector<Answer>& answers, nb::handle given, AnswerCount count) {
  if (given.is_none()) return;
  const nb::list elements = elements_of(given, count);
  check_number(elements.size(), count);
  answers.resize(count.rows);
  for (std::size_t i = 0; i < count.rows; ++i) answers[i].endpoint = bool_of(elements[i], count);
}

}  // namespace millrace::python
