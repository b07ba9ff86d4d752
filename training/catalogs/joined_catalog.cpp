// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/joined_catalog.h"

#include <algorithm>
#include <utility>

#include "training/catalogs/index/stream_digest.h"

namespace millrace::training {
namespace {

class JoinedReader final : public CatalogReader {
 public:
  JoinedReader(const JoinedCatalog& catalog, std::vector<std::unique_ptr<CatalogReader>> readers)
      : catalog_(catalog), readers_(std::move(readers)) {}

  Result<std::unique_ptr<FrameReader>, ReadError> open(std::uint64_t stream) override {
    const auto place = catalog_.place(stream);
    return readers_[place.part]->open(place.stream);
  }

 private:
  const JoinedCatalog& catalog_;
  const std::vector<std::unique_ptr<CatalogReader>> readers_;
};

}  // namespace

JoinedCatalog::JoinedCatalog(Parts parts) : parts_(std::move(parts)) {
  StreamDigest digest;
  for (const auto& part : parts_) {
    begins_.push_back(begins_.back() + part->size());
    digest.add(part->size());
    digest.add(part->digest());
  }
  digest_ = parts_.size() == 1 ? parts_.front()->digest() : digest.value();
}

JoinedCatalog::Place JoinedCatalog::place(std::uint64_t stream) const {
  const auto after = std::ranges::upper_bound(begins_, stream);
  const auto part = static_cast<std::size_t>(after - begins_.begin()) - 1;
  return {.part = part, .stream = stream - begins_[part]};
}

bool JoinedCatalog::decodes() const {
  return std::ranges::any_of(parts_, [](const auto& part) { return part->decodes(); });
}

std::unique_ptr<CatalogReader> JoinedCatalog::reader() const {
  std::vector<std::unique_ptr<CatalogReader>> readers;
  for (const auto& part : parts_) readers.push_back(part->reader());
  return std::make_unique<JoinedReader>(*this, std::move(readers));
}

}  // namespace millrace::training
