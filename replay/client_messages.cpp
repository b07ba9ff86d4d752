// SPDX-License-Identifier: Apache-2.0
#include "replay/client_messages.h"

#include <cstring>
#include <ranges>
#include <string>

#include "base/half.h"
#include "chunker/rule_json.h"
#include "recording/files/recording_file.h"

namespace millrace {
namespace {

using Kind = Event::Kind;

// Clients send audio as s16le or f32le, and features as f32le or f16le.
Element client_element(const FrameType& type) {
  const bool sent =
      type.element == Element::f32 || type.element == (type.features ? Element::f16 : Element::s16);
  return sent ? type.element : Element::f32;
}

std::string format_of(Element element) { return std::string(name_of(element)) + "le"; }

// The size that the client requested. The first body of a run differs from the requested size by a
// constant.
std::optional<std::string> requested_size(const recording::StreamMeta& meta, const Event& first) {
  if (first.kind != Kind::size || first.cause != Cause::client) return std::nullopt;
  const auto rule =
      rule_from_json(meta.rule, {.rate = meta.frames.rate, .features = meta.frames.features});
  if (!rule) return std::nullopt;
  return std::to_string(first.count - static_cast<std::uint64_t>(rule->first_longer()));
}

template <class Value, class ToFloat>
void append_floats(Bytes frames, std::vector<std::byte>& into, ToFloat to_float) {
  const std::size_t count = frames.size() / sizeof(Value), before = into.size();
  into.resize(before + count * sizeof(float));
  for (std::size_t i = 0; i < count; ++i) {
    Value value;
    std::memcpy(&value, frames.data() + i * sizeof value, sizeof value);
    const float converted = to_float(value);
    std::memcpy(into.data() + before + i * sizeof converted, &converted, sizeof converted);
  }
}

// The last event of the stream in the chunk; nullopt: none.
std::optional<Event> last_event(const std::vector<recording::SliceMessage>& messages,
                                std::uint16_t channel, const recording::StreamMeta& meta) {
  recording::SliceDecoder decoder;
  for (const recording::SliceMessage& message : messages | std::views::reverse) {
    if (message.channel != channel) continue;
    const auto slice = decoder.slice(message.bytes, meta.number, meta.frames.bytes());
    if (slice && !slice->events.empty()) return slice->events.back().event;
  }
  return std::nullopt;
}

}  // namespace

StreamRequest request_of(const recording::StreamMeta& meta, const Event& first) {
  StreamRequest request{.pipeline = meta.pipeline,
                        .id = meta.name,
                        .options = meta.options,
                        .format = format_of(client_element(meta.frames)),
                        .chunk = requested_size(meta, first),
                        .rate = meta.frames.rate,
                        .record = false};
  (meta.frames.features ? request.dim : request.channels) = meta.frames.values;
  return request;
}

std::optional<ClientMessage> command_of(const recording::RecordedEvent& read) {
  const Event& event = read.event;
  const bool decided = event.cause == Cause::endpoint;
  switch (event.kind) {
    case Kind::flush:
      if (!decided) return client_message::Flush{event.mark};
      break;
    case Kind::reset:
      if (!decided) return client_message::Reset{};
      break;
    case Kind::gap: return client_message::Gap{event.count};
    case Kind::message: return client_message::Message{std::string(read.text)};
    case Kind::set: return client_message::Set{std::string(read.text)};
    case Kind::end: return client_message::End{};
    case Kind::open:
    case Kind::frames:
    case Kind::size:
    case Kind::abort: break;
  }
  return std::nullopt;
}

std::size_t client_frame_bytes(const FrameType& type) {
  return size_of(client_element(type)) * type.values;
}

void append_for_client(Bytes frames, const FrameType& type, std::vector<std::byte>& into) {
  if (client_element(type) == type.element) {
    into.insert(into.end(), frames.begin(), frames.end());
  } else if (type.element == Element::f16) {
    append_floats<std::uint16_t>(frames, into, half_to_float);
  } else {
    append_floats<std::int16_t>(
        frames, into, [](std::int16_t value) { return static_cast<float>(value) / 32768.0f; });
  }
}

bool ends_without_end(recording::Recordings& recordings, const recording::RecordedStream& stream) {
  const auto opened = recordings.file(stream.last_file);
  if (!opened) return true;
  recording::RecordingFile& file = **opened;
  const auto channel = file.channel_of(stream.meta.number);
  if (!channel) return true;
  for (const std::uint32_t chunk : std::views::reverse(file.chunks_of(*channel))) {
    const auto messages = file.messages(chunk);
    if (!messages) continue;
    if (const auto event = last_event(*messages, *channel, stream.meta))
      return event->kind != Kind::end;
  }
  return true;
}

}  // namespace millrace
