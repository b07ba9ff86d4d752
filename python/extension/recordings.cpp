// SPDX-License-Identifier: Apache-2.0
#include "python/extension/recordings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "python/extension/recorded_stream.h"
#include "recording/reader/recordings.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

[[noreturn]] void raise_os_error(const char* message) {
  PyErr_SetString(PyExc_OSError, message);
  throw nb::python_error();
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    PyErr_SetString(PyExc_OSError, error.what());
  }
}

// A directory of recorded streams. Requires: the GIL, in all calls; so one thread at a time reads.
class Recordings {
 public:
  explicit Recordings(const std::string& path) {
    auto opened = recording::Recordings::open(path);
    if (!opened) raise_os_error(opened.error().c_str());
    recordings_ = std::move(*opened);
  }

  bool refresh() { return recordings_->refresh(); }
  std::vector<std::string> problems() const { return recordings_->problems(); }

  nb::object find(std::uint64_t number) {
    auto found = recordings_->find(number);
    return found ? nb::cast(RecordedStream(recordings_, std::move(*found))) : nb::none();
  }
  std::size_t count() { return recordings_->streams().size(); }
  nb::list streams() { return list_of(recordings_->streams()); }
  nb::list named(const std::string& name) { return list_of(recordings_->find(name)); }

 private:
  nb::list list_of(const std::vector<recording::RecordedStream>& streams) const {
    nb::list list;
    for (const recording::RecordedStream& stream : streams)
      list.append(nb::cast(RecordedStream(recordings_, stream)));
    return list;
  }

  std::shared_ptr<recording::Recordings> recordings_;
};

}  // namespace

void add_recordings(nb::module_& module) {
  nb::register_exception_translator(translate);
  add_recorded_stream(module);
  nb::class_<Recordings>(module, "Recordings")
      .def(nb::init<const std::string&>())
      .def("refresh", &Recordings::refresh)
      .def("problems", &Recordings::problems)
      .def("find", &Recordings::find)
      .def("named", &Recordings::named)
      .def("count", &Recordings::count)
      .def("streams", &Recordings::streams);
}

}  // namespace millrace::python
