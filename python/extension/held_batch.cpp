// SPDX-License-Identifier: Apache-2.0
#include "python/extension/held_batch.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/companion.h"
#include "base/event.h"
#include "gpu/host/companion_layout.h"
#include "python/extension/answers.h"
#include "python/extension/datasets/array_types.h"
#include "python/extension/device_memory.h"
#include "python/extension/parts.h"
#include "python/extension/text.h"
#include "python/extension/without_gil.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using worker_protocol::OpenedStream;
using worker_protocol::RowEntry;

// The rows as in memory; row_fields() has the layout.
nb::bytes packed(const std::vector<RowEntry>& rows) {
  return nb::bytes(rows.data(), rows.size() * sizeof(RowEntry));
}

// The layout of a row, as an argument of NumPy's dtype().
nb::dict row_fields() {
  nb::list names, formats, offsets;
  const auto add = [&](const char* name, const char* format, std::size_t offset) {
    names.append(name);
    formats.append(format);
    offsets.append(offset);
  };
  add("stream", "u8", offsetof(RowEntry, stream));
  add("seq", "u8", offsetof(RowEntry, seq));
  add("begin", "u8", offsetof(RowEntry, begin));
  add("gap", "u8", offsetof(RowEntry, gap));
  add("mark", "i8", offsetof(RowEntry, mark));
  add("slot", "u4", offsetof(RowEntry, slot));
  add("left", "u4", offsetof(RowEntry, left));
  add("size", "u4", offsetof(RowEntry, size));
  add("right", "u4", offsetof(RowEntry, right));
  add("flags", "u1", offsetof(RowEntry, flags));
  add("reason", "u1", offsetof(RowEntry, reason));
  nb::dict fields;
  fields["names"] = names;
  fields["formats"] = formats;
  fields["offsets"] = offsets;
  fields["itemsize"] = sizeof(RowEntry);
  return fields;
}

// The names of ResetReason without `none`, which is 0.
nb::list reasons() {
  nb::list names;
  for (const ResetReason reason : values_of<ResetReason>())
    if (reason != ResetReason::none) names.append(name_of(reason));
  return names;
}

nb::list opened(const HeldBatch& held) {
  nb::list streams;
  for (const OpenedStream& stream : held.open().opened()) {
    const auto text = held.source().text_of(number(stream.stream));
    streams.append(nb::make_tuple(number(stream.stream), stream.slot,
                                  text_of(text ? text->name : stream.name),
                                  text_of(text ? text->options : stream.options)));
  }
  return streams;
}

nb::list messages(const HeldBatch& held) {
  nb::list all;
  for (const worker_protocol::Post& post : held.open().messages())
    all.append(
        nb::make_tuple(number(post.stream), post.seq, post.position, text_of(post.data), post.set));
  return all;
}

using Self = nb::handle_t<HeldBatch>;

nb::object array(Self self, ArrayLayout layout) {
  const auto& batch = nb::cast<const HeldBatch&>(self);
  if (batch.open().device() != nullptr)
    return nb::cast(DeviceMemory(nb::borrow(self), std::move(layout)));
  const nb::ndarray<nb::numpy> seen(const_cast<void*>(layout.begin), layout.shape.size(),
                                    layout.shape.data(), batch.owner(self), nullptr, layout.dtype);
  return nb::cast(seen);
}

nb::object tensor(Self self) {
  const auto& held = nb::cast<const HeldBatch&>(self);
  const WorkerBatch& batch = held.open();
  const FrameType& frames = held.source().frames();
  const std::byte* const begin =
      batch.device() != nullptr ? batch.device()->tensor : batch.data().data();
  return array(self,
               {begin, {batch.rows(), batch.width(), frames.values}, dtype_of(frames.element)});
}

// A control array of the tensor's rows; those of the marker rows are in `marks`. It is writable,
// because DLPack of NumPy before 2.1 has no read-only flag, and only this process reads it.
template <class As, auto on_host, auto on_device>
nb::object column(Self self) {
  const WorkerBatch& batch = nb::cast<const HeldBatch&>(self).open();
  const void* const begin =
      batch.device() != nullptr ? batch.device()->*on_device : (batch.*on_host)().data();
  return array(self, {begin, {batch.rows()}, nb::dtype<As>()});
}

// The companions [rows, entries, values] by their names.
nb::dict companions(Self self) {
  const auto& held = nb::cast<const HeldBatch&>(self);
  const WorkerBatch& batch = held.open();
  const auto formats = held.source().companions();
  const CompanionLayout layout = layout_of(formats, batch.rows(), batch.body());
  nb::dict arrays;
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const CompanionFormat& format = formats[i];
    const std::byte* const begin = batch.device() != nullptr
                                       ? batch.device()->companions + layout.offsets[i]
                                       : batch.companions()[i].data();
    arrays[format.name.c_str()] =
        array(self, {begin,
                     {batch.rows(), format.most_entries(batch.body()), format.values},
                     dtype_of(format.element)});
  }
  return arrays;
}

