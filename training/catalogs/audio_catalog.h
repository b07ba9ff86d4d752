// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "training/catalogs/frames/frame_source.h"
#include "training/catalogs/index/audio_index.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// Audio files as a catalog. Nothing is kept per stream: all is in the mapped index. Files of
// another rate or other channels than those of the catalog are converted.
class AudioCatalog final : public Catalog {
 public:
  // `type`: of the frames. `mapped`: as CatalogSettings. Before the first reader: conversions_of()
  // has no fault.
  AudioCatalog(AudioIndex index, const FrameType& type, bool mapped);

  const FrameType& frame_type() const override { return type_; }
  std::uint64_t size() const override { return index_.size(); }
  std::uint64_t frames(std::uint64_t stream) const override;
  std::string name(std::uint64_t stream) const override {
    return std::string(index_.stream(stream).name);
  }
  std::string meta(std::uint64_t stream) const override {
    return std::string(index_.stream(stream).meta);
  }
  std::string unit(std::uint64_t stream) const override;
  std::uint64_t converted_from(std::uint64_t stream) const override;
  bool decodes() const override;
  std::uint64_t digest() const override { return digest_; }
  std::unique_ptr<CatalogReader> reader() const override;

  // For readers. The path of the file of a stream.
  std::string path(std::uint64_t stream) const;
  const Index& index() const { return index_; }
  // The command that makes the index again; empty: the index is kept nowhere.
  std::string index_command() const;
  // The folder that relative paths in `meta` are relative to.
  const std::string& base() const { return base_; }
  bool mapped() const { return mapped_; }

 private:
  const Index index_;
  const std::string opened_;  // the folder or the manifest; empty: files
  const std::string base_;
  const FrameType type_;
  const bool mapped_;
  const bool converts_;  // the rate of some files
  const std::uint64_t digest_;
};

}  // namespace millrace::training
