// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "training/catalogs/companion_files.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// A catalog without companions, and companions from files.
class CompanionCatalog final : public Catalog {
 public:
  // Requires: as many formats as files. The files refer to `catalog`.
  CompanionCatalog(std::shared_ptr<const Catalog> catalog, std::vector<CompanionFiles> files,
                   std::vector<CompanionFormat> formats);

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
  std::vector<InnerEvent> events(std::uint64_t stream) const override {
    return catalog_->events(stream);
  }
  std::uint64_t digest() const override { return digest_; }
  std::string extent() const override { return catalog_->extent(); }
  std::span<const CompanionFormat> companions() const override { return formats_; }
  std::vector<std::uint64_t> parts() const override { return catalog_->parts(); }
  std::unique_ptr<CatalogReader> reader() const override;

 private:
  const std::shared_ptr<const Catalog> catalog_;
  const std::vector<CompanionFiles> files_;
  const std::vector<CompanionFormat> formats_;
  const std::uint64_t digest_;
};

}  // namespace millrace::training
