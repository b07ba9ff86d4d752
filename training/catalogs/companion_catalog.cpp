// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/companion_catalog.h"

#include <utility>

#include "training/catalogs/frames/idle_sources.h"
#include "training/catalogs/index/stream_digest.h"

namespace millrace::training {
namespace {

using IdleArrays = IdleSources<CompanionArray>;

std::uint64_t digest_of(const Catalog& catalog, const std::vector<CompanionFormat>& formats) {
  StreamDigest digest(catalog.digest());
  for (const CompanionFormat& format : formats) digest.add_companion(format);
  return digest.value();
}

class CompanionFrameReader final : public FrameReader {
 public:
  using Arrays = std::vector<std::unique_ptr<CompanionArray>>;

  CompanionFrameReader(std::uint64_t stream, std::unique_ptr<FrameReader> frames, Arrays arrays,
                       std::vector<IdleArrays>& idle)
      : stream_(stream),
        frames_(std::move(frames)),
        arrays_(std::move(arrays)),
        idle_(idle),
        failed_(arrays_.size()) {}
  ~CompanionFrameReader() override {
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (!failed_[i]) idle_[i].put(stream_, std::move(arrays_[i]));
  }

  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) override {
    return frames_->frames(begin, count);
  }
  Result<Bytes, ReadError> entries(std::size_t companion, EntryRange range) override {
    auto entries = arrays_[companion]->entries(range);
    if (!entries) failed_[companion] = true;
    return entries;
  }
  std::string file() const override { return frames_->file(); }
  std::size_t memory() const override {
    std::size_t memory = frames_->memory();
    for (const auto& array : arrays_) memory += array->memory();
    return memory;
  }

 private:
  const std::uint64_t stream_;
  const std::unique_ptr<FrameReader> frames_;
  Arrays arrays_;
  std::vector<IdleArrays>& idle_;
  std::vector<bool> failed_;  // the next reader opens the file again
};

class CompanionCatalogReader final : public CatalogReader {
 public:
  CompanionCatalogReader(std::unique_ptr<CatalogReader> frames,
                         const std::vector<CompanionFiles>& files,
                         const std::vector<CompanionFormat>& formats)
      : frames_(std::move(frames)), files_(files), formats_(formats), idle_(files.size()) {}

  Result<std::unique_ptr<FrameReader>, ReadError> open(std::uint64_t stream) override {
    auto frames = frames_->open(stream);
    if (!frames) return frames.error();
    CompanionFrameReader::Arrays arrays;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      auto array = idle_[i].take(stream);
      if (!array) {
        auto opened = files_[i].open(stream, formats_[i]);
        if (!opened) return opened.error();
        array = std::move(*opened);
      }
      arrays.push_back(std::move(array));
    }
    return std::make_unique<CompanionFrameReader>(stream, std::move(*frames), std::move(arrays),
                                                  idle_);
  }

 private:
  const std::unique_ptr<CatalogReader> frames_;
  const std::vector<CompanionFiles>& files_;
  const std::vector<CompanionFormat>& formats_;
  std::vector<IdleArrays> idle_;
};

}  // namespace

CompanionCatalog::CompanionCatalog(std::shared_ptr<const Catalog> catalog,
                                   std::vector<CompanionFiles> files,
                                   std::vector<CompanionFormat> formats)
    : catalog_(std::move(catalog)),
      files_(std::move(files)),
      formats_(std::move(formats)),
      digest_(digest_of(*catalog_, formats_)) {}

std::unique_ptr<CatalogReader> CompanionCatalog::reader() const {
  return std::make_unique<CompanionCatalogReader>(catalog_->reader(), files_, formats_);
}

OpenedCatalog with_companions(std::shared_ptr<const Catalog> catalog,
                              const std::vector<CompanionSource>& sources,
                              const std::string& base) {
  if (sources.empty()) return catalog;
  std::vector<CompanionFiles> files;
  std::vector<CompanionFormat> formats;
  for (const CompanionSource& source : sources) {
    auto found = CompanionFiles::find(*catalog, source, base);
    if (!found) return found.error();
    auto format = find_format(*catalog, *found);
    if (!format) return format.error();
    files.push_back(std::move(*found));
    formats.push_back(std::move(*format));
  }
  return std::make_shared<CompanionCatalog>(std::move(catalog), std::move(files),
                                            std::move(formats));
}

}  // namespace millrace::training
