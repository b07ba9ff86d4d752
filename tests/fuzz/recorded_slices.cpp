// SPDX-License-Identifier: Apache-2.0
// The messages of recording files: slices, and the list of parts. A valid one is encoded and
// decoded again. The last byte of an input selects the bytes of a frame; in a file it is 0.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "schemas/slices/slice.h"
#include "schemas/text.h"
#include "tests/fuzz/target.h"

namespace millrace {
namespace {

using fuzz::require;
using namespace recording;
using Kind = Event::Kind;

constexpr std::uint64_t max_position = std::numeric_limits<std::int64_t>::max();

std::vector<std::byte> copy_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

void check_events(const Slice& slice, std::size_t frame_bytes) {
  std::uint64_t position = slice.begin, frames = 0, number = slice.first_event;
  bool over = false;
  for (const RecordedEvent& timed : slice.events) {
    const Event& event = timed.event;
    require(!over, "no event follows the end");
    require((event.kind == Kind::open) == (number++ == 0), "the first event is `open`");
    require(event.kind != Kind::open || event.count == position, "an open is at its position");
    require(!event.rows || event.kind == Kind::open, "only an open has rows");
    require(!event.mark || event.kind == Kind::flush, "only a flush has a mark");
    require(timed.text.size() == (event.has_text() ? event.count : 0), "texts have their length");
    require(!event.has_text() || is_json(timed.text), "a text is JSON");
    require(event.kind != Kind::set || is_json_object(timed.text), "of a `set` an object");
    over = event.kind == Kind::end || event.kind == Kind::abort;
    if (event.kind == Kind::frames) frames += event.count;
    if (event.kind != Kind::frames && event.kind != Kind::gap) continue;
    require(event.count <= max_position - position, "positions are below 2^63");
    position += event.count;
  }
  require(frames * frame_bytes == slice.frames.size(), "the frames are those of the events");
}

void check_slice(const Slice& slice, std::size_t frame_bytes) {
  check_events(slice, frame_bytes);
  for (const RecordedAnswer& answer : slice.answers) {
    require(answer.kind != Answer::Kind::none, "an answer has a kind");
    require(answer.kind != Answer::Kind::json || is_json(answer.data), "JSON is JSON");
    require(answer.kind != Answer::Kind::text || is_utf8(answer.data), "text is UTF-8");
  }
  for (const RecordedMessage& message : slice.messages) {
    require(message.kind != Answer::Kind::none && message.kind != Answer::Kind::error,
            "a message has data");
    require(message.kind != Answer::Kind::json || is_json(message.data), "JSON is JSON");
    require(message.kind != Answer::Kind::text || is_utf8(message.data), "text is UTF-8");
  }
  if (slice.lost) require(slice.lost->begin <= slice.begin, "lost events lie before the slice");
}

// The message as our encoder writes it; nullopt if it is not valid.
std::optional<std::vector<std::byte>> slice_again(Bytes message, std::size_t frame_bytes) {
  static SliceDecoder decoder;
  static SliceEncoder encoder;
  const auto slice = decoder.slice(message, 1, frame_bytes);
  if (!slice) return std::nullopt;
  check_slice(*slice, frame_bytes);
  const Bytes frames = slice->frames;
  return copy_of(encoder.encode(*slice, {&frames, 1}));
}

std::optional<std::vector<std::byte>> parts_again(Bytes message) {
  static SliceDecoder decoder;
  static SliceEncoder encoder;
  const auto parts = decoder.parts(message);
  if (!parts) return std::nullopt;
  for (const StreamPart& part : *parts)
    require(part.frames <= part.end - part.begin, "frames lie in the part");
  return copy_of(encoder.encode(*parts));
}

template <class Again>
void check(Bytes message, Again again) {
  const auto written = again(message);
  static std::vector<std::byte> odd;
  odd.resize(message.size() + 1);
  std::ranges::copy(message, odd.begin() + 1);
  require(again(Bytes(odd).subspan(1)) == written, "the result does not depend on the address");
  if (!written) return;
  const auto twice = again(*written);
  require(twice.has_value(), "the written message can be read");
  require(*twice == *written, "and is written the same");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  if (size == 0) return 0;
  const std::size_t frame_bytes = 2 + 2 * (bytes[size - 1] % 4U);
  const Bytes message = fuzz::bytes_of(bytes, size - 1);  // aligned
  check(message, [=](Bytes read) { return slice_again(read, frame_bytes); });
  check(message, parts_again);
  return 0;
}
