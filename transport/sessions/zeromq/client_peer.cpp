// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/zeromq/client_peer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "transport/websocket/stream_target.h"

namespace millrace {

namespace cp = client_protocol;

namespace {

constexpr std::chrono::seconds fault_window{10};
constexpr std::size_t max_unknown = ClientPeer::max_streams;

}  // namespace

ClientPeer::ClientPeer(PeerWire& wire, const PeerContext& context, Time now)
    : wire_(wire),
      context_(context),
      outbox_(wire, context.encoder, context.stats.send_buffer),
      progress_(now),
      last_open_(now) {}

ClientPeer::~ClientPeer() = default;

void ClientPeer::received(const cp::ToService& message, Time now) {
  if (ending_) return;
  if (outbox_.unsent_without_stream() > context_.limits.unsent_replies)
    return end(Closing::slow_reader, ErrorCode::slow_reader,
               "more than " + std::to_string(context_.limits.unsent_replies) +
                   " bytes of answers to messages are not read: read while you send",
               now);
  std::visit(
      [&](const auto& one) {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, cp::Open>)
          open(one, now);
        else
          dispatch(one, now);
      },
      message);
}

template <class Message>
void ClientPeer::dispatch(const Message& message, Time now) {
  const auto found = streams_.find(message.stream);
  if (found == streams_.end()) return answer_unknown(message.stream);
  found->second->received(message, now);
  if (found->second->is_unfinished()) unfinished_ = message.stream;
  remove_if_over(*found->second, now);
}

// The stream may have ended meanwhile.
void ClientPeer::proceed() {
  const auto found = ending_ ? streams_.end() : streams_.find(*unfinished_);
  if (found != streams_.end()) found->second->proceed();
  if (found == streams_.end() || !found->second->is_unfinished()) unfinished_.reset();
}

void ClientPeer::open(const cp::Open& open, Time now) {
  last_open_ = now;
  // The number is free for a peer that has the end of its stream.
  if (const auto found = streams_.find(open.stream);
      found != streams_.end() && found->second->sent_all()) {
    found->second->acknowledge_all();
    remove_if_over(*found->second, now);
  }
  if (streams_.contains(open.stream)) {
    context_.stats.rejected[MessageFault::schema].add();
    outbox_.enqueue(cp::Rejected{.stream = open.stream,
                                 .code = name_of(ErrorCode::conflict),
                                 .message = "a stream with this number is open already"});
    return;
  }
  auto credential = context_.access.identify(open.token.value_or(""));
  if (!credential) return refuse(open, unauthenticated(credential.error()));
  const ClientIdentity client{.peer = wire_.address(), .credential = *std::move(credential)};
  if (streams_.size() >= max_streams)
    return refuse(open, {.status = 503,
                         .message = "a connection can have at most 1024 streams",
                         .retry_after = context_.retry_times.after_refusal(),
                         .reason = Refusal::no_room});
  auto request = read_open(open);
  if (!request) return refuse(open, request.error());
  if (context_.admission.thread_of(*request, client))
    return refuse(open, {.status = 409,
                         .parameter = "resume",
                         .message = "the stream was opened over another transport",
                         .reason = Refusal::resume});
  auto made = std::make_unique<PeerStream>(open.stream, outbox_, context_);
  // Inserted before open(): its messages are queued in the outbox with the stream's address.
  PeerStream& stream = *streams_.emplace(open.stream, std::move(made)).first->second;
  auto input = context_.admission.open(std::move(*request), client, stream);
  if (!input) {
    streams_.erase(open.stream);
    return refuse(open, input.error());
  }
  context_.stats.messages[MessageType::open].add();
  std::erase(unknown_, open.stream);
  stream.begin(std::move(*input), now);
  has_opened_ = true;
}

void ClientPeer::refuse(const cp::Open& open, const RequestError& error) {
  context_.stats.refused[error.reason].add();
  outbox_.enqueue(cp::Error{.stream = open.stream,
                            .code = name_of(code_of(error)),
                            .message = error.message,
                            .parameter = error.parameter,
                            .retry_after = error.retry_after});
}

