// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cassert>
#include <functional>
#include <span>

#include "recording_bfbs_generated.h"
#include "recording_generated.h"
#include "schemas/slices/event_numbers.h"
#include "schemas/slices/slice.h"
#include "schemas/wire.h"

namespace millrace::recording {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
using ByteVector = flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>>;

std::size_t size_of(std::span<const Bytes> parts) {
  std::size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  return size;
}

// Room for the frames. A null offset, which the table leaves out, if there are none.
ByteVector encode_frames(Builder& builder, std::size_t size) {
  if (size == 0) return 0;
  builder.ForceVectorAlignment(size, 1, 8);
  std::uint8_t* unused = nullptr;
  return builder.CreateUninitializedVector(size, &unused);
}

std::uint64_t number_of(const Event& event) {
  if (event.kind == Event::Kind::open) return event.rows;  // the slice has its position
  if (event.kind != Event::Kind::flush) return event.count;
  return event.mark ? *event.mark + 1 : 0;
}

recorded::EventEntry entry_of(const RecordedEvent& timed) {
  const std::uint64_t number = std::min(number_of(timed.event), large_number);
  return {to_wire(timed.at), static_cast<std::uint32_t>(number),
          static_cast<std::uint16_t>(number >> 32), static_cast<std::uint8_t>(timed.event.kind),
          static_cast<std::uint8_t>(timed.event.cause)};
}

auto encode_events(Builder& builder, std::span<const RecordedEvent> events) {
  using Vector = flatbuffers::Offset<flatbuffers::Vector<const recorded::EventEntry*>>;
  if (events.empty()) return Vector();
  return builder.CreateVectorOfStructs<recorded::EventEntry>(
      events.size(),
      [events](std::size_t i, recorded::EventEntry* out) { *out = entry_of(events[i]); });
}

auto encode_large(Builder& builder, std::span<const RecordedEvent> events) {
  const auto is_large = [](const RecordedEvent& timed) {
    return number_of(timed.event) >= large_number;
  };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(events, is_large));
  if (count == 0) return flatbuffers::Offset<flatbuffers::Vector<std::uint64_t>>();
  std::uint64_t* out = nullptr;
  const auto vector = builder.CreateUninitializedVector(count, &out);
  for (const RecordedEvent& timed : events)
    if (is_large(timed)) *out++ = flatbuffers::EndianScalar(number_of(timed.event));
  return vector;
}

// The data of answers or of messages, or the texts of events, one after the other.
template <class One>
ByteVector encode_data(Builder& builder, std::span<const One> all, auto data) {
  std::size_t size = 0;
  for (const One& one : all) size += std::invoke(data, one).size();
  if (size == 0) return 0;
  std::uint8_t* at = nullptr;
  const ByteVector vector = builder.CreateUninitializedVector(size, &at);
  for (const One& one : all) at = std::ranges::copy(std::invoke(data, one), at).out;
  return vector;
}

recorded::AnswerEntry entry_of(const RecordedAnswer& answer) {
  return {answer.seq, number(answer.batch), static_cast<std::uint32_t>(answer.data.size()),
          static_cast<std::uint8_t>(answer.kind)};
}
recorded::MessageEntry entry_of(const RecordedMessage& message) {
  return {message.seq, message.number, static_cast<std::uint32_t>(message.data.size()),
          static_cast<std::uint8_t>(message.kind)};
}

template <class One>
auto encode_entries(Builder& builder, std::span<const One> all) {
  using Entry = decltype(entry_of(all.front()));
  if (all.empty()) return flatbuffers::Offset<flatbuffers::Vector<const Entry*>>();
  return builder.CreateVectorOfStructs<Entry>(all.size(), [all](std::size_t i, Entry* out) {
    assert(all[i].kind != Answer::Kind::none);
    *out = entry_of(all[i]);
  });
}

