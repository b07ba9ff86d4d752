// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "training/contract/catalog.h"

namespace millrace::training {

// Several catalogs as one, one after the other. Requires: they have the same frame type and the
// same companions, and there is at least one.
class JoinedCatalog final : public Catalog {
 public:
  using Parts = std::vector<std::shared_ptr<const Catalog>>;

  explicit JoinedCatalog(Parts parts);

  const FrameType& frame_type() const override { return parts_.front()->frame_type(); }
  std::uint64_t size() const override { return begins_.back(); }
  std::uint64_t frames(std::uint64_t stream) const override { return of(&Catalog::frames, stream); }
  std::string name(std::uint64_t stream) const override { return of(&Catalog::name, stream); }
  std::string meta(std::uint64_t stream) const override { return of(&Catalog::meta, stream); }
  std::string unit(std::uint64_t stream) const override { return of(&Catalog::unit, stream); }
  std::uint64_t converted_from(std::uint64_t stream) const override {
    return of(&Catalog::converted_from, stream);
  }
  bool decodes() const override;
  bool has_events(std::uint64_t stream) const override { return of(&Catalog::has_events, stream); }
  std::vector<InnerEvent> events(std::uint64_t stream) const override {
    return of(&Catalog::events, stream);
  }
  std::uint64_t digest() const override { return digest_; }
  std::span<const CompanionFormat> companions() const override {
    return parts_.front()->companions();
  }
  std::vector<std::uint64_t> parts() const override { return begins_; }
  std::unique_ptr<CatalogReader> reader() const override;

  // For readers. A stream of a part, and the number of the part.
  struct Place {
    std::size_t part = 0;
    std::uint64_t stream = 0;
  };
  Place place(std::uint64_t stream) const;

 private:
  // The answer of the part that has the stream.
  template <class Answer>
  Answer of(Answer (Catalog::*get)(std::uint64_t) const, std::uint64_t stream) const {
    const Place at = place(stream);
    return (parts_[at.part].get()->*get)(at.stream);
  }

  const Parts parts_;
  std::vector<std::uint64_t> begins_{0};
  std::uint64_t digest_ = 0;
};

}  // namespace millrace::training
