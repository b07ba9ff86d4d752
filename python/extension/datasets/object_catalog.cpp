// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/object_catalog.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "base/event.h"
#include "python/extension/text.h"
#include "training/catalogs/index/stream_digest.h"
#include "training/catalogs/index/stream_names.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using training::CatalogReader;
using training::FrameReader;
using training::InnerEvent;
using training::ReadError;

constexpr std::uint64_t progress_period = 4096;  // streams

class ObjectReader final : public FrameReader {
 public:
  explicit ObjectReader(ArrayReader frames) : frames_(std::move(frames)) {}
  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) override {
    return frames_.read(begin, count);
  }
  std::string file() const override { return frames_.file(); }
  std::size_t memory() const override { return frames_.memory(); }

 private:
  ArrayReader frames_;
};

class ObjectReaders final : public CatalogReader {
 public:
  ObjectReaders(const ObjectCatalog& catalog, const ArrayColumn& column)
      : catalog_(catalog), files_(column) {}
  Result<std::unique_ptr<FrameReader>, ReadError> open(std::uint64_t stream) override {
    auto frames = ArrayReader::open(files_, stream, catalog_.frames(stream));
    if (!frames) return frames.error();
    return std::make_unique<ObjectReader>(std::move(*frames));
  }

 private:
  const ObjectCatalog& catalog_;
  ArrayFiles files_;
};

}  // namespace

ObjectCatalog::ObjectCatalog(const nb::object& source, std::uint64_t streams, const FrameType& type,
                             bool mapped, const nb::callable& progress)
    : type_(type), column_(source, {.bytes = type.bytes(), .mapped = mapped, .noun = "frames"}) {
  training::StreamDigest digest;
  digest.add(name_of(type.element));
  digest.add(std::uint64_t{type.values});
  digest.add(std::to_string(type.rate));
  lengths_.reserve(streams);
  if (!source.attr("unit").is_none()) units_.emplace();
  for (std::uint64_t stream = 0; stream < streams; ++stream) {
    if (stream % progress_period == 0) {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      progress(stream, streams);
    }
    add(source, stream);
    digest.add(lengths_.back());
    digest.add(names_.at(stream));
    digest.add(metas_.at(stream));
    const auto events = events_.find(stream);
    if (events == events_.end()) continue;
    for (const InnerEvent& inner : events->second) {
      digest.add(inner.frame);
      digest.add(name_of(inner.event.kind));
      digest.add(inner.event.count);
    }
  }
  progress(streams, streams);
  digest_ = digest.value();
  check_names();
}

void ObjectCatalog::check_names() const {
  std::vector<std::string_view> names;
  names.reserve(size());
  for (std::uint64_t stream = 0; stream < size(); ++stream) names.push_back(names_.at(stream));
  if (const auto twice = training::repeated_name(std::move(names)))
    refuse(training::repeated_name_text("streams", *twice));
}

void ObjectCatalog::add(const nb::object& source, std::uint64_t stream) {
  const nb::object frames = source.attr("frames")(stream);
  std::uint64_t length = 0;
  if (!nb::try_cast(frames, length))
    refuse("frames(" + std::to_string(stream) + ") must be a whole number, not " +
           bytes_of(nb::repr(frames)));
  lengths_.push_back(length);
  names_.add(bytes_of(source.attr("name")(stream)));
  if (units_) units_->add(bytes_of(source.attr("unit")(stream)));
  metas_.add(bytes_of(source.attr("meta")(stream)));
  column_.add(length);
  const nb::object events = source.attr("events")(stream);
  if (events.is_none()) return;
  auto inner = events_of(events, stream);
  if (!inner.empty()) events_.emplace(stream, std::move(inner));
}

std::vector<InnerEvent> ObjectCatalog::events_of(nb::handle pairs, std::uint64_t stream) const {
  std::vector<InnerEvent> inner;
  std::uint64_t frames = 0;
  const std::string prefix = "events(" + std::to_string(stream) + "): ";
  for (const nb::handle pair : nb::borrow<nb::iterable>(pairs)) {
    std::string kind;
    std::uint64_t count = 0;
    if (!nb::isinstance<nb::sequence>(pair) || nb::len(pair) != 2 || !nb::try_cast(pair[0], kind) ||
        !nb::try_cast(pair[1], count, false))
      refuse(prefix + "must be pairs of a kind and a count, such as (\"frames\", 1600), not " +
             bytes_of(nb::repr(pair)));
    const auto known = value_named<Event::Kind>(kind);
    if (!known) refuse(prefix + "unknown kind \"" + kind + "\"");
    if (*known == Event::Kind::open)
      refuse(prefix + "\"open\" is only an event of recordings: begin with the event after it");
    if (*known == Event::Kind::frames) {
      frames += count;
      continue;
    }
    if (*known == Event::Kind::end) break;
    const Event event{*known, Cause::client, count};
    if (event.has_text()) continue;
    inner.push_back({event, frames});
    if (*known == Event::Kind::abort) break;
  }
  if (frames != lengths_[stream])
    refuse(prefix + "have " + std::to_string(frames) + " frames, but frames(" +
           std::to_string(stream) + ") is " + std::to_string(lengths_[stream]));
  return inner;
}

std::vector<InnerEvent> ObjectCatalog::events(std::uint64_t stream) const {
  const auto found = events_.find(stream);
  return found == events_.end() ? std::vector<InnerEvent>() : found->second;
}

std::unique_ptr<CatalogReader> ObjectCatalog::reader() const {
  return std::make_unique<ObjectReaders>(*this, column_);
}

}  // namespace millrace::python
