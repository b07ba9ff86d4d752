// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/recorded/recorded_catalog.h"

#include <cassert>
#include <stdexcept>
#include <utility>

#include "recording/reader/recordings.h"
#include "training/catalogs/frames/idle_sources.h"
#include "training/catalogs/index/stream_digest.h"
#include "training/catalogs/recorded/extent.h"
#include "training/catalogs/recorded/read_stream.h"
#include "training/catalogs/recorded/recorded_frames.h"

namespace millrace::training {
namespace {

using recording::Recordings;
using recording::Repeated;
using IdleRecordings = IdleSources<RecordedFrames>;

class RecordedReader final : public FrameReader {
 public:
  RecordedReader(const RecordedCatalog& catalog, std::uint64_t stream,
                 std::unique_ptr<RecordedFrames> frames, IdleRecordings& idle)
      : catalog_(catalog), stream_(stream), frames_(std::move(frames)), idle_(idle) {}
  ~RecordedReader() override { idle_.put(stream_, std::move(frames_)); }

  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) override {
    return frames_->read(begin, count);
  }
  std::string file() const override {
    return catalog_.folder() + ": stream " + std::to_string(catalog_.number(stream_));
  }
  Result<Bytes, ReadError> entries(std::size_t /*companion*/, EntryRange /*range*/) override {
    assert(false);
    return Bytes();
  }
  std::size_t memory() const override { return frames_->memory(); }

 private:
  const RecordedCatalog& catalog_;
  const std::uint64_t stream_;
  std::unique_ptr<RecordedFrames> frames_;
  IdleRecordings& idle_;
};

class RecordedCatalogReader final : public CatalogReader {
 public:
  explicit RecordedCatalogReader(const RecordedCatalog& catalog) : catalog_(catalog) {}

  Result<std::unique_ptr<FrameReader>, ReadError> open(std::uint64_t stream) override {
    auto frames = idle_.take(stream);
    if (!frames) {
      auto read = read_frames(stream);
      if (!read) return read.error();
      frames = std::move(*read);
    }
    return std::unique_ptr<FrameReader>(
        std::make_unique<RecordedReader>(catalog_, stream, std::move(frames), idle_));
  }

 private:
  Result<std::unique_ptr<RecordedFrames>, ReadError> read_frames(std::uint64_t stream) {
    const auto fault = [&](DataFault kind, std::uint64_t number, const std::string& reason) {
      return ReadError{kind,
                       catalog_.folder() + ": stream " + std::to_string(number) + ": " + reason};
    };
    const auto parts = catalog_.recordings(stream);
    try {
      if (!recordings_) {
        auto opened = Recordings::open(catalog_.folder(), Recordings::Summaries::skipped);
        if (!opened) return fault(DataFault::read, parts.front().number, opened.error());
        recordings_ = std::move(*opened);
      }
      auto frames = std::make_unique<RecordedFrames>(*recordings_, catalog_.frame_type(), parts);
      if (const auto& found = frames->fault())
        return fault(found->unreadable ? DataFault::read : DataFault::length, found->number,
                     found->reason);
      return frames;
    } catch (const std::runtime_error& error) {
      return fault(DataFault::read, parts.front().number, error.what());
    }
  }

  const RecordedCatalog& catalog_;
  std::unique_ptr<Recordings> recordings_;
  IdleRecordings idle_;
};

// Streams of one part have the same digest with and without repeated frames.
std::uint64_t digest_of(const Index& index, Repeated repeated) {
  StreamDigest digest(index.digest());
  digest.add_type(index.frame_type());
  for (std::uint64_t i = 0; repeated == Repeated::left_out && i < index.size(); ++i)
    for (const IndexedPart& part : index.parts(i)) digest.add(part.once);
  return digest.value();
}

}  // namespace

RecordedCatalog::RecordedCatalog(Index index, std::string folder, Repeated repeated)
    : index_(std::move(index)),
      folder_(std::move(folder)),
      repeated_(repeated),
      type_(index_.frame_type()),
      digest_(digest_of(index_, repeated)) {}

// True for a stream whose parts are read as if it had never been lost.
bool RecordedCatalog::joins(std::uint64_t stream) const {
  return repeated_ == Repeated::left_out && !index_.parts(stream).empty();
}

std::vector<IndexedPart> RecordedCatalog::recordings(std::uint64_t stream) const {
  auto parts = parts_of(index_, stream);
  if (joins(stream))
    for (IndexedPart& part : parts) part.counted = part.once;
  return parts;
}

std::uint64_t RecordedCatalog::frames(std::uint64_t stream) const {
  if (!joins(stream)) return index_.frames(stream);
  std::uint64_t frames = 0;
  for (const IndexedPart& part : index_.parts(stream)) frames += part.once;
  return frames;
}

std::string RecordedCatalog::name(std::uint64_t stream) const {
  return std::string(index_.stream(stream).name);
}

std::string RecordedCatalog::meta(std::uint64_t stream) const {
  return std::string(index_.stream(stream).meta);
}

bool RecordedCatalog::has_events(std::uint64_t stream) const {
  return index_.has_events(stream) && !joins(stream);
}

std::vector<InnerEvent> RecordedCatalog::events(std::uint64_t stream) const {
  return joins(stream) ? std::vector<InnerEvent>() : index_.events(stream);
}

std::string RecordedCatalog::extent() const { return extent_of(index_); }

std::unique_ptr<CatalogReader> RecordedCatalog::reader() const {
  return std::make_unique<RecordedCatalogReader>(*this);
}

}  // namespace millrace::training
