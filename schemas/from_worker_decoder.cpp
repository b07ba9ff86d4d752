// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/message_room.h"
#include "schemas/json_text.h"
#include "schemas/text.h"
#include "schemas/wire.h"
#include "schemas/worker_codec.h"
#include "schemas/worker_values.h"
#include "worker_generated.h"

namespace millrace::worker_protocol {
namespace {

std::optional<TrainerHello> read(const wire::Trainer& in) {
  const bool possible = in.rank() < in.world() && in.world() <= max_count &&
                        in.epoch() <= max_position && in.step() <= max_position &&
                        in.stride() >= 1 && in.stride() <= max_count;
  if (!possible) return std::nullopt;
  return TrainerHello{.rank = in.rank(),
                      .world = in.world(),
                      .epoch = in.epoch(),
                      .step = in.step(),
                      .stride = in.stride(),
                      .resets = in.resets(),
                      .plan_only = in.plan_only()};
}

std::optional<Hello> read(const wire::Hello& in) {
  const std::uint32_t least = in.watch() ? 0 : 1;
  if (!is_printable(wire::view(in.pipeline()), max_name) ||
      !is_printable(wire::view(in.name()), max_name) ||
      !is_printable(wire::view(in.device()), max_name) || !fits(in.credits(), least, max_credits))
    return std::nullopt;
  Hello hello{.version = in.version(),
              .pipeline = in.pipeline()->str(),
              .name = in.name()->str(),
              .credits = in.credits(),
              .device = in.device()->str(),
              .watch = in.watch(),
              .alone = in.alone()};
  if (in.trainer()) {
    hello.trainer = read(*in.trainer());
    if (!hello.trainer || in.watch() || in.alone()) return std::nullopt;
  }
  return hello;
}

std::optional<Describe> read(const wire::Describe& in) {
  if (!is_printable(wire::view(in.pipeline()), max_name) ||
      !is_printable(wire::view(in.name()), max_name))
    return std::nullopt;
  return Describe{
      .version = in.version(), .pipeline = in.pipeline()->str(), .name = in.name()->str()};
}

Answer read_answer(Answer::Kind kind, std::string_view text, bool endpoint) {
  if (kind == Answer::Kind::json && !is_json(text))
    return {Answer::Kind::error, "answer is not JSON", endpoint};
  if (kind == Answer::Kind::text && !is_utf8(text))
    return {Answer::Kind::error, "answer is not UTF-8", endpoint};
  return {kind, std::string(text), endpoint};
}

bool read(const wire::Answers* in, std::vector<Answer>& out) {
  out.clear();
  if (!in) return true;
  const auto* endpoints = in->endpoints();
  if (in->kinds()->size() != in->lengths()->size()) return false;
  if (endpoints && endpoints->size() != in->kinds()->size()) return false;
  out.reserve(in->kinds()->size());
  Pieces pieces(wire::text_of(in->text()));
  for (flatbuffers::uoffset_t i = 0; i < in->kinds()->size(); ++i) {
    const std::uint8_t kind = in->kinds()->Get(i);
    const auto text = pieces.next(in->lengths()->Get(i));
    const std::uint8_t endpoint = endpoints ? endpoints->Get(i) : 0;
    if (kind >= count_of<Answer::Kind>() || endpoint > 1 || !text) return false;
    if (static_cast<Answer::Kind>(kind) == Answer::Kind::pending && !text->empty()) return false;
    out.push_back(read_answer(static_cast<Answer::Kind>(kind), *text, endpoint == 1));
  }
  return pieces.empty();
}

bool read(const wire::Done& in, Done& out) {
  out.batch = BatchId{in.batch()};
  out.taken = from_wire(in.taken());
  out.done = from_wire(in.done());
  return read(in.answers(), out.answers) && read(in.mark_answers(), out.mark_answers);
}

std::optional<Send> read(const wire::Send& in) {
  const bool possible = in.kind() >= 1 && in.kind() <= 3 && in.seq() <= max_position &&
                        in.data()->size() <= longest_message;
  if (!possible) return std::nullopt;
  Send send{.stream = StreamId{in.stream()},
            .seq = in.seq(),
            .message =
                read_answer(static_cast<Answer::Kind>(in.kind()), wire::text_of(in.data()), false)};
  if (send.message.kind == Answer::Kind::error) return std::nullopt;
  return send;
}

std::optional<LateAnswer> read(const wire::LateAnswer& in) {
  const auto kind = static_cast<Answer::Kind>(in.kind());
  if (in.kind() >= count_of<Answer::Kind>() || kind == Answer::Kind::pending) return std::nullopt;
  return LateAnswer{.stream = StreamId{in.stream()},
                    .seq = in.seq(),
                    .answer = read_answer(kind, wire::text_of(in.data()), in.endpoint())};
}

}  // namespace

Result<ToService, WireError> Decoder::to_service(Bytes message) {
  if (message.size() > max_size_) return WireError::too_long;
  const auto* root =
      wire::verified<wire::WorkerMessage>(aligned_.of(message), wire::WorkerMessageIdentifier());
  if (!root) return WireError::malformed;
  switch (root->body_type()) {
    case wire::WorkerBody::Hello: return checked<Hello, ToService>(read(*root->body_as_Hello()));
    case wire::WorkerBody::Describe:
      return checked<Describe, ToService>(read(*root->body_as_Describe()));
    case wire::WorkerBody::Heartbeat: return ToService(Heartbeat{});
    case wire::WorkerBody::Bye: return ToService(Bye{});
    case wire::WorkerBody::Unmapped: return ToService(Unmapped{});
    case wire::WorkerBody::Send: return checked<Send, ToService>(read(*root->body_as_Send()));
    case wire::WorkerBody::LateAnswer:
      return checked<LateAnswer, ToService>(read(*root->body_as_LateAnswer()));
    case wire::WorkerBody::Done:
      if (!read(*root->body_as_Done(), done_)) return WireError::meaning;
      return ToService(std::move(done_));
    default: return WireError::unknown;
  }
}

}  // namespace millrace::worker_protocol
