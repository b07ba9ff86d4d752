// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "recording/reader/stream_frames.h"
#include "training/catalogs/index/index.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// A directory of recordings as a catalog. Each reader opens the directory for its own thread, and
// verifies the checksums of a stream when it opens the stream.
class RecordedCatalog final : public Catalog {
 public:
  // Without `repeated` frames, a stream of several parts has no events: their frames are one after
  // the other as if it had never been lost.
  RecordedCatalog(Index index, std::string folder, recording::Repeated repeated);

  const FrameType& frame_type() const override { return type_; }
  std::uint64_t size() const override { return index_.size(); }
  std::uint64_t frames(std::uint64_t stream) const override;
  std::string name(std::uint64_t stream) const override;
  std::string meta(std::uint64_t stream) const override;
  bool has_events(std::uint64_t stream) const override;
  std::vector<InnerEvent> events(std::uint64_t stream) const override;
  bool decodes() const override { return false; }
  std::uint64_t digest() const override { return digest_; }
  std::string extent() const override;
  std::unique_ptr<CatalogReader> reader() const override;

  // For readers.
  const std::string& folder() const { return folder_; }
  // The number of the first recording of the stream, and all of its recordings.
  std::uint64_t number(std::uint64_t stream) const { return index_.stream(stream).place; }
  std::vector<IndexedPart> recordings(std::uint64_t stream) const;

 private:
  bool joins(std::uint64_t stream) const;

  const Index index_;
  const std::string folder_;
  const recording::Repeated repeated_;
  const FrameType type_;
  const std::uint64_t digest_;
};

}  // namespace millrace::training
