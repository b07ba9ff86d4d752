// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/extension/datasets/array_column.h"
#include "training/contract/catalog.h"

namespace millrace::python {

// A catalog with more companions, whose entries are arrays of Python. Each has a column with the
// entries of every stream.
class ObjectCompanions final : public training::Catalog {
 public:
  // The columns have no stream yet: this adds them. Requires: the GIL. Throws the errors of
  // ArrayColumn::add().
  ObjectCompanions(std::shared_ptr<const training::Catalog> catalog,
                   const std::vector<CompanionFormat>& formats, std::vector<ArrayColumn> columns);

  const FrameType& frame_type() const override { return catalog_->frame_type(); }
  std::uint64_t size() const override { return catalog_->size(); }
  std::uint64_t frames(std::uint64_t stream) const override { return catalog_->frames(stream); }
  std::string name(std::uint64_t stream) const override { return catalog_->name(stream); }
  std::string meta(std::uint64_t stream) const override { return catalog_->meta(stream); }
  std::string unit(std::uint64_t stream) const override { return catalog_->unit(stream); }
  std::uint64_t converted_from(std::uint64_t stream) const override {
    return catalog_->converted_from(stream);
  }
  bool has_events(std::uint64_t stream) const override { return catalog_->has_events(stream); }
  std::vector<training::InnerEvent> events(std::uint64_t stream) const override {
    return catalog_->events(stream);
  }
  std::uint64_t digest() const override { return digest_; }
  std::string extent() const override { return catalog_->extent(); }
  std::span<const CompanionFormat> companions() const override { return formats_; }
  std::vector<std::uint64_t> parts() const override { return catalog_->parts(); }
  std::unique_ptr<training::CatalogReader> reader() const override;

 private:
  std::shared_ptr<const training::Catalog> catalog_;
  std::vector<CompanionFormat> formats_;  // those of catalog_ first
  std::vector<ArrayColumn> columns_;
  std::uint64_t digest_ = 0;
};

}  // namespace millrace::python
