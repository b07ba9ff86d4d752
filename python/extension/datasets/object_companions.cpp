// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/object_companions.h"

#include <deque>

#include "training/catalogs/index/stream_digest.h"

namespace millrace::python {
namespace {

using training::CatalogReader;
using training::FrameReader;
using training::ReadError;

class CompanionsReader final : public FrameReader {
 public:
  CompanionsReader(std::unique_ptr<FrameReader> stream, std::size_t own,
                   std::vector<ArrayReader> entries)
      : stream_(std::move(stream)), own_(own), entries_(std::move(entries)) {}
  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) override {
    return stream_->frames(begin, count);
  }
  Result<Bytes, ReadError> entries(std::size_t companion, EntryRange range) override {
    if (companion < own_) return stream_->entries(companion, range);
    return entries_[companion - own_].read(range.begin, range.count);
  }
  std::string file() const override { return stream_->file(); }
  std::size_t memory() const override {
    std::size_t memory = stream_->memory();
    for (const ArrayReader& reader : entries_) memory += reader.memory();
    return memory;
  }

 private:
  std::unique_ptr<FrameReader> stream_;
  std::size_t own_;  // companions of `stream_`
  std::vector<ArrayReader> entries_;
};

class CompanionsReaders final : public CatalogReader {
 public:
  CompanionsReaders(const training::Catalog& catalog, std::span<const CompanionFormat> formats,
                    const std::vector<ArrayColumn>& columns)
      : catalog_(catalog), formats_(formats), reader_(catalog.reader()) {
    for (const ArrayColumn& column : columns) files_.emplace_back(column);
  }

  Result<std::unique_ptr<FrameReader>, ReadError> open(std::uint64_t stream) override {
    auto opened = reader_->open(stream);
    if (!opened) return opened.error();
    std::vector<ArrayReader> entries;
    const std::size_t own = formats_.size() - files_.size();
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const std::uint64_t length = formats_[own + i].entries_of(catalog_.frames(stream));
      auto column = ArrayReader::open(files_[i], stream, length);
      if (!column) return column.error();
      entries.push_back(std::move(*column));
    }
    return std::make_unique<CompanionsReader>(std::move(*opened), own, std::move(entries));
  }

 private:
  const training::Catalog& catalog_;
  std::span<const CompanionFormat> formats_;
  std::unique_ptr<CatalogReader> reader_;
  std::deque<ArrayFiles> files_;
};

}  // namespace

ObjectCompanions::ObjectCompanions(std::shared_ptr<const training::Catalog> catalog,
                                   const std::vector<CompanionFormat>& formats,
                                   std::vector<ArrayColumn> columns)
    : catalog_(std::move(catalog)), columns_(std::move(columns)) {
  training::StreamDigest digest;
  digest.add(catalog_->digest());
  for (std::size_t i = 0; i < formats.size(); ++i) {
    digest.add(formats[i].name);
    digest.add(name_of(formats[i].element));
    digest.add(std::uint64_t{formats[i].values});
    digest.add(std::uint64_t{formats[i].frames_per_entry});
    digest.add(std::uint64_t{formats[i].entries_per_frame});
    for (std::uint64_t stream = 0; stream < size(); ++stream)
      columns_[i].add(formats[i].entries_of(frames(stream)));
  }
  digest_ = digest.value();
  formats_.assign(catalog_->companions().begin(), catalog_->companions().end());
  formats_.insert(formats_.end(), formats.begin(), formats.end());
}

std::unique_ptr<CatalogReader> ObjectCompanions::reader() const {
  return std::make_unique<CompanionsReaders>(*catalog_, formats_, columns_);
}

}  // namespace millrace::python
