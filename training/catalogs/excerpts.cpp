// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/excerpts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace millrace::training {
namespace {

class ExcerptReader final : public FrameReader {
 public:
  ExcerptReader(std::unique_ptr<FrameReader> stream, std::uint64_t begin,
                std::span<const CompanionFormat> companions)
      : stream_(std::move(stream)), begin_(begin), companions_(companions) {}

  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) override {
    return stream_->frames(begin_ + begin, count);
  }
  Result<Bytes, ReadError> entries(std::size_t companion, EntryRange range) override {
    range.begin += companions_[companion].entries_of(begin_);
    return stream_->entries(companion, range);
  }
  std::string file() const override { return stream_->file(); }
  std::size_t memory() const override { return stream_->memory(); }

 private:
  const std::unique_ptr<FrameReader> stream_;
  const std::uint64_t begin_;
  const std::span<const CompanionFormat> companions_;
};

class ExcerptReaders final : public CatalogReader {
 public:
  ExcerptReaders(const Excerpts& excerpts, std::unique_ptr<CatalogReader> streams)
      : excerpts_(excerpts), streams_(std::move(streams)) {}

  Result<std::unique_ptr<FrameReader>, ReadError> open(std::uint64_t excerpt) override {
    const Excerpts::Place place = excerpts_.place(excerpt);
    auto stream = streams_->open(place.stream);
    if (!stream || place.begin == 0) return stream;
    return std::make_unique<ExcerptReader>(std::move(*stream), place.begin, excerpts_.companions());
  }

 private:
  const Excerpts& excerpts_;
  const std::unique_ptr<CatalogReader> streams_;
};

// The shortest text of the seconds.
std::string time_text(double seconds) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed).ptr;
  return std::string(text.data(), end) + "s";
}

// A stream that begins there has this anyway.
bool begins_anew(Event::Kind kind) {
  return kind == Event::Kind::flush || kind == Event::Kind::reset || kind == Event::Kind::gap ||
         kind == Event::Kind::open;
}

// The position of an open in a stream that begins at a frame of another one, with position 0.
class OpenPositions {
 public:
  // An event of the other stream, at or before its beginning here.
  void pass(const InnerEvent& inner) {
    if (inner.event.kind == Event::Kind::open) skipped_ = inner.event.count - inner.frame;
    if (inner.event.kind == Event::Kind::gap) skipped_ += inner.event.count;
  }
  // An open behind it. The stream here may begin with frames that this part has again: then they
  // do not count.
  Event at(Event open, std::uint64_t begin) {
    if (!begin_) begin_ = begin + skipped_;
    *begin_ = std::min(*begin_, open.count);
    open.count -= *begin_;
    open.rows = 0;
    return open;
  }

 private:
  std::uint64_t skipped_ = 0;  // positions minus frames, perhaps below 0
  std::optional<std::uint64_t> begin_;
};

}  // namespace

Excerpts::Excerpts(std::shared_ptr<const Catalog> catalog,
                   const std::vector<std::uint32_t>& streams, std::uint64_t longest,
                   std::uint64_t digest)
    : catalog_(std::move(catalog)), longest_(longest), digest_(digest) {
  excerpts_.reserve(streams.size());
  for (const std::uint32_t stream : streams) {
    const std::uint64_t frames = catalog_->frames(stream);
    const std::uint64_t count =
        longest == 0 ? 1 : std::max<std::uint64_t>((frames + longest - 1) / longest, 1);
    const bool events = catalog_->has_events(stream);
    const std::vector<InnerEvent> all =
        events && count > 1 ? catalog_->events(stream) : std::vector<InnerEvent>();
    for (std::uint32_t number = 0; number < count; ++number) {
      Excerpt& one = excerpts_.emplace_back();
      one.stream = stream;
      one.number = number & 0x7fff'ffff;
      one.has_events = events && (count == 1 || !events_in(one, all).empty());
    }
  }
}

std::uint64_t Excerpts::frames(std::uint64_t stream) const {
  const auto [number, begin] = place(stream);
  const std::uint64_t rest = catalog_->frames(number) - begin;
  return longest_ == 0 ? rest : std::min(rest, longest_);
}

std::string Excerpts::name(std::uint64_t stream) const {
  const auto [number, begin] = place(stream);
  std::string name = catalog_->name(number);
  if (begin == 0) return name;
  return name + "@" + time_text(static_cast<double>(begin) / frame_type().rate);
}

std::vector<InnerEvent> Excerpts::events(std::uint64_t stream) const {
  const Excerpt& one = excerpts_[stream];
  return one.has_events ? events_in(one, catalog_->events(one.stream)) : std::vector<InnerEvent>();
}

std::vector<InnerEvent> Excerpts::events_in(const Excerpt& excerpt,
                                            const std::vector<InnerEvent>& all) const {
  if (longest_ == 0) return all;
  const std::uint64_t begin = excerpt.number * longest_, end = begin + longest_;
  const bool is_last = end >= catalog_->frames(excerpt.stream);
  std::vector<InnerEvent> events;
  std::optional<Event> size;
  OpenPositions positions;
  for (const InnerEvent& inner : all) {
    const Event::Kind kind = inner.event.kind;
    if (!is_last && inner.frame >= end) break;
    const bool at_begin = begin > 0 && inner.frame == begin;
    if (inner.frame >= begin && !(at_begin && begins_anew(kind))) {
      const bool moves = begin > 0 && kind == Event::Kind::open;
      events.push_back(
          {moves ? positions.at(inner.event, begin) : inner.event, inner.frame - begin});
      continue;
    }
    positions.pass(inner);
    if (kind == Event::Kind::size) size = inner.event;
    if (kind == Event::Kind::open) size.reset();
  }
  if (size) events.insert(events.begin(), {*size, 0});
  return events;
}

std::vector<std::uint64_t> Excerpts::parts() const {
  std::vector<std::uint64_t> parts = catalog_->parts();
  for (std::uint64_t& border : parts)
    border = static_cast<std::uint64_t>(
        std::ranges::lower_bound(excerpts_, border, {}, &Excerpt::stream) - excerpts_.begin());
  return parts;
}

std::unique_ptr<CatalogReader> Excerpts::reader() const {
  return std::make_unique<ExcerptReaders>(*this, catalog_->reader());
}

}  // namespace millrace::training
