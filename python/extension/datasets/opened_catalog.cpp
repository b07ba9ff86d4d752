// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/opened_catalog.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/extension/datasets/object_catalog.h"
#include "python/extension/datasets/object_companions.h"
#include "python/extension/parts.h"
#include "python/extension/text.h"
#include "training/catalogs/companion_ratio.h"
#include "training/catalogs/excerpts.h"
#include "training/catalogs/open_catalog.h"
#include "training/keys/dataset_keys.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using training::Catalog;
using training::CompanionSource;

OpenedCatalog checked(training::OpenedCatalog opened) {
  if (!opened) refuse(opened.error().message);
  return {std::move(*opened)};
}

template <class Enum>
Enum named(const std::string& name) {
  const auto value = value_named<Enum>(name);
  if (!value) refuse("unknown type \"" + name + "\"");
  return *value;
}

// (name, from, frames_per_entry, entries_per_frame, element)
std::vector<CompanionSource> sources_from(nb::iterable entries) {
  using Ratio = std::optional<std::uint32_t>;
  std::vector<CompanionSource> sources;
  for (const nb::handle entry : entries) {
    auto& source =
        sources.emplace_back(CompanionSource{.name = bytes_of(entry[0]),
                                             .from = bytes_of(entry[1]),
                                             .frames_per_entry = nb::cast<Ratio>(entry[2]),
                                             .entries_per_frame = nb::cast<Ratio>(entry[3])});
    if (!entry[4].is_none())
      source.element = named<CompanionElement>(nb::cast<std::string>(entry[4]));
  }
  return sources;
}

// The files at a path, or several audio files. `progress` is called while the index is made, `warn`
// as in CatalogSettings.
OpenedCatalog open_files(nb::iterable paths, std::optional<std::string> element,
                         const std::string& deep, std::optional<double> rate,
                         std::optional<std::uint32_t> channels, bool convert, bool mapped,
                         const std::string& pipeline, nb::iterable companions,
                         const nb::callable& progress, const nb::callable& warn,
                         const std::string& extent, bool cuts_events) {
  training::CatalogSettings settings;
  for (const nb::handle path : paths) settings.files.push_back(bytes_of(path));
  if (settings.files.size() == 1) settings.path = std::exchange(settings.files, {}).front();
  if (element) settings.frames = named<Element>(*element);
  settings.deep = named<Element>(deep);
  settings.rate = rate;
  settings.channels = channels;
  settings.convert = convert;
  settings.mapped = mapped;
  settings.pipeline = pipeline;
  settings.companions = sources_from(companions);
  settings.extent = extent;
  settings.cuts_events = cuts_events;
  settings.progress = [&](std::uint64_t done, std::uint64_t total) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    progress(done, total);
  };
  settings.warn = [&](const std::string& sentence) { warn(sentence); };
  return checked(training::open_catalog(settings));
}

// Paths in fields are relative to the current directory.
OpenedCatalog with_files(const OpenedCatalog& opened, nb::iterable sources) {
  return checked(training::with_companions(opened.catalog, sources_from(sources), ""));
}

// (name, element, values, frames_per_entry, entries_per_frame, object)
OpenedCatalog with_objects(const OpenedCatalog& opened, nb::iterable entries) {
  std::vector<CompanionFormat> formats;
  std::vector<ArrayColumn> columns;
  for (const nb::handle entry : entries) {
    const auto& format = formats.emplace_back(
        CompanionFormat{.name = nb::cast<std::string>(entry[0]),
                        .element = named<CompanionElement>(nb::cast<std::string>(entry[1])),
                        .values = nb::cast<std::uint32_t>(entry[2]),
                        .frames_per_entry = nb::cast<std::uint32_t>(entry[3]),
                        .entries_per_frame = nb::cast<std::uint32_t>(entry[4])});
    ItemType type{.bytes = format.entry_bytes(), .noun = "companion '" + format.name + "'"};
    if (format.element == CompanionElement::f32) type.floats = SampleFormat::f32le;
    if (format.element == CompanionElement::f16) type.floats = SampleFormat::f16le;
    columns.emplace_back(nb::borrow(entry[5]), std::move(type));
  }
  return {std::make_shared<ObjectCompanions>(opened.catalog, formats, std::move(columns))};
}

OpenedCatalog of_object(const nb::object& source, std::uint64_t streams, const std::string& element,
                        std::uint32_t values, double rate, bool features, bool mapped,
                        const nb::callable& progress) {
  const FrameType type{named<Element>(element), values, rate, features};
  return {std::make_shared<ObjectCatalog>(source, streams, type, mapped, progress)};
}

OpenedCatalog joined(const std::vector<const OpenedCatalog*>& parts) {
  std::vector<std::shared_ptr<const Catalog>> catalogs;
  for (const OpenedCatalog* part : parts) catalogs.push_back(part->catalog);
  return checked(training::join(std::move(catalogs)));
}

