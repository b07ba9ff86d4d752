// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "training/contract/catalog.h"

namespace millrace::test {

// A stream of a MemoryCatalog.
struct MemoryStream {
  std::vector<std::byte> frames;
  std::vector<std::vector<std::byte>> companions{};
  std::vector<training::InnerEvent> events{};
};

// A catalog in memory. Value v of frame f of stream s is s * 1000 + f * values + v, as far as the
// type allows it, if the test does not give other streams.
//
// A test can make reads fail, block or be observed. Its own functions are confined to one thread.
class MemoryCatalog final : public training::Catalog {
 public:
  using ReadResult = Result<Bytes, training::ReadError>;

  explicit MemoryCatalog(FrameType type) : type_(type) {}

  void add(MemoryStream stream) { streams_.push_back(std::move(stream)); }
  // Adds a stream of s16 with the values of above.
  void add_numbered(std::uint64_t frames) {
    std::vector<std::int16_t> values(frames * type_.values);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int16_t>(streams_.size() * 1000 + i);
    const auto bytes = std::as_bytes(std::span(values));
    add({.frames = {bytes.begin(), bytes.end()}});
  }
  void set_companions(std::vector<CompanionFormat> formats) { companions_ = std::move(formats); }

  // Called for each read of frames, on the thread of the reader. An error is returned by the read.
  std::function<Result<void, training::ReadError>(std::uint64_t stream, std::uint64_t begin)>
      on_read;
  // Called when a stream is opened.
  std::function<Result<void, training::ReadError>(std::uint64_t stream)> on_open;

  // The memory that each reader reports, in bytes.
  std::size_t reader_memory = 0;

  // The file that the readers name.
  std::string path;
  // The meta of a stream, if it is set.
  std::function<std::string(std::uint64_t stream)> on_meta;
  // The name of a stream, if it is set.
  std::function<std::string(std::uint64_t stream)> on_name;

  const std::vector<MemoryStream>& streams() const { return streams_; }
  // Readers of streams that exist now, and those made so far.
  int open_readers() const { return open_; }
  int opened_readers() const { return opened_; }

  const FrameType& frame_type() const override { return type_; }
  std::uint64_t size() const override { return streams_.size(); }
  std::uint64_t frames(std::uint64_t stream) const override {
    return streams_[stream].frames.size() / type_.bytes();
  }
  std::string name(std::uint64_t stream) const override {
    return on_name ? on_name(stream) : "stream " + std::to_string(stream);
  }
  std::string meta(std::uint64_t stream) const override {
    return on_meta ? on_meta(stream) : Catalog::meta(stream);
  }
  bool has_events(std::uint64_t stream) const override { return !streams_[stream].events.empty(); }
  std::vector<training::InnerEvent> events(std::uint64_t stream) const override {
    return streams_[stream].events;
  }
  std::uint64_t digest() const override { return streams_.size(); }
  std::span<const CompanionFormat> companions() const override { return companions_; }
  std::unique_ptr<training::CatalogReader> reader() const override {
    return std::make_unique<Reader>(*this);
  }

 private:
  class Stream final : public training::FrameReader {
   public:
    Stream(const MemoryCatalog& catalog, std::uint64_t stream)
        : catalog_(catalog), stream_(stream) {
      ++catalog_.open_;
      ++catalog_.opened_;
    }
    ~Stream() override { --catalog_.open_; }
    ReadResult frames(std::uint64_t begin, std::uint64_t count) override {
      if (catalog_.on_read)
        if (auto read = catalog_.on_read(stream_, begin); !read) return read.error();
      const std::size_t frame = catalog_.type_.bytes();
      const Bytes all = catalog_.streams_[stream_].frames;
      if (begin > all.size() / frame || count > all.size() / frame - begin)
        return training::ReadError{training::DataFault::read, "a read beyond the end"};
      return all.subspan(begin * frame, count * frame);
    }
    std::string file() const override { return catalog_.path; }
    ReadResult entries(std::size_t companion, EntryRange range) override {
      const std::size_t entry = catalog_.companions_[companion].entry_bytes();
      return Bytes(catalog_.streams_[stream_].companions.at(companion))
          .subspan(range.begin * entry, range.count * entry);
    }
    std::size_t memory() const override { return catalog_.reader_memory; }

   private:
    const MemoryCatalog& catalog_;
    const std::uint64_t stream_;
  };

  class Reader final : public training::CatalogReader {
   public:
    explicit Reader(const MemoryCatalog& catalog) : catalog_(catalog) {}
    Result<std::unique_ptr<training::FrameReader>, training::ReadError> open(
        std::uint64_t stream) override {
      if (catalog_.on_open)
        if (auto opened = catalog_.on_open(stream); !opened) return opened.error();
      return std::make_unique<Stream>(catalog_, stream);
    }

   private:
    const MemoryCatalog& catalog_;
  };

  const FrameType type_;
  std::vector<MemoryStream> streams_;
  std::vector<CompanionFormat> companions_;
  mutable std::atomic<int> open_{0}, opened_{0};
};

}  // namespace millrace::test
