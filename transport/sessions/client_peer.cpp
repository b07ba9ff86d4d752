// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/client_peer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "transport/websocket/stream_target.h"

namespace millrace {

namespace cp = client_protocol;

namespace {

constexpr std::chrono::seconds offence_memory{10};
constexpr std::size_t max_unknown = ClientPeer::max_streams;
constexpr std::string_view not_read = "what is sent is not read";
constexpr std::string_view silent = "no stream was opened for too long";

}  // namespace

ClientPeer::ClientPeer(PeerWire& wire, const PeerPlace& place, Time now)
    : wire_(wire),
      place_(place),
      outbox_(wire, place.encoder, place.stats.send_buffer),
      progress_(now),
      asked_(now) {}

ClientPeer::~ClientPeer() = default;

void ClientPeer::received(const cp::ToService& message, Time now) {
  if (ending_) return;
  if (outbox_.unsent_of_nobody() > place_.limits.unsent_replies)
    return end(Closing::slow_reader, ErrorCode::slow_reader, not_read, now);
  std::visit(
      [&](const auto& one) {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, cp::Open>)
          open(one, now);
        else
          bring(one, now);
      },
      message);
}

template <class Message>
void ClientPeer::bring(const Message& message, Time now) {
  const auto found = streams_.find(message.stream);
  if (found == streams_.end()) return answer_unknown(message.stream);
  found->second->take(message, now);
}

void ClientPeer::open(const cp::Open& open, Time now) {
  asked_ = now;
  if (streams_.contains(open.stream)) {
    place_.stats.rejected[MessageFault::schema].add();
    outbox_.put(cp::Rejected{.stream = open.stream,
                             .code = name_of(ErrorCode::conflict),
                             .message = "a stream of this number is open"});
    return;
  }
  if (streams_.size() >= max_streams)
    return refuse(open, {.status = 503,
                         .message = "a connection has at most 1024 streams",
                         .retry_after = place_.retry_times.of_refused(),
                         .reason = Refusal::no_room});
  auto request = read_open(open);
  if (!request) return refuse(open, request.error());
  auto made = std::make_unique<PeerStream>(open.stream, outbox_, place_);
  // Inserted before open(), whose messages wait in the outbox under the stream's address.
  PeerStream& stream = *streams_.emplace(open.stream, std::move(made)).first->second;
  auto input = place_.admission.open(std::move(*request), stream);
  if (!input) {
    streams_.erase(open.stream);
    return refuse(open, input.error());
  }
  place_.stats.messages[MessageType::open].add();
  std::erase(unknown_, open.stream);
  stream.begin(std::move(*input), now);
  opened_ = true;
}

void ClientPeer::refuse(const cp::Open& open, const RequestError& error) {
  place_.stats.refused[error.reason].add();
  outbox_.put(cp::Error{.stream = open.stream,
                        .code = name_of(code_of(error)),
                        .message = error.message,
                        .parameter = error.parameter,
                        .retry_after = error.retry_after});
}

// Once: what it sent before it read that its stream is over comes to many messages. And not at all
// where it was told the end, after which the number is free: the answer would be taken for that of
// the next stream of this number.
void ClientPeer::answer_unknown(std::uint64_t number) {
  place_.stats.rejected[MessageFault::unknown_stream].add();
  if (!note_unknown(number)) return;
  outbox_.put(cp::Error{.stream = number,
                        .code = name_of(ErrorCode::unknown_stream),
                        .message = "no stream of this number is open"});
}

// False where it is noted.
bool ClientPeer::note_unknown(std::uint64_t number) {
  if (std::ranges::find(unknown_, number) != unknown_.end()) return false;
  if (unknown_.size() == max_unknown) unknown_.erase(unknown_.begin());
  unknown_.push_back(number);
  return true;
}

void ClientPeer::malformed(MessageFault how, std::string_view what, Time now) {
  if (ending_) return;
  place_.stats.rejected[how].add();
  outbox_.put(
      cp::Error{.stream = std::nullopt, .code = name_of(ErrorCode::schema), .message = what});
  if (offends_too_often(now))
    end(Closing::protocol, ErrorCode::schema, "too much that is no message came", now);
}

bool ClientPeer::offends_too_often(Time now) {
  const auto before = std::exchange(offences_[0], offences_[1]);
  offences_[1] = now;
  return before && now - *before < offence_memory;
}

void ClientPeer::end(Closing why, ErrorCode code, std::string_view message, Time now) {
  ending_ = why;
  ended_ = now;
  for (auto& [number, stream] : streams_) stream->fail(code, message, now);
}

void ClientPeer::flush(Time now) {
  while (const auto sent = outbox_.send_next()) {
    PeerStream* const stream = sent->stream;
    if (!stream) continue;
    stream->sent(*sent, now);
    if (!stream->over()) continue;
    stream->lost(now);
    (void)note_unknown(stream->number());
    streams_.erase(stream->number());
  }
}

void ClientPeer::check(Time now) { (void)check_some(now, std::numeric_limits<std::size_t>::max()); }

// Streams that come meanwhile may be left out once.
std::size_t ClientPeer::check_some(Time now, std::size_t most) {
  if (is_checked()) check_own(now);
  std::size_t looked = 1;
  for (; looked < most && !ending_ && next_bucket_ < streams_.bucket_count();
       ++next_bucket_, ++looked)
    for (auto at = streams_.begin(next_bucket_); at != streams_.end(next_bucket_); ++at, ++looked)
      at->second->check(now);
  if (ending_ || next_bucket_ >= streams_.bucket_count()) next_bucket_ = 0;
  return looked;
}

void ClientPeer::check_own(Time now) {
  flush(now);  // a word of the wire's that was missed is no word for ever
  if (ending_) {
    if (now - ended_ > place_.limits.close && !std::exchange(cut_, true)) wire_.cut();
    return;
  }
  note_progress(now);
  if (now - progress_ > place_.limits.write_stall)
    return end(Closing::slow_reader, ErrorCode::slow_reader, not_read, now);
  if (!opened_ && now - asked_ > place_.limits.idle) return give_up_silent(now);
}

void ClientPeer::note_progress(Time now) {
  const std::uint64_t before = acknowledged_;
  const bool all_sent = outbox_.empty() && wire_.empty();
  if (!all_sent) acknowledged_ = wire_.acknowledged();
  if (all_sent || acknowledged_ != before) progress_ = now;
}

void ClientPeer::give_up_silent(Time now) {
  outbox_.put(
      cp::Error{.stream = std::nullopt, .code = name_of(ErrorCode::idle), .message = silent});
  end(Closing::idle, ErrorCode::idle, silent, now);
}

void ClientPeer::lost(Time now) {
  for (auto& [number, stream] : streams_) stream->lost(now);
  streams_.clear();
}

}  // namespace millrace
