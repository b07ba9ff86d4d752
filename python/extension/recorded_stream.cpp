// SPDX-License-Identifier: Apache-2.0
#include "python/extension/recorded_stream.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/event.h"
#include "python/extension/datasets/array_types.h"
#include "python/extension/text.h"
#include "recording/reader/joined_reader.h"
#include "recording/reader/stream_reader.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

// An answer or a message of a worker: text unless it is `bytes`. The Python file reads `json`.
template <class One>
nb::object data_of(const One& one) {
  if (one.kind == Answer::Kind::bytes) return nb::bytes(one.data.data(), one.data.size());
  return text_of(one.data);
}

std::uint64_t number_of(const recording::RecordedAnswer& answer) { return number(answer.batch); }
std::uint64_t number_of(const recording::RecordedMessage& message) { return message.number; }

constexpr double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

}  // namespace

const recording::StreamParts& StreamObject::parts() {
  if (std::exchange(changes_, recordings_->changes()) == recordings_->changes()) return parts_;
  for (recording::RecordedStream& part : parts_)
    if (auto now = recordings_->find(part.meta.number)) part = std::move(*now);
  facts_ = recording::summary_of(parts_);
  return parts_;
}

const recording::RecordedStream& StreamObject::facts() {
  parts();
  return facts_;
}

bool StreamObject::whole() { return facts().whole && (!frames_ || frames_->missing().empty()); }

std::uint64_t StreamObject::length() {
  return parts().size() == 1 ? facts().frames : read().frames();
}

nb::list StreamObject::listed_parts() {
  nb::list list;
  for (const recording::RecordedStream& part : parts()) {
    const auto first = recording::StreamReader(*recordings_, part).next();
    const auto* open = first ? std::get_if<recording::RecordedEvent>(&*first) : nullptr;
    const auto& key = part.meta.resumable;
    list.append(nb::make_tuple(part.meta.number, key ? nb::cast(key->epoch) : nb::none(),
                               part.begin, open ? open->event.rows : 0, part.frames));
  }
  return list;
}

recording::StreamFrames& StreamObject::read() {
  if (!frames_)
    frames_ = std::make_unique<recording::StreamFrames>(*recordings_, parts(),
                                                        recording::Repeated::left_out);
  else if (frames_changes_ != recordings_->changes())
    frames_->read_on();
  frames_changes_ = recordings_->changes();
  return *frames_;
}

nb::list StreamObject::events() {
  const std::int64_t opened = facts().meta.opened_steady;
  nb::list list;
  for (const recording::RecordedEvent& placed : read().events()) {
    const Event& event = placed.event;
    list.append(nb::make_tuple(text_of(name_of(event.kind)), text_of(name_of(event.cause)),
                               event.count, std::optional<std::uint64_t>(event.mark),
                               seconds(to_wire(placed.at) - opened), placed.position, placed.frame,
                               text_of(placed.text)));
  }
  return list;
}

nb::list StreamObject::missing() {
  nb::list list;
  for (const recording::MissingPart& part : read().missing())
    list.append(nb::make_tuple(part.begin, part.end, part.events, text_of(part.why)));
  return list;
}

template <class One>
nb::list StreamObject::recorded() {
  nb::list list;
  recording::JoinedReader reader(*recordings_, parts());
  while (const auto item = reader.next())
    if (const auto* one = std::get_if<One>(&*item))
      list.append(
          nb::make_tuple(one->seq, number_of(*one), text_of(name_of(one->kind)), data_of(*one)));
  return list;
}

nb::object StreamObject::frames(nb::handle_t<StreamObject> self, std::uint64_t begin,
                                std::optional<std::uint64_t> end) {
  auto& stream = nb::cast<StreamObject&>(self);
  const recording::StreamFrames& frames = stream.read();
  const std::uint64_t last = end.value_or(frames.frames());
  if (begin > last || last > frames.frames())
    throw nb::value_error(("frames(" + std::to_string(begin) + ", " + std::to_string(last) +
                           "): the stream has " + std::to_string(frames.frames()) + " frames")
                              .c_str());
  const FrameType& type = stream.facts_.meta.frames;
  const std::size_t shape[] = {last - begin, type.values};
  auto copy = std::make_unique<std::vector<std::byte>>();
  const Bytes bytes = frames.read(begin, last, *copy);
  nb::object owner = nb::borrow(self);
  if (!copy->empty()) {
    const auto free = [](void* memory) noexcept {
      delete static_cast<std::vector<std::byte>*>(memory);
    };
    owner = nb::capsule(copy.get(), free);
    copy.release();
  }
  const nb::ndarray<nb::numpy, nb::ro> array(bytes.data(), 2, shape, owner, nullptr,
                                             dtype_of(type.element));
  return nb::cast(array);
}

void add_recorded_stream(nb::module_& module) {
  using Stream = StreamObject;
  nb::class_<Stream>(module, "RecordedStream")
      .def_prop_ro("number", [](Stream& stream) { return stream.facts().meta.number; })
      .def_prop_ro("name", [](Stream& stream) { return text_of(stream.facts().meta.name); })
      .def_prop_ro("pipeline", [](Stream& stream) { return text_of(stream.facts().meta.pipeline); })
      .def_prop_ro("rule", [](Stream& stream) { return text_of(stream.facts().meta.rule); })
      .def_prop_ro("options", [](Stream& stream) { return text_of(stream.facts().meta.options); })
      .def_prop_ro("client", [](Stream& stream) { return text_of(stream.facts().meta.client); })
      .def_prop_ro("opened",
                   [](Stream& stream) { return seconds(stream.facts().meta.opened_wall); })
      .def_prop_ro("element",
                   [](Stream& stream) { return name_of(stream.facts().meta.frames.element); })
      .def_prop_ro("values", [](Stream& stream) { return stream.facts().meta.frames.values; })
      .def_prop_ro("rate", [](Stream& stream) { return stream.facts().meta.frames.rate; })
      .def_prop_ro("features", [](Stream& stream) { return stream.facts().meta.frames.features; })
      .def_prop_ro("key",
                   [](Stream& stream) {
                     const auto& key = stream.facts().meta.resumable;
                     return key ? std::optional(recording::to_hex(key->stream)) : std::nullopt;
                   })
      .def_prop_ro("parts", &Stream::listed_parts)
      .def_prop_ro("length", &Stream::length)
      .def_prop_ro("open", [](Stream& stream) { return stream.facts().open; })
      .def_prop_ro("whole", &Stream::whole)
      .def("events", &Stream::events)
      .def("missing", &Stream::missing)
      .def("answers", &Stream::recorded<recording::RecordedAnswer>)
      .def("messages", &Stream::recorded<recording::RecordedMessage>)
      .def("frames", &Stream::frames, nb::arg("begin"), nb::arg("end").none());
}

}  // namespace millrace::python