std::int64_t nanoseconds(Time time) { return time.time_since_epoch().count(); }

}  // namespace

HeldBatch::HeldBatch(WorkerBatch batch, BatchSource& source, nb::object keeps)
    : keeps_(std::move(keeps)),
      source_(&source),
      batch_(new WorkerBatch(std::move(batch)), Drop{&source}) {}

void HeldBatch::Drop::operator()(WorkerBatch* batch) const noexcept {
  source->drop(*batch);
  delete batch;
}

const WorkerBatch& HeldBatch::open() const {
  if (!open_)
    throw std::runtime_error("the batch was given back: its memory has another batch now");
  return *batch_;
}

void HeldBatch::use_on(std::uintptr_t stream) const {
  const WorkerBatch& batch = open();
  const WithoutGil waits;
  source_->use_on(batch, reinterpret_cast<DeviceStream>(stream));
}

std::vector<std::string> HeldBatch::done(nb::handle answers, nb::handle marks, nb::handle endpoint,
                                         nb::handle encode) {
  if (source_->lends()) return {};  // no client waits for answers, and the arrays stay valid
  std::vector<std::string> unfit;
  const std::size_t framed = open().framed().size(), rows = batch_->rows();
  auto row_answers = answers_from(answers, {framed, rows - framed, "answer", "row"}, encode, unfit);
  set_endpoints(row_answers, endpoint, {framed, rows - framed, "endpoint", "row"});
  const auto mark_answers =
      answers_from(marks, {batch_->marks().size(), 0, "mark", "marker row"}, encode, unfit);
  open();  // foreign code (`encode`, tolist) may have given the batch back
  {
    const WithoutGil waits;
    source_->done(*batch_, row_answers, mark_answers);
  }
  open_ = false;
  return unfit;
}

void HeldBatch::fail(nb::handle error) {
  if (source_->lends()) return;
  open();
  const std::string why = error_text(error);
  {
    const WithoutGil waits;
    source_->fail(*batch_, why);
  }
  open_ = false;
}

void add_batch(nb::module_& module) {
  module.attr("row_fields") = row_fields();
  module.attr("reasons") = reasons();
  nb::class_<HeldBatch>(module, "Batch")
      .def_prop_ro("id", [](const HeldBatch& b) { return number(b.open().id()); })
      .def_prop_ro("trigger", [](const HeldBatch& b) { return name_of(b.open().trigger()); })
      .def_prop_ro("closed", [](const HeldBatch& b) { return nanoseconds(b.open().closed()); })
      .def_prop_ro("taken", [](const HeldBatch& b) { return nanoseconds(b.open().taken()); })
      .def_prop_ro("rows", [](const HeldBatch& b) { return b.open().rows(); })
      .def_prop_ro("width", [](const HeldBatch& b) { return b.open().width(); })
      .def_prop_ro("data", &tensor)
      .def_prop_ro("slot", &column<std::int32_t, &WorkerBatch::slot, &DeviceArrays::slot>)
      .def_prop_ro("left", &column<std::int32_t, &WorkerBatch::left, &DeviceArrays::left>)
      .def_prop_ro("size", &column<std::int32_t, &WorkerBatch::size, &DeviceArrays::size>)
      .def_prop_ro("right", &column<std::int32_t, &WorkerBatch::right, &DeviceArrays::right>)
      .def_prop_ro("flags", &column<std::uint8_t, &WorkerBatch::flags, &DeviceArrays::flags>)
      .def_prop_ro("reset", &column<bool, &WorkerBatch::reset, &DeviceArrays::reset>)
      .def_prop_ro("framed", [](const HeldBatch& b) { return packed(b.open().framed()); })
      .def_prop_ro("marks", [](const HeldBatch& b) { return packed(b.open().marks()); })
      .def_prop_ro("opened", &opened)
      .def_prop_ro("messages", &messages)
      .def_prop_ro("epoch", [](const HeldBatch& b) { return b.open().epoch(); })
      .def_prop_ro("step", [](const HeldBatch& b) { return b.open().step(); })
      .def_prop_ro("steps", [](const HeldBatch& b) { return b.open().steps(); })
      .def_prop_ro("failed", [](const HeldBatch& b) { return std::string_view(b.open().failed()); })
      .def_prop_ro("companions", &companions)
      .def("use_on", &HeldBatch::use_on)
      .def_prop_ro("open", &HeldBatch::is_open)
      .def("fail", &HeldBatch::fail, nb::arg("error"))
      .def("done", &HeldBatch::done, nb::arg("answers").none(), nb::arg("marks").none(),
           nb::arg("endpoint").none(), nb::arg("encode"));
}

}  // namespace millrace::python
