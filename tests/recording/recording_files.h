// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "recording/files/file_writer.h"

namespace millrace::recording {

// Values for tests that write recording files.

inline FileHead head_of(FileNumber file) {
  return {.file = file,
          .run = "000102030405060708090a0b0c0d0e0f",
          .id = "101112131415161718191a1b1c1d1e1f",
          .first_stream = 1,
          .created = 1'760'000'000'000'000'000};
}

// A stream of frames of two bytes.
inline StreamMeta meta_of(std::uint64_t stream) {
  return {
      .number = stream,
      .name = "call-" + std::to_string(stream),
      .pipeline = "asr",
      .rule =
          R"({"size":1600,"step":1600,"first":1600,"left":0,"right":160,"min":1,"tail":"short",)"
          R"("align":"body","pad":"zero"})",
      .frames = {},
      .batches = RecordedBatches{.slots = 64, .rows = 16, .widths = {1760}},
      .client = R"({"format":"s16le","rate":16000,"channels":1})",
      .opened_wall = 1'760'000'000'000'000'000,
      .opened_steady = 5'000'000'000};
}

// Writes the slices of a stream: each has some frames; the first one has `open`, the last one
// `end`.
class TestStream {
 public:
  explicit TestStream(std::uint64_t number, const Event& open = {})
      : meta_(meta_of(number)), open_(open), position_(open.count) {}

  void add(FileWriter& writer, std::size_t frames, bool last = false) {
    std::vector<RecordedEvent> events;
    if (slices_ == 0) events.push_back({open_, time()});
    events.push_back({{.kind = Event::Kind::frames, .count = frames}, time()});
    if (last) events.push_back({{.kind = Event::Kind::end}, time()});
    const std::vector<std::byte> bytes = frames_of(frames);
    Slice slice{
        .stream = meta_.number, .first_event = events_, .begin = position_, .events = events};
    if (last)
      slice.closing = StreamTotals{.frames = position_ + frames - open_.count, .complete = true};
    const Bytes part = bytes;
    writer.add(meta_, slices_++, meta_.opened_wall + static_cast<std::int64_t>(position_), slice,
               {&part, 1});
    events_ += events.size();
    position_ += frames;
  }

  // The next frames of the stream: two bytes per frame, which depend on stream and position.
  std::vector<std::byte> frames_of(std::size_t frames) const {
    std::vector<std::byte> bytes(2 * frames);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(31 * meta_.number + 2 * position_ + i);
    return bytes;
  }
  const StreamMeta& meta() const { return meta_; }

 private:
  Time time() const {
    return from_wire(meta_.opened_steady + static_cast<std::int64_t>(position_));
  }

  StreamMeta meta_;
  Event open_;
  std::uint32_t slices_ = 0;
  std::uint64_t events_ = 0, position_;
};

// The value of a result; an error fails the test.
template <class T, class E>
T expect(Result<T, E> result) {
  if (!result) throw std::runtime_error("unexpected error");
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace millrace::recording
