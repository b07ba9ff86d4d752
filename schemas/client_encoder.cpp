// SPDX-License-Identifier: Apache-2.0
#include "client_generated.h"
#include "schemas/client_codec.h"
#include "schemas/wire.h"

namespace millrace::client_protocol {
namespace {

using flatbuffers::FlatBufferBuilder;
using Text = flatbuffers::Offset<flatbuffers::String>;

Text write(FlatBufferBuilder& builder, std::string_view text) {
  return builder.CreateString(text.data(), text.size());
}

// An absent field for nullopt.
Text write(FlatBufferBuilder& builder, const std::optional<std::string_view>& text) {
  return text ? write(builder, *text) : Text();
}

auto write(FlatBufferBuilder& builder, Bytes bytes) {
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

flatbuffers::Optional<std::uint64_t> number(const std::optional<std::uint64_t>& value) {
  return value ? flatbuffers::Optional<std::uint64_t>(*value) : flatbuffers::nullopt;
}

flatbuffers::Optional<std::uint32_t> number(const std::optional<std::uint32_t>& value) {
  return value ? flatbuffers::Optional<std::uint32_t>(*value) : flatbuffers::nullopt;
}

wire::ResumePoint place(const ResumePoint& at) {
  return {at.seq, at.frames, at.commands, at.begin, at.skip};
}

template <class Table>
Bytes finish(FlatBufferBuilder& builder, flatbuffers::Offset<Table> body) {
  wire::FinishClientMessageBuffer(
      builder,
      wire::CreateClientMessage(builder, wire::ClientBodyTraits<Table>::enum_value, body.Union()));
  return wire::finished(builder);
}

}  // namespace

Encoder::Encoder() : builder_(std::make_unique<FlatBufferBuilder>()) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

Bytes Encoder::encode(const Result& result) {
  auto& builder = *builder_;
  const wire::Writing writing(builder);
  const auto data = write(builder, result.data);
  const auto acked = result.number ? result.number->point : std::nullopt;
  const wire::ResumePoint point = place(acked.value_or(ResumePoint()));
  const auto n =
      result.number ? flatbuffers::Optional<std::uint64_t>(result.number->n) : flatbuffers::nullopt;
  return finish(builder, wire::CreateResult(builder, result.stream, result.seq, result.begin,
                                            result.end, result.begin_s, result.end_s, result.flags,
                                            static_cast<std::uint8_t>(result.kind), data, n,
                                            acked ? &point : nullptr));
}

Bytes Encoder::encode(const Message& message) {
  auto& builder = *builder_;
  const wire::Writing writing(builder);
  const auto data = write(builder, message.data);
  return finish(builder, wire::CreateMessage(builder, message.stream, message.number, message.seq,
                                             static_cast<std::uint8_t>(message.kind), data,
                                             number(message.n)));
}

Bytes Encoder::encode(const Ready& ready) {
  auto& builder = *builder_;
  const wire::Writing writing(builder);
  const auto id = write(builder, ready.id);
  const auto pipeline = write(builder, ready.pipeline);
  const auto resume = ready.resume.empty() ? Text() : write(builder, ready.resume);
  return finish(builder, wire::CreateReady(builder, ready.version, ready.stream, id, pipeline,
                                           ready.frames, ready.frame_bytes, ready.commands,
                                           ready.keep, resume, ready.resumed));
}

Bytes Encoder::encode(const Flushed& flushed) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateFlushed(*builder_, flushed.stream, flushed.mark,
                                               number(flushed.n), flushed.seq));
}

Bytes Encoder::encode(const Rejected& rejected) {
  auto& builder = *builder_;
  const wire::Writing writing(builder);
  const auto code = write(builder, rejected.code);
  const auto message = write(builder, rejected.message);
  return finish(builder, wire::CreateRejected(builder, rejected.stream, code, message,
                                              rejected.frames, number(rejected.n)));
}

Bytes Encoder::encode(const Error& error) {
  auto& builder = *builder_;
  const wire::Writing writing(builder);
  const auto code = write(builder, error.code);
  const auto message = write(builder, error.message);
  const auto parameter = error.parameter.empty() ? Text() : write(builder, error.parameter);
  std::optional<std::uint64_t> retry_after;
  if (error.retry_after) retry_after = static_cast<std::uint64_t>(error.retry_after->count());
  return finish(builder, wire::CreateError(builder, number(error.stream), code, message, parameter,
                                           number(retry_after), number(error.n)));
}

Bytes Encoder::encode(const Closed& closed) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateClosed(*builder_, closed.stream, closed.frames,
                                              closed.chunks, number(closed.n)));
}

Bytes Encoder::encode(const Credit& credit) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateCredit(*builder_, credit.stream, credit.frames));
}

Bytes Encoder::encode(const Goaway& goaway) {
  const wire::Writing writing(*builder_);
  return finish(*builder_,
                wire::CreateGoaway(*builder_, goaway.stream,
                                   static_cast<std::uint64_t>(goaway.retry_after.count())));
}

Bytes Encoder::encode(const Ack& ack) {
  const wire::Writing writing(*builder_);
  const wire::ResumePoint point = place(ack.place);
  return finish(*builder_, wire::CreateAck(*builder_, ack.stream, &point));
}

Bytes Encoder::encode(const Open& open) {
  auto& builder = *builder_;
  const wire::Writing writing(builder);
  const auto pipeline = write(builder, open.pipeline);
  const auto id = write(builder, open.id);
  const auto format = write(builder, open.format);
  const auto channel = write(builder, open.channel);
  const auto chunk = write(builder, open.chunk);
  const auto options = write(builder, open.options);
  const auto record = write(builder, open.record);
  const auto token = write(builder, open.token);
  const auto resume_token = write(builder, open.resume_token);
  const auto set = write(builder, open.set);
  const auto rate = open.rate ? flatbuffers::Optional<double>(*open.rate) : flatbuffers::nullopt;
  const wire::ResumePoint point = place(open.place.value_or(ResumePoint()));
  return finish(builder, wire::CreateOpen(builder, open.version, open.stream, pipeline, id, format,
                                          rate, number(open.channels), number(open.dim), channel,
                                          chunk, options, record, token, open.resume, resume_token,
                                          number(open.n), open.place ? &point : nullptr,
                                          number(open.have), number(open.flushed), set));
}

Bytes Encoder::encode(const Frames& frames) {
  auto& builder = *builder_;
  const wire::Writing writing(builder);
  const auto bytes = write(builder, frames.bytes);
  return finish(builder, wire::CreateFrames(builder, frames.stream, frames.at, bytes));
}

Bytes Encoder::encode(const Flush& flush) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateFlush(*builder_, flush.stream, number(flush.mark)));
}

Bytes Encoder::encode(const Reset& reset) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateReset(*builder_, reset.stream));
}

Bytes Encoder::encode(const Gap& gap) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateGap(*builder_, gap.stream, gap.frames));
}

Bytes Encoder::encode(const End& end) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateEnd(*builder_, end.stream));
}

Bytes Encoder::encode(const Post& post) {
  auto& builder = *builder_;
  const wire::Writing writing(builder);
  const auto data = builder.CreateString(post.data);
  return finish(builder, wire::CreatePost(builder, post.stream, data));
}

Bytes Encoder::encode(const SetOptions& set) {
  auto& builder = *builder_;
  const wire::Writing writing(builder);
  const auto options = builder.CreateString(set.options);
  return finish(builder, wire::CreateSetOptions(builder, set.stream, options));
}

Bytes Encoder::encode(const Received& received) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateReceived(*builder_, received.stream, received.n));
}

}  // namespace millrace::client_protocol