recorded::Lost encode_lost(const LostEvents& lost) {
  return {lost.first_event, lost.begin, static_cast<std::uint8_t>(lost.reason)};
}

recorded::Closing encode_closing(const StreamTotals& totals) {
  return {totals.rows, totals.frames, totals.lost, totals.digest, totals.closing, totals.complete};
}

recorded::PartEntry encode_part(const StreamPart& part) {
  return {part.stream, part.first_slice, part.slices, part.first_event, part.begin, part.end,
          part.frames, part.channel,     part.closed, part.complete,    part.lost};
}

}  // namespace

Bytes slice_schema() {
  return std::as_bytes(
      std::span(recorded::SliceBinarySchema::data(), recorded::SliceBinarySchema::size()));
}

SliceEncoder::SliceEncoder() : builder_(std::make_unique<Builder>()) {}
SliceEncoder::~SliceEncoder() = default;
SliceEncoder::SliceEncoder(SliceEncoder&&) noexcept = default;
SliceEncoder& SliceEncoder::operator=(SliceEncoder&&) noexcept = default;

MutableBytes SliceEncoder::build(const Slice& slice, std::size_t frames) {
  assert(slice.events.empty() || slice.events.front().event.kind != Event::Kind::open ||
         slice.events.front().event.count == slice.begin);
  const wire::Writing writing(*builder_);
  builder_->Align(8);  // the size of the message is then a multiple of 8
  // The frames are built first, so they come last in the message.
  const auto frames_vector = encode_frames(*builder_, frames);
  const auto texts =
      encode_data(*builder_, std::span<const RecordedEvent>(slice.events), &RecordedEvent::text);
  const auto message_bytes = encode_data(*builder_, slice.messages, &RecordedMessage::data);
  const auto messages = encode_entries(*builder_, slice.messages);
  const auto answer_bytes = encode_data(*builder_, slice.answers, &RecordedAnswer::data);
  const auto answers = encode_entries(*builder_, slice.answers);
  const auto large = encode_large(*builder_, slice.events);
  const auto events = encode_events(*builder_, slice.events);
  const auto lost = encode_lost(slice.lost.value_or(LostEvents{}));
  const auto closing = encode_closing(slice.closing.value_or(StreamTotals{}));
  builder_->Finish(recorded::CreateSlice(
      *builder_, slice.first_event, slice.begin, events, frames_vector, slice.size, answers,
      answer_bytes, slice.lost ? &lost : nullptr, slice.closing ? &closing : nullptr, large,
      messages, message_bytes, texts));
  const std::size_t size = builder_->GetSize();
  assert(size % 8 == 0);
  // An offset counts from the end of the message, and a vector begins with its length.
  frames_at_ = frames > 0 ? size - frames_vector.o + sizeof(flatbuffers::uoffset_t) : size;
  return std::as_writable_bytes(std::span(builder_->GetBufferPointer(), size));
}

Bytes SliceEncoder::encode(const Slice& slice, std::span<const Bytes> frames) {
  const MutableBytes message = build(slice, size_of(frames));
  std::byte* at = message.data() + frames_at_;
  for (const Bytes part : frames) at = std::ranges::copy(part, at).out;
  return message;
}

SliceEncoder::AroundFrames SliceEncoder::encode_around(const Slice& slice, std::size_t frames) {
  const Bytes message = build(slice, frames);
  return {.before = message.first(frames_at_), .after = message.subspan(frames_at_ + frames)};
}

Bytes SliceEncoder::encode(std::span<const StreamPart> parts) {
  const wire::Writing writing(*builder_);
  const auto entries = builder_->CreateVectorOfStructs<recorded::PartEntry>(
      parts.size(),
      [parts](std::size_t i, recorded::PartEntry* out) { *out = encode_part(parts[i]); });
  builder_->Finish(recorded::CreateParts(*builder_, entries));
  return wire::finished(*builder_);
}

}  // namespace millrace::recording
