// SPDX-License-Identifier: Apache-2.0
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

#include "python/extension/parts.h"
#include "python/extension/recorded_stream.h"
#include "python/extension/text.h"
#include "recording/reader/recordings.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

[[noreturn]] void raise_os_error(const std::string& message) {
  PyErr_SetObject(PyExc_OSError, text_of(message).ptr());
  throw nb::python_error();
}

void translate_recording_error(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    PyErr_SetObject(PyExc_OSError, text_of(error.what()).ptr());
  }
}

// A directory of recorded streams. Requires: the GIL, in all calls; so one thread at a time reads.
// Only the first reading, of an object that no other thread has yet, is done without it.
class RecordingsObject {
 public:
  explicit RecordingsObject(nb::handle path) {
    const std::string directory = bytes_of(path);
    auto opened = [&] {
      const nb::gil_scoped_release other_threads_run;
      return recording::Recordings::open(directory);
    }();
    if (!opened) raise_os_error(opened.error());
    recordings_ = std::move(*opened);
  }

  bool refresh() { return recordings_->refresh(); }
  nb::list problems() const {
    nb::list list;
    for (const std::string& problem : recordings_->problems()) list.append(text_of(problem));
    return list;
  }

  nb::object find(std::uint64_t number) {
    auto found = recordings_->find(number);
    return found ? nb::cast(StreamObject(recordings_, std::move(*found))) : nb::none();
  }
  std::size_t count() { return recordings_->streams().size(); }
  nb::list streams() { return list_of(recordings_->streams()); }
  nb::list named(nb::handle name) { return list_of(recordings_->find(bytes_of(name))); }

 private:
  nb::list list_of(const std::vector<recording::RecordedStream>& streams) const {
    nb::list list;
    for (const recording::RecordedStream& stream : streams)
      list.append(nb::cast(StreamObject(recordings_, stream)));
    return list;
  }

  std::shared_ptr<recording::Recordings> recordings_;
};

}  // namespace

void add_recordings(nb::module_& module) {
  nb::register_exception_translator(translate_recording_error);
  add_recorded_stream(module);
  nb::class_<RecordingsObject>(module, "Recordings")
      .def(nb::init<nb::handle>())
      .def("refresh", &RecordingsObject::refresh)
      .def("problems", &RecordingsObject::problems)
      .def("find", &RecordingsObject::find)
      .def("named", &RecordingsObject::named)
      .def("count", &RecordingsObject::count)
      .def("streams", &RecordingsObject::streams);
}

}  // namespace millrace::python
