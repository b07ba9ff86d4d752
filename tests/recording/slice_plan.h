// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recording/format/stream_meta.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// A slice that owns its content.
struct PlannedSlice {
  StreamMeta meta{};
  std::uint32_t number = 0;
  std::int64_t wall = 0;
  Slice facts{};  // without the views
  std::vector<RecordedEvent> events{};
  std::vector<std::byte> frames{};
  std::vector<RecordedAnswer> answers{};

  Slice slice() const {
    Slice slice = facts;
    slice.events = events;
    slice.frames = frames;
    slice.answers = answers;
    return slice;
  }
  // The message of the file: with the zero byte that ends it.
  std::vector<std::byte> message() const {
    SliceEncoder encoder;
    const Bytes frame_bytes = frames;
    const Bytes encoded = encoder.encode(slice(), {&frame_bytes, 1});
    std::vector<std::byte> message(encoded.begin(), encoded.end());
    message.push_back({});
    return message;
  }
};

// Slices of several streams at a time, which are all different, and the same for the same seed.
// Streams open and end, have gaps, flushes, messages, answers, and slices that were dropped.
class SlicePlan {
 public:
  // `frames`: most frames of a slice.
  SlicePlan(std::uint64_t seed, std::size_t streams, std::size_t frames,
            std::uint64_t first_stream = 1)
      : random_(seed), open_(streams), most_frames_(frames), next_stream_(first_stream) {}

  PlannedSlice next() {
    State& stream = open_[draw(open_.size() - 1)];
    if (stream.over || stream.meta.number == 0) begin(stream);
    PlannedSlice planned{.meta = stream.meta};
    planned.facts.stream = stream.meta.number;
    if (stream.events > 0 && draw(15) == 0) drop(stream, planned);
    planned.number = stream.slices++;
    planned.wall = wall_ += static_cast<std::int64_t>(draw(2'000'000));
    planned.facts.first_event = stream.events;
    planned.facts.begin = stream.position;
    if (stream.events == 0) {
      add(stream, planned, Event::Kind::open, stream.position);
      planned.events.front().event.rows = stream.position / 100;
    }
    for (std::uint64_t events = 1 + draw(3); events > 0; --events) add_one(stream, planned);
    if (draw(20) == 0) end(stream, planned);
    return planned;
  }

  std::uint64_t next_stream() const { return next_stream_; }

 private:
  struct State {
    StreamMeta meta{};
    std::uint32_t slices = 0;
    std::uint64_t events = 0, position = 0, frames = 0;
    bool over = false;
  };

  std::uint64_t draw(std::uint64_t most) { return random_() % (most + 1); }

  void begin(State& stream) {
    stream = State();
    // In this order with every compiler.
    const std::uint64_t call = draw(1000), slashes = draw(20);
    stream.meta = {.number = next_stream_++,
                   .name = "call " + std::to_string(call) + std::string(slashes, '/'),
                   .pipeline = "asr",
                   .rule = R"({"size":1600})",
                   .frames = {.values = static_cast<std::uint32_t>(1 + draw(1))},
                   .client = R"({"format":"s16le","rate":16000,"channels":1})",
                   .opened_wall = wall_,
                   .opened_steady = wall_ / 2};
    if (draw(3) == 0) stream.position = 1 + draw(4999);  // it is opened anew
  }

  void add(State& stream, PlannedSlice& planned, Event::Kind kind, std::uint64_t count = 0,
           std::string_view text = {}) {
    Event event{.kind = kind, .count = count};
    if (kind == Event::Kind::gap) event.cause = Cause::rejected;
    if (kind == Event::Kind::flush) event.mark = stream.events;
    planned.events.push_back({event, from_wire(wall_ / 2), text});
    ++stream.events;
    if (kind == Event::Kind::frames || kind == Event::Kind::gap) stream.position += count;
  }

  // Texts of messages differ, in their length too.
  void add_text(State& stream, PlannedSlice& planned) {
    static const std::string longest = std::string(63, ' ') + R"({"n":1})";
    const std::string_view text = std::string_view(longest).substr(stream.events % 64);
    const auto kind = stream.events % 2 == 0 ? Event::Kind::message : Event::Kind::set;
    add(stream, planned, kind, text.size(), text);
  }

  void add_one(State& stream, PlannedSlice& planned) {
    const std::uint64_t kind = draw(9);
    if (kind == 0) return add(stream, planned, Event::Kind::gap, 1 + draw(99));
    if (kind == 1) {
      add_text(stream, planned);
      return add(stream, planned, Event::Kind::flush);
    }
    if (kind == 2) {
      planned.answers.push_back({.seq = stream.events,
                                 .batch = BatchId{draw(1 << 20)},
                                 .kind = Answer::Kind::json,
                                 .data = R"({"text":"recorded"})"});
      return;
    }
    const std::uint64_t frames = 1 + draw(most_frames_ - 1);
    add(stream, planned, Event::Kind::frames, frames);
    for (std::size_t bytes = frames * stream.meta.frames.bytes(); bytes > 0; --bytes)
      planned.frames.push_back(static_cast<std::byte>(random_()));
    stream.frames += frames;
  }

  // Drops a slice with one event, which uses up a number.
  void drop(State& stream, PlannedSlice& planned) {
    planned.facts.lost = LostEvents{.first_event = stream.events, .begin = stream.position};
    ++stream.slices;
    ++stream.events;
    stream.position += draw(100);
  }

  void end(State& stream, PlannedSlice& planned) {
    add(stream, planned, Event::Kind::end);
    planned.facts.closing = StreamTotals{.rows = 7, .frames = stream.frames, .complete = true};
    stream.over = true;
  }

  std::mt19937_64 random_;
  std::vector<State> open_;
  std::size_t most_frames_;
  std::uint64_t next_stream_;
  std::int64_t wall_ = 1'760'000'000'000'000'000;
};

// The messages of a file or of a plan, by the numbers of stream and slice.
using Messages = std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::byte>>;

}  // namespace millrace::recording
