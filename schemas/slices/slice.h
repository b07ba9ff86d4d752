// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/answer.h"
#include "base/bytes.h"
#include "base/event.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "schemas/aligned_message.h"
#include "schemas/wire_error.h"

namespace flatbuffers {
class FlatBufferBuilder;
}

namespace millrace::recording {

// The messages of a recording file (schemas/slices/recording.fbs, docs/recording_format.md).

// Why the recorder dropped slices.
enum class DropReason : std::uint8_t {
  queue_full,  // the recorder was too slow, or the disk
  disk_full,   // no space, or less than [recording] min_free
  io_error,    // a write or a sync failed
  memory,      // the service is short of memory
};

// An event of a recorded stream, as the chunker received it.
struct RecordedEvent {
  Event event;
  Time at{};                // when it was read, by the steady clock of the service that recorded it
  std::string_view text{};  // the JSON of an event that has one
  // By readers of streams only:
  Bytes frames{};              // the values of a `frames` event
  std::uint64_t position = 0;  // where the stream is before the event
  std::uint64_t frame = 0;     // frames before the event: the position without gaps
};

// The answer of a worker to the row `seq`. The batch is numbered by the service that recorded it.
struct RecordedAnswer {
  std::uint64_t seq = 0;
  BatchId batch{};
  Answer::Kind kind = Answer::Kind::none;
  std::string_view data{};
};

// A message of a worker to the client of the stream, which does not answer a row.
struct RecordedMessage {
  std::uint64_t seq = 0;                   // the newest row that the worker had
  std::uint64_t number = 0;                // counts the messages of the stream, from 0
  Answer::Kind kind = Answer::Kind::none;  // json, text or bytes
  std::string_view data{};
};

// Events that the recorder dropped: from number `first_event`, at position `begin`, to the first
// event of the slice that has this record.
struct LostEvents {
  std::uint64_t first_event = 0;
  std::uint64_t begin = 0;
  DropReason reason = DropReason::queue_full;
  bool operator==(const LostEvents&) const = default;
};

// The end of a stream that was recorded to its end.
struct StreamTotals {
  std::uint64_t rows = 0;    // rows that the service cut
  std::uint64_t frames = 0;  // frames of the stream, without gaps
  std::uint64_t lost = 0;    // frames that gaps of any cause skipped
  std::uint32_t digest = 0;  // RowDigest over these rows
  std::uint8_t closing = 0;  // a StreamClosing (streams/stats/stats.h)
  bool complete = false;     // its last row, after `end` or `abort`, was cut before it was closed
  bool operator==(const StreamTotals&) const = default;
};

// An item that a reader of a stream returns. StreamTotals is the last alternative, and the last
// item.
using RecordedItem = std::variant<RecordedEvent, RecordedAnswer, RecordedMessage, StreamTotals>;

// A part of one stream. `events`, their texts, `frames`, `answers` and `messages` are views: of the
// caller's memory when it is written, of the message and of the decoder when it is read.
struct Slice {
  std::uint64_t stream = 0;       // not encoded: the message's channel has it
  std::uint64_t first_event = 0;  // events of the stream before this slice
  // Position of the stream before it. An `open` has it as its count.
  std::uint64_t begin = 0;
  std::uint32_t size = 0;  // size of bodies in force before it; 0: that of the rule
  std::span<const RecordedEvent> events{};
  Bytes frames{};  // the frames of the `frames` events, one event after the other
  std::span<const RecordedAnswer> answers{};
  std::span<const RecordedMessage> messages{};
  std::optional<LostEvents> lost{};
  std::optional<StreamTotals> closing{};

  // The items that follow the events, by index: answers, messages, then the totals. nullopt: there
  // are no more.
  std::optional<RecordedItem> record(std::size_t index) const {
    if (index < answers.size()) return answers[index];
    index -= answers.size();
    if (index < messages.size()) return messages[index];
    return index == messages.size() && closing ? std::optional<RecordedItem>(*closing)
                                               : std::nullopt;
  }
};

// The memory of a slice.
struct SliceParts {
  std::vector<RecordedEvent> events{};
  std::vector<RecordedAnswer> answers{};
  std::vector<RecordedMessage> messages{};
  std::optional<LostEvents> lost{};
  std::optional<StreamTotals> closing{};

  bool has_records() const { return !answers.empty() || !messages.empty(); }
  bool is_empty() const { return events.empty() && !has_records() && !lost && !closing; }
  // Removes all but `lost` and `closing`.
  void clear() {
    events.clear();
    answers.clear();
    messages.clear();
  }
  // Sets the views of a slice to this memory.
  Slice viewed(Slice slice) const {
    slice.events = events;
    slice.answers = answers;
    slice.messages = messages;
    slice.lost = lost;
    slice.closing = closing;
    return slice;
  }
};

// A stream's part of one recording file.
struct StreamPart {
  std::uint64_t stream = 0;
  std::uint32_t first_slice = 0;
  std::uint32_t slices = 0;
  std::uint64_t first_event = 0;
  std::uint64_t begin = 0;  // position before the first event
  std::uint64_t end = 0;    // position after the last event
  std::uint64_t frames = 0;
  std::uint16_t channel = 0;
  bool closed = false;    // the last slice has `closing`
  bool complete = false;  // StreamTotals::complete of that slice
  bool lost = false;      // slices between the first and the last are missing, or damaged
  bool operator==(const StreamPart&) const = default;
};

// The schema of Slice in binary form (bfbs), for the Schema record of a recording file. Static.
Bytes slice_schema();

// Encodes slices. Does not allocate once its memory is large enough. Confined to one thread.
class SliceEncoder {
 public:
  SliceEncoder();
  ~SliceEncoder();
  SliceEncoder(SliceEncoder&&) noexcept;
  SliceEncoder& operator=(SliceEncoder&&) noexcept;

  // The message, valid until the next call: its size is a multiple of 8. The frames of the slice
  // are `frames`, one part after the other, in place of slice.frames.
  Bytes encode(const Slice& slice, std::span<const Bytes> frames);

  // The same message without its frames: `before`, then that many bytes of frames, then `after`.
  // Saves a copy of the frames.
  struct AroundFrames {
    Bytes before{};
    Bytes after{};
  };
  AroundFrames encode_around(const Slice& slice, std::size_t frames);

  Bytes encode(std::span<const StreamPart> parts);

 private:
  MutableBytes build(const Slice& slice, std::size_t frames);

  std::unique_ptr<flatbuffers::FlatBufferBuilder> builder_;
  std::size_t frames_at_ = 0;  // place of the frames in the message
};

// Decodes the messages of a file that may be damaged or forged: verifies the bytes, that every
// value is in its range, that the events can follow each other, that the lengths agree
// (`frame_bytes` of each frame), and that answers and texts are what they are called (JSON, UTF-8).
// Bytes after the FlatBuffer are ignored. A message at an address that is a multiple of 8 is read
// in place, and its frames are aligned to 8 bytes if our writer wrote it; any other message is
// copied. Confined to one thread.
class SliceDecoder {
 public:
  // The views are valid while `message` is, and until the next call. `stream` is the number in the
  // metadata of the message's channel: the message itself does not have it.
  [[nodiscard]] Result<Slice, WireError> slice(Bytes message, std::uint64_t stream,
                                               std::size_t frame_bytes);
  [[nodiscard]] Result<std::vector<StreamPart>, WireError> parts(Bytes message);

 private:
  AlignedMessage aligned_;
  SliceParts parts_;
};

}  // namespace millrace::recording
