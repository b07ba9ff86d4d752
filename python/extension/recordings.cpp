// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "python/extension/parts.h"
#include "python/extension/recorded_stream.h"
#include "python/extension/text.h"
#include "recording/reader/recordings.h"
#include "recording/reader/stream_parts.h"

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

  // By the number of any part.
  nb::object find(std::uint64_t number) {
    const auto found = recordings_->find(number);
    return found ? nb::cast(StreamObject(recordings_, parts_of(*found))) : nb::none();
  }
  std::size_t count() {
    std::size_t later = 0;
    for (const auto& [number, parts] : moved()) later += number != parts->front().meta.number;
    return recordings_->streams().size() - later;
  }
  nb::list streams() { return list_of(recordings_->streams()); }
  nb::list named(nb::handle name) { return list_of(recordings_->find(bytes_of(name))); }

 private:
  // The streams of several parts, by the numbers of their parts.
  using Moved = std::map<std::uint64_t, std::shared_ptr<const recording::StreamParts>>;

  const Moved& moved() {
    if (moved_changes_ == recordings_->changes()) return moved_;
    std::vector<recording::RecordedStream> resumable;
    for (const recording::RecordedStream& stream : recordings_->streams())
      if (stream.meta.resumable) resumable.push_back(stream);
    moved_.clear();
    for (recording::StreamParts& parts : recording::join_parts(resumable)) {
      if (parts.size() == 1) continue;
      const auto shared = std::make_shared<const recording::StreamParts>(std::move(parts));
      for (const recording::RecordedStream& part : *shared) moved_[part.meta.number] = shared;
    }
    moved_changes_ = recordings_->changes();
    return moved_;
  }
  recording::StreamParts parts_of(const recording::RecordedStream& stream) {
    const auto found = moved().find(stream.meta.number);
    return found == moved_.end() ? recording::StreamParts{stream} : *found->second;
  }
  // The streams of these recordings, each once.
  nb::list list_of(const std::vector<recording::RecordedStream>& recordings) {
    nb::list list;
    std::set<std::uint64_t> listed;
    for (const recording::RecordedStream& one : recordings) {
      auto parts = parts_of(one);
      if (parts.size() > 1 && !listed.insert(parts.front().meta.number).second) continue;
      list.append(nb::cast(StreamObject(recordings_, std::move(parts))));
    }
    return list;
  }

  std::shared_ptr<recording::Recordings> recordings_;
  Moved moved_;
  std::optional<std::uint64_t> moved_changes_;  // Recordings::changes() when it was made
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
