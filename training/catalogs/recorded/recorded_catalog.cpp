// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/recorded_catalog.h"

#include <cassert>
#include <stdexcept>
#include <utility>

#include "recording/reader/recordings.h"
#include "recording/reader/stream_frames.h"
#include "training/catalogs/frames/idle_sources.h"
#include "training/catalogs/index/stream_digest.h"
#include "training/catalogs/recorded_index.h"

namespace millrace::training {
namespace {

using recording::Recordings;
using recording::StreamFrames;

// A stream that was read, and verified.
class RecordedFrames {
 public:
  RecordedFrames(Recordings& recordings, const recording::RecordedStream& stream)
      : frames_(recordings, stream) {}

  Bytes read(std::uint64_t begin, std::uint64_t count) {
    return frames_.read(begin, begin + count, copy_);
  }
  std::uint64_t frames() const { return frames_.frames(); }
  // "damaged: file 3", or empty.
  std::string why_missing() const {
    return frames_.missing().empty() ? "" : frames_.missing().front().why;
  }
  static bool is_current() { return true; }
  static void put_away() {}
  static std::size_t descriptors() { return 0; }  // those of the recordings
  std::size_t memory() const {
    return copy_.capacity() + sizeof(recording::RecordedEvent) * frames_.events().size();
  }

 private:
  StreamFrames frames_;
  std::vector<std::byte> copy_;  // frames that lie in several slices
};

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
    return catalog_.folder() + ": stream " + std::to_string(catalog_.recorded(stream_).meta.number);
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
      auto read = read_stream(stream);
      if (!read) return read.error();
      frames = std::move(*read);
    }
    return std::unique_ptr<FrameReader>(
        std::make_unique<RecordedReader>(catalog_, stream, std::move(frames), idle_));
  }

 private:
  Result<std::unique_ptr<RecordedFrames>, ReadError> read_stream(std::uint64_t stream) {
    const recording::RecordedStream recorded = catalog_.recorded(stream);
    const auto fault = [&](DataFault kind, const std::string& reason) {
      return ReadError{kind, catalog_.folder() + ": stream " +
                                 std::to_string(recorded.meta.number) + ": " + reason};
    };
    try {
      if (!recordings_) {
        auto opened = Recordings::open(catalog_.folder(), Recordings::Summaries::skipped);
        if (!opened) return fault(DataFault::read, opened.error());
        recordings_ = std::move(*opened);
      }
      if (recordings_->is_removed(recorded.meta.number) || recordings_->files_of(recorded).empty())
        return fault(DataFault::read, "was deleted");
      auto frames = std::make_unique<RecordedFrames>(*recordings_, recorded);
      if (frames->frames() == catalog_.frames(stream)) return frames;
      const std::string why = frames->why_missing();
      if (frames->frames() == 0 && !why.empty()) return fault(DataFault::read, why);
      return fault(DataFault::length, "has " + std::to_string(frames->frames()) + " of " +
                                          std::to_string(catalog_.frames(stream)) + " frames" +
                                          (why.empty() ? "" : ": " + why));
    } catch (const std::runtime_error& error) {
      return fault(DataFault::read, error.what());
    }
  }

  const RecordedCatalog& catalog_;
  std::unique_ptr<Recordings> recordings_;
  IdleRecordings idle_;
};

std::uint64_t digest_of(const Index& index) {
  StreamDigest digest(index.digest());
  digest.add_type(index.frame_type());
  return digest.value();
}

}  // namespace

RecordedCatalog::RecordedCatalog(Index index, std::string folder)
    : index_(std::move(index)),
      folder_(std::move(folder)),
      type_(index_.frame_type()),
      digest_(digest_of(index_)) {}

recording::RecordedStream RecordedCatalog::recorded(std::uint64_t stream) const {
  const IndexedStream indexed = index_.stream(stream);
  return {.meta = {.number = indexed.place, .frames = type_},
          .frames = indexed.frames,
          .first_file = indexed.before,
          .last_file = indexed.behind};
}

std::string RecordedCatalog::name(std::uint64_t stream) const {
  return std::string(index_.stream(stream).name);
}

std::string RecordedCatalog::meta(std::uint64_t stream) const {
  return std::string(index_.stream(stream).meta);
}

std::vector<InnerEvent> RecordedCatalog::events(std::uint64_t stream) const {
  return index_.events(stream);
}

std::string RecordedCatalog::extent() const { return extent_of(index_); }

std::unique_ptr<CatalogReader> RecordedCatalog::reader() const {
  return std::make_unique<RecordedCatalogReader>(*this);
}

}  // namespace millrace::training
