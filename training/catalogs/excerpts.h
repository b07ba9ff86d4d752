// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "training/contract/catalog.h"

namespace millrace::training {

// Some streams of another catalog, in which a stream of more than `longest` frames is several
// streams: its *excerpts* of `longest` frames, one after the other.
//
// The first excerpt has the name of the stream. The others have the time of their first frame
// behind it, as in NAME@60s. Each has the `meta` of the stream, and its own frames, entries and
// events. It begins with fresh states: an event at its begin that only ends a segment or a run, or
// an open anew, is left out, and a size of bodies that was set before stays.
class Excerpts final : public Catalog {
 public:
  // `streams` are ascending. `longest` = 0: streams are not divided. Requires: `longest` is a
  // multiple of CompanionFormat::frames_per_entry of each companion, and there are less than 2^31
  // excerpts.
  Excerpts(std::shared_ptr<const Catalog> catalog, const std::vector<std::uint32_t>& streams,
           std::uint64_t longest, std::uint64_t digest);

  const FrameType& frame_type() const override { return catalog_->frame_type(); }
  std::uint64_t size() const override { return excerpts_.size(); }
  std::uint64_t frames(std::uint64_t stream) const override;
  std::string name(std::uint64_t stream) const override;
  std::string meta(std::uint64_t stream) const override {
    return catalog_->meta(excerpts_[stream].stream);
  }
  bool has_events(std::uint64_t stream) const override { return excerpts_[stream].has_events; }
  std::vector<InnerEvent> events(std::uint64_t stream) const override;
  bool decodes() const override { return catalog_->decodes(); }
  std::uint64_t digest() const override { return digest_; }
  std::string extent() const override { return catalog_->extent(); }
  std::span<const CompanionFormat> companions() const override { return catalog_->companions(); }
  std::vector<std::uint64_t> parts() const override;
  std::unique_ptr<CatalogReader> reader() const override;

  // Where an excerpt begins: a stream of the other catalog, and a frame of it.
  struct Place {
    std::uint64_t stream = 0;
    std::uint64_t begin = 0;
  };
  // The number of streams of the other catalog.
  std::uint64_t sources() const { return catalog_->size(); }
  Place place(std::uint64_t excerpt) const {
    const Excerpt& one = excerpts_[excerpt];
    return {one.stream, one.number * longest_};
  }

 private:
  struct Excerpt {
    std::uint32_t stream = 0;
    std::uint32_t number : 31 = 0;  // in the stream
    std::uint32_t has_events : 1 = 0;
  };

  std::vector<InnerEvent> events_in(const Excerpt& excerpt,
                                    const std::vector<InnerEvent>& all) const;

  const std::shared_ptr<const Catalog> catalog_;
  const std::uint64_t longest_, digest_;
  std::vector<Excerpt> excerpts_;
};

}  // namespace millrace::training