// Answers once per number: the peer may have sent many messages before it read that the stream is
// over. Does not answer if the peer was sent the end of the stream: the number is then free, and
// the peer would take the answer for that of the next stream with this number.
void ClientPeer::answer_unknown(std::uint64_t number) {
  context_.stats.rejected[MessageFault::unknown_stream].add();
  if (!note_unknown(number)) return;
  outbox_.enqueue(cp::Error{.stream = number,
                            .code = name_of(ErrorCode::unknown_stream),
                            .message = "no stream with this number is open"});
}

// False if the number is already noted.
bool ClientPeer::note_unknown(std::uint64_t number) {
  if (std::ranges::find(unknown_, number) != unknown_.end()) return false;
  if (unknown_.size() == max_unknown) unknown_.erase(unknown_.begin());
  unknown_.push_back(number);
  return true;
}

void ClientPeer::malformed(MessageFault fault, std::string_view what, Time now) {
  if (ending_) return;
  context_.stats.rejected[fault].add();
  outbox_.enqueue(
      cp::Error{.stream = std::nullopt, .code = name_of(ErrorCode::schema), .message = what});
  if (has_too_many_faults(now))
    end(Closing::protocol, ErrorCode::schema,
        "three invalid messages were received within " + seconds_of(fault_window), now);
}

bool ClientPeer::has_too_many_faults(Time now) {
  const auto before = std::exchange(faults_[0], faults_[1]);
  faults_[1] = now;
  return before && now - *before < fault_window;
}

void ClientPeer::end(Closing why, ErrorCode code, std::string_view message, Time now) {
  ending_ = why;
  ended_ = now;
  // A client that does not read may be lost: its connection ends, and streams that resume wait.
  for (auto& [number, stream] : streams_)
    if (why != Closing::slow_reader || !stream->outlives_connection())
      stream->fail(code, message, now);
}

void ClientPeer::flush(Time now) {
  while (const auto sent = outbox_.send_next()) {
    PeerStream* const stream = sent->stream;
    if (!stream) continue;
    stream->sent(*sent, now);
    remove_if_over(*stream, now);
  }
}

void ClientPeer::remove_if_over(PeerStream& stream, Time now) {
  if (!stream.over()) return;
  const std::uint64_t number = stream.number();
  stream.lost(now);
  (void)note_unknown(number);
  streams_.erase(number);
}

void ClientPeer::check(Time now) { (void)check_some(now, std::numeric_limits<std::size_t>::max()); }

// Streams that are opened during a round may miss it.
std::size_t ClientPeer::check_some(Time now, std::size_t most) {
  if (is_checked()) check_own(now);
  std::size_t checked = 1;
  for (; checked < most && !ending_ && next_bucket_ < streams_.bucket_count();
       ++next_bucket_, ++checked)
    for (auto at = streams_.begin(next_bucket_); at != streams_.end(next_bucket_); ++checked) {
      PeerStream& stream = *at->second;
      ++at;
      stream.check(now);
      remove_if_over(stream, now);
    }
  if (ending_ || next_bucket_ >= streams_.bucket_count()) next_bucket_ = 0;
  return checked;
}

void ClientPeer::check_own(Time now) {
  flush(now);  // in case a wake-up of the wire was lost
  if (ending_) {
    if (now - ended_ > context_.limits.close && !std::exchange(cut_, true)) wire_.cut();
    return;
  }
  note_progress(now);
  if (now - progress_ > context_.limits.write_stall)
    return end(Closing::slow_reader, ErrorCode::slow_reader,
               "the client read no messages for " + seconds_of(context_.limits.write_stall) +
                   ": read while you send",
               now);
  if (!has_opened_ && now - last_open_ > context_.limits.idle) return end_silent(now);
}

void ClientPeer::note_progress(Time now) {
  const std::uint64_t before = acknowledged_;
  const bool all_sent = outbox_.empty() && wire_.empty();
  if (!all_sent) acknowledged_ = wire_.acknowledged();
  if (all_sent || acknowledged_ != before) progress_ = now;
}

void ClientPeer::end_silent(Time now) {
  const std::string silent = "no stream was opened for " + seconds_of(context_.limits.idle);
  outbox_.enqueue(
      cp::Error{.stream = std::nullopt, .code = name_of(ErrorCode::idle), .message = silent});
  end(Closing::idle, ErrorCode::idle, silent, now);
}

void ClientPeer::lost(Time now) {
  for (auto& [number, stream] : streams_) stream->lost(now);
  streams_.clear();
}

}  // namespace millrace