// The streams that the keys select.
OpenedCatalog selected(const OpenedCatalog& opened, const training::DatasetKeys& keys) {
  const auto selection = training::selection_of(keys, opened.catalog->frame_type());
  if (!selection) refuse(selection.error().message);
  auto catalog = training::select_streams(opened.catalog, *selection);
  if (!catalog) refuse(catalog.error().message);
  return {std::move(*catalog)};
}

// The stream of the sources, and the frame of it, with which a stream begins.
std::uint64_t sources(const OpenedCatalog& opened) {
  const auto* excerpts = dynamic_cast<const training::Excerpts*>(opened.catalog.get());
  return excerpts == nullptr ? opened.catalog->size() : excerpts->sources();
}

nb::tuple place(const OpenedCatalog& opened, std::uint64_t stream) {
  const auto* excerpts = dynamic_cast<const training::Excerpts*>(opened.catalog.get());
  if (excerpts == nullptr) return nb::make_tuple(stream, 0);
  const auto [number, begin] = excerpts->place(stream);
  return nb::make_tuple(number, begin);
}

// A fact of one stream of a catalog.
template <auto get>
auto of_stream(const OpenedCatalog& opened, std::uint64_t stream) {
  const Catalog& catalog = *opened.catalog;
  if (stream < catalog.size()) return (catalog.*get)(stream);
  const std::string sentence = "stream " + std::to_string(stream) + ": there are " +
                               std::to_string(catalog.size()) + " streams";
  throw nb::index_error(sentence.c_str());
}

template <auto get>
nb::str text_of_stream(const OpenedCatalog& opened, std::uint64_t stream) {
  return text_of(of_stream<get>(opened, stream));
}

// The inner events: (kind, count, frames before it).
nb::list events(const OpenedCatalog& opened, std::uint64_t stream) {
  nb::list list;
  for (const training::InnerEvent& inner : of_stream<&Catalog::events>(opened, stream))
    list.append(nb::make_tuple(name_of(inner.event.kind), inner.event.count, inner.frame));
  return list;
}

nb::tuple frame_type(const OpenedCatalog& opened) {
  const FrameType& type = opened.catalog->frame_type();
  return nb::make_tuple(name_of(type.element), type.values, type.rate, type.features);
}

nb::list listed_companions(const OpenedCatalog& opened) {
  nb::list list;
  for (const CompanionFormat& format : opened.catalog->companions())
    list.append(nb::make_tuple(format.name, name_of(format.element), format.values,
                               format.frames_per_entry, format.entries_per_frame));
  return list;
}

nb::object empty_streams(const OpenedCatalog& opened) {
  const auto text = training::empty_streams_text(*opened.catalog);
  return text ? nb::object(text_of(*text)) : nb::none();
}

std::uint64_t all_frames(const OpenedCatalog& opened) {
  std::uint64_t frames = 0;
  for (std::uint64_t stream = 0; stream < opened.catalog->size(); ++stream)
    frames += opened.catalog->frames(stream);
  return frames;
}

// A tuple of frames_per_entry and entries_per_frame, or None if the lengths do not show them.
nb::object ratio_values(const training::CompanionRatio& ratio) {
  if (!ratio.found()) return nb::none();
  CompanionFormat format;
  ratio.set(format);
  return nb::make_tuple(format.frames_per_entry, format.entries_per_frame);
}

}  // namespace

void add_catalogs(nb::module_& module) {
  nb::class_<OpenedCatalog>(module, "Catalog")
      .def_prop_ro("size", [](const OpenedCatalog& opened) { return opened.catalog->size(); })
      .def_prop_ro("all_frames", &all_frames)
      .def_prop_ro("extent", [](const OpenedCatalog& opened) { return opened.catalog->extent(); })
      .def_prop_ro("empty_streams", &empty_streams)
      .def_prop_ro("frame_type", &frame_type)
      .def_prop_ro("companions", &listed_companions)
      .def("name", &text_of_stream<&Catalog::name>)
      .def("meta", &text_of_stream<&Catalog::meta>)
      .def("frames", &of_stream<&Catalog::frames>)
      .def_prop_ro("sources", &sources)
      .def("place", &place)
      .def("selected", &selected)
      .def("events", &events)
      .def("with_files", &with_files)
      .def("with_objects", &with_objects);
  module.def("is_file_of_audio", &training::is_file_of_audio);
  module.def("open_files", &open_files, nb::arg("paths"), nb::arg("element").none(),
             nb::arg("deep"), nb::arg("rate").none(), nb::arg("channels").none(),
             nb::arg("convert"), nb::arg("mapped"), nb::arg("pipeline"), nb::arg("companions"),
             nb::arg("progress"), nb::arg("warn"), nb::arg("extent"), nb::arg("cuts_events"));
  module.def("of_object", &of_object);
  module.def("join", &joined);
  nb::class_<training::CompanionRatio>(module, "CompanionRatio")
      .def(nb::init<>())
      .def("add", &training::CompanionRatio::add)
      .def("text", &training::CompanionRatio::text)
      .def("values", &ratio_values);
}

}  // namespace millrace::python
