// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/python_failure.h"

#include "python/extension/text.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

bool is_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

}  // namespace

training::ReadError failure_of(nb::python_error& error, training::DataFault fault,
                               const std::string& what) {
  if (!error.matches(PyExc_Exception) && is_main_thread()) throw error;
  try {
    (void)error.what();  // makes the exception, if C code has raised it
    const nb::object lines =
        nb::module_::import_("traceback")
            .attr("format_exception")(error.type(), error.value(), error.traceback());
    const nb::object summary = nb::module_::import_("traceback")
                                   .attr("format_exception_only")(error.type(), error.value());
    std::string text = what + ": " + bytes_of(nb::str("").attr("join")(summary));
    text += bytes_of(nb::str("").attr("join")(lines));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return {fault, text};
  } catch (nb::python_error&) {  // making the text failed
    return {fault, what + ": an exception without a text"};
  }
}

}  // namespace millrace::python
