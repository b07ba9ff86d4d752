// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/frame_type.h"
#include "python/extension/datasets/array_column.h"
#include "python/extension/datasets/text_column.h"
#include "training/contract/catalog.h"

namespace millrace::python {

// The streams of a Python object as a catalog. Lengths, names, meta and events are read once; the
// frames are read by an ArrayColumn.
//
// The object has `frames(i)`, `name(i)`, `unit(i)` (or None instead), `meta(i)` (JSON, or an empty
// text), `events(i)` (pairs of a kind and a count as for millrace.chunks, or None), and the
// functions of an ArrayColumn.
class ObjectCatalog final : public training::Catalog {
 public:
  // `mapped`: as ItemType. `progress` is called with the streams that are read, and their total.
  // Requires: the GIL. Throws nanobind::python_error: those of the object, after Ctrl-C, and a
  // ValueError for wrong lengths or events, or for a name that two streams have.
  ObjectCatalog(const nanobind::object& source, std::uint64_t streams, const FrameType& type,
                bool mapped, const nanobind::callable& progress);

  const FrameType& frame_type() const override { return type_; }
  std::uint64_t size() const override { return lengths_.size(); }
  std::uint64_t frames(std::uint64_t stream) const override { return lengths_[stream]; }
  std::string name(std::uint64_t stream) const override { return std::string(names_.at(stream)); }
  std::string meta(std::uint64_t stream) const override { return std::string(metas_.at(stream)); }
  std::string unit(std::uint64_t stream) const override {
    return units_ ? std::string(units_->at(stream)) : name(stream);
  }
  bool has_events(std::uint64_t stream) const override { return events_.contains(stream); }
  std::vector<training::InnerEvent> events(std::uint64_t stream) const override;
  std::uint64_t digest() const override { return digest_; }
  std::unique_ptr<training::CatalogReader> reader() const override;

 private:
  void add(const nanobind::object& source, std::uint64_t stream);
  void check_names() const;
  std::vector<training::InnerEvent> events_of(nanobind::handle pairs, std::uint64_t stream) const;

  FrameType type_;
  ArrayColumn column_;
  std::vector<std::uint64_t> lengths_;
  TextColumn names_, metas_;
  std::optional<TextColumn> units_;  // if they are not the names
  std::unordered_map<std::uint64_t, std::vector<training::InnerEvent>> events_;
  std::uint64_t digest_ = 0;
};

}  // namespace millrace::python
