// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recording/writer/page_pool.h"
#include "recording/writer/page_writer.h"
#include "recording/writer/pending_slices.h"
#include "recording/writer/stream_pen.h"
#include "tests/recording/recording_files.h"
#include "tests/support/bytes.h"

namespace millrace::recording {

// A slice, with copies of what its views show.
struct KeptSlice {
  std::uint32_t number = 0;
  std::uint64_t first_event = 0;
  std::uint64_t begin = 0;
  std::uint32_t size = 0;
  std::vector<RecordedEvent> events{};  // their texts are in `texts`
  std::vector<std::string> texts{};     // of the events that have one
  std::vector<std::byte> frames{};
  std::vector<std::pair<std::uint64_t, std::string>> answers{};
  std::vector<std::uint64_t> batches{};  // of the answers
  std::optional<LostEvents> lost{};
  std::optional<StreamTotals> closing{};
};

// The slices of all streams, as a recorder writes them at each commit().
class KeptSlices final : public PendingSlices::Sink {
 public:
  void add(PendingStream& stream) override {
    if (stream.is_empty()) return;
    KeptSlice kept{.number = stream.slice_number++,
                   .first_event = stream.first_event,
                   .begin = stream.begin,
                   .size = stream.first_size,
                   .events = stream.events,
                   .lost = std::exchange(stream.lost, {}),
                   .closing = std::exchange(stream.closing, {})};
    for (const RecordedEvent& read : stream.events)
      if (read.event.has_text()) kept.texts.emplace_back(read.text);
    for (const Bytes part : stream.frames)
      kept.frames.insert(kept.frames.end(), part.begin(), part.end());
    for (const RecordedAnswer& answer : stream.answers) {
      kept.answers.emplace_back(answer.seq, answer.data);
      kept.batches.push_back(millrace::number(answer.batch));
    }
    slices[stream.meta.number].push_back(std::move(kept));
    stream.begin_next();
  }
  void drop(PendingStream& stream, DropReason) override { stream.begin_next(); }
  void skipped(DropReason reason) override { skips.push_back(reason); }

  std::map<std::uint64_t, std::vector<KeptSlice>> slices;
  std::vector<DropReason> skips;
};

// One io thread with few pages, and a recorder without files.
struct PagesUnderTest {
  explicit PagesUnderTest(std::size_t pages = 64)
      : pool(pages * PagePool::page_bytes, 1, sizeof(std::int16_t)) {}

  StreamPen pen(std::uint64_t number) {
    return StreamPen(writer, std::make_unique<StreamMeta>(meta_of(number)));
  }

  // The recorder takes all pages that were handed over.
  void take() {
    pool.filled().drain(taken);
    for (Page* const page : taken) streams.take(*page);
    held.insert(held.end(), taken.begin(), taken.end());
  }
  void commit() {
    take();
    for (std::size_t i = 0; i < streams.waiting().size(); ++i) kept.add(*streams.waiting()[i]);
    streams.clear();
    for (Page* const page : held) pool.give_back(*page);
    held.clear();
  }
  const std::vector<KeptSlice>& slices(std::uint64_t stream) { return kept.slices[stream]; }

  TapStats stats;
  PagePool pool;
  PageWriter writer{pool, 0, stats};
  KeptSlices kept;
  PendingSlices streams{kept};
  std::vector<Page*> taken, held;
};

inline Time second(std::int64_t seconds) { return from_wire(seconds * 1'000'000'000); }

// Adds an event that has a text.
inline void add_text(StreamPen& pen, std::string_view text, Time at,
                     Event::Kind kind = Event::Kind::message) {
  pen.event({.kind = kind, .count = text.size()}, at, {std::as_bytes(std::span(text)), Bytes()});
}

// Frames of two bytes: their values count up from `first`.
inline std::vector<std::byte> frames_from(std::uint64_t first, std::uint64_t count) {
  std::vector<std::int16_t> values;
  for (std::uint64_t i = 0; i < count; ++i) values.push_back(static_cast<std::int16_t>(first + i));
  return test::bytes_of(std::span<const std::int16_t>(values));
}

// Adds a `frames` event to a pen, in two parts.
inline void add_frames(StreamPen& pen, std::uint64_t first, std::uint64_t count, Time at) {
  const std::vector<std::byte> bytes = frames_from(first, count);
  const std::size_t cut = count / 3 * 2;
  pen.event({.kind = Event::Kind::frames, .count = count}, at,
            {Bytes(bytes).first(cut), Bytes(bytes).subspan(cut)});
}

}  // namespace millrace::recording
