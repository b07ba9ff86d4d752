// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "client_generated.h"
#include "schemas/client_codec.h"
#include "schemas/text.h"
#include "schemas/wire.h"

namespace millrace::client_protocol {
namespace {

constexpr std::size_t max_code = 64, max_message = 4096;
// Longer times would overflow when they are added to a Time.
constexpr std::uint64_t max_retry_after_ms = 86'400'000;

std::optional<std::string_view> text_in(const flatbuffers::String* text) {
  return text ? std::optional(wire::view(text)) : std::nullopt;
}

template <class Number>
std::optional<Number> number_in(const flatbuffers::Optional<Number>& value) {
  return value ? std::optional(*value) : std::nullopt;
}

bool is_code(const flatbuffers::String* code) { return is_printable(wire::view(code), max_code); }
bool is_sentence(const flatbuffers::String* text) {
  return is_printable(wire::view(text), max_message);
}

std::optional<ResumePoint> place_in(const wire::ResumePoint* at) {
  if (!at) return std::nullopt;
  return ResumePoint{at->seq(), at->frames(), at->commands(), at->begin(), at->skip()};
}

std::optional<MessageNumber> number_of(const wire::Result& in) {
  if (!in.n()) return std::nullopt;
  return MessageNumber{.n = *in.n(), .point = place_in(in.ack())};
}

std::optional<Result> read(const wire::Result& in) {
  using Kind = Answer::Kind;
  const Result result{.stream = in.stream(),
                      .seq = in.seq(),
                      .begin = in.begin(),
                      .end = in.end(),
                      .begin_s = in.begin_s(),
                      .end_s = in.end_s(),
                      .flags = in.flags(),
                      .kind = static_cast<Kind>(in.kind()),
                      .data = wire::bytes_of(in.data()),
                      .number = number_of(in)};
  const bool possible = result.begin <= result.end && std::isfinite(result.begin_s) &&
                        std::isfinite(result.end_s) && result.kind != Kind::none &&
                        result.kind <= Kind::error;
  return possible ? std::optional(result) : std::nullopt;
}

std::optional<Ready> read(const wire::Ready& in) {
  const Ready ready{.version = in.version(),
                    .stream = in.stream(),
                    .id = wire::view(in.id()),
                    .pipeline = wire::view(in.pipeline()),
                    .frames = in.frames(),
                    .frame_bytes = in.frame_bytes(),
                    .commands = in.commands(),
                    .keep = in.keep(),
                    .resume = wire::view(in.resume()),
                    .resumed = number_in(in.resumed())};
  return is_name(ready.id) && is_name(ready.pipeline) ? std::optional(ready) : std::nullopt;
}

std::optional<Flushed> read(const wire::Flushed& in) {
  if (in.mark() > max_number) return std::nullopt;
  return Flushed{.stream = in.stream(), .mark = in.mark(), .n = number_in(in.n()), .seq = in.seq()};
}

std::optional<Rejected> read(const wire::Rejected& in) {
  if (!is_code(in.code()) || !is_sentence(in.message())) return std::nullopt;
  return Rejected{.stream = in.stream(),
                  .code = wire::view(in.code()),
                  .message = wire::view(in.message()),
                  .frames = in.frames(),
                  .n = number_in(in.n())};
}

std::optional<Error> read(const wire::Error& in) {
  if (!is_code(in.code()) || !is_sentence(in.message()) || !is_code(in.parameter()))
    return std::nullopt;
  std::optional<std::chrono::milliseconds> retry_after;
  if (const auto after = in.retry_after_ms()) {
    if (*after > max_retry_after_ms) return std::nullopt;
    retry_after.emplace(*after);
  }
  return Error{.stream = number_in(in.stream()),
               .code = wire::view(in.code()),
               .message = wire::view(in.message()),
               .parameter = wire::view(in.parameter()),
               .retry_after = retry_after,
               .n = number_in(in.n())};
}

std::optional<Closed> read(const wire::Closed& in) {
  return Closed{
      .stream = in.stream(), .frames = in.frames(), .chunks = in.chunks(), .n = number_in(in.n())};
}

std::optional<Credit> read(const wire::Credit& in) {
  if (in.frames() > max_number) return std::nullopt;
  return Credit{.stream = in.stream(), .frames = in.frames()};
}

std::optional<Goaway> read(const wire::Goaway& in) {
  if (in.retry_after_ms() > max_retry_after_ms) return std::nullopt;
  return Goaway{.stream = in.stream(),
                .retry_after = std::chrono::milliseconds(in.retry_after_ms())};
}

std::optional<Message> read(const wire::Message& in) {
  using Kind = Answer::Kind;
  const auto kind = static_cast<Kind>(in.kind());
  if (kind != Kind::json && kind != Kind::text && kind != Kind::bytes) return std::nullopt;
  return Message{.stream = in.stream(),
                 .number = in.number(),
                 .seq = in.seq(),
                 .kind = kind,
                 .data = wire::bytes_of(in.data()),
                 .n = number_in(in.n())};
}

std::optional<Ack> read(const wire::Ack& in) {
  return Ack{.stream = in.stream(), .place = *place_in(in.place())};
}

std::optional<Open> read(const wire::Open& in) {
  return Open{.version = in.version(),
              .stream = in.stream(),
              .pipeline = text_in(in.pipeline()),
              .id = text_in(in.id()),
              .format = text_in(in.format()),
              .rate = number_in(in.rate()),
              .channels = number_in(in.channels()),
              .dim = number_in(in.dim()),
              .channel = text_in(in.channel()),
              .chunk = text_in(in.chunk()),
              .options = text_in(in.options()),
              .record = text_in(in.record()),
              .token = text_in(in.token()),
              .resume = in.resume(),
              .resume_token = text_in(in.resume_token()),
              .n = number_in(in.n()),
              .place = place_in(in.place()),
              .have = number_in(in.have()),
              .flushed = number_in(in.flushed()),
              .set = text_in(in.set())};
}

std::optional<Frames> read(const wire::Frames& in) {
  return Frames{.stream = in.stream(), .at = in.at(), .bytes = wire::bytes_of(in.bytes())};
}

std::optional<Flush> read(const wire::Flush& in) {
  const Flush flush{.stream = in.stream(), .mark = number_in(in.mark())};
  return flush.mark.value_or(0) <= max_number ? std::optional(flush) : std::nullopt;
}

std::optional<Reset> read(const wire::Reset& in) { return Reset{.stream = in.stream()}; }

std::optional<Gap> read(const wire::Gap& in) {
  if (in.frames() == 0 || in.frames() > max_number) return std::nullopt;
  return Gap{.stream = in.stream(), .frames = in.frames()};
}

std::optional<End> read(const wire::End& in) { return End{.stream = in.stream()}; }

std::optional<Post> read(const wire::Post& in) {
  return Post{.stream = in.stream(), .data = wire::view(in.data())};
}

std::optional<SetOptions> read(const wire::SetOptions& in) {
  return SetOptions{.stream = in.stream(), .options = wire::view(in.options())};
}

std::optional<Received> read(const wire::Received& in) {
  if (in.n() > max_number) return std::nullopt;
  return Received{.stream = in.stream(), .n = in.n()};
}

template <class Any, class Table>
millrace::Result<Any, WireError> checked(const Table* table) {
  auto message = read(*table);
  if (!message) return WireError::meaning;
  return Any(*message);
}

}  // namespace

millrace::Result<ToService, WireError> Decoder::to_service(Bytes message) {
  if (message.size() > max_size_) return WireError::too_long;
  const auto* root =
      wire::verified<wire::ClientMessage>(aligned_.of(message), wire::ClientMessageIdentifier());
  if (!root) return WireError::malformed;
  switch (root->body_type()) {
    case wire::ClientBody::Open: return checked<ToService>(root->body_as_Open());
    case wire::ClientBody::Frames: return checked<ToService>(root->body_as_Frames());
    case wire::ClientBody::Flush: return checked<ToService>(root->body_as_Flush());
    case wire::ClientBody::Reset: return checked<ToService>(root->body_as_Reset());
    case wire::ClientBody::Gap: return checked<ToService>(root->body_as_Gap());
    case wire::ClientBody::End: return checked<ToService>(root->body_as_End());
    case wire::ClientBody::Post: return checked<ToService>(root->body_as_Post());
    case wire::ClientBody::SetOptions: return checked<ToService>(root->body_as_SetOptions());
    case wire::ClientBody::Received: return checked<ToService>(root->body_as_Received());
    default: return WireError::unknown;
  }
}

millrace::Result<ToClient, WireError> Decoder::to_client(Bytes message) {
  if (message.size() > max_size_) return WireError::too_long;
  const auto* root =
      wire::verified<wire::ClientMessage>(aligned_.of(message), wire::ClientMessageIdentifier());
  if (!root) return WireError::malformed;
  switch (root->body_type()) {
    case wire::ClientBody::Result: return checked<ToClient>(root->body_as_Result());
    case wire::ClientBody::Ready: return checked<ToClient>(root->body_as_Ready());
    case wire::ClientBody::Flushed: return checked<ToClient>(root->body_as_Flushed());
    case wire::ClientBody::Rejected: return checked<ToClient>(root->body_as_Rejected());
    case wire::ClientBody::Error: return checked<ToClient>(root->body_as_Error());
    case wire::ClientBody::Closed: return checked<ToClient>(root->body_as_Closed());
    case wire::ClientBody::Credit: return checked<ToClient>(root->body_as_Credit());
    case wire::ClientBody::Goaway: return checked<ToClient>(root->body_as_Goaway());
    case wire::ClientBody::Message: return checked<ToClient>(root->body_as_Message());
    case wire::ClientBody::Ack: return checked<ToClient>(root->body_as_Ack());
    default: return WireError::unknown;
  }
}

}  // namespace millrace::client_protocol
