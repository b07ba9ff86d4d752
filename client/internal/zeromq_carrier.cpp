// SPDX-License-Identifier: Apache-2.0
#include "client/internal/zeromq_carrier.h"

#include <exception>
#include <string>
#include <utility>

#include "client/internal/incoming.h"
#include "transport/net/limits.h"

namespace millrace {
namespace {

namespace cp = client_protocol;
using State = ZeromqDealer::State;

constexpr unsigned messages_per_turn = 256;

// The stream that a message is about; nothing where it is about the connection.
struct StreamOf {
  std::optional<std::uint64_t> operator()(const auto& message) const { return message.stream; }
};

// Why the service says something of the connection.
std::string reason(const cp::ToClient& message) {
  const auto* error = std::get_if<cp::Error>(&message);
  return error ? "the service says: " + std::string(error->message) : "it names no stream";
}

StreamFailure slow_reader() {
  return StreamFailure::failed("slow_reader", "results were not taken");
}

}  // namespace

ZeromqCarrier::Stream::Stream(Executor executor, std::shared_ptr<StreamPipe> its_pipe,
                              StreamRequest request)
    : pipe(std::move(its_pipe)), outgoing(*pipe, std::move(request)), due(std::move(executor)) {}

ZeromqCarrier::ZeromqCarrier(Executor executor, ServiceUrl service, const ClientSettings& settings)
    : executor_(std::move(executor)),
      service_(std::move(service)),
      settings_(settings),
      decoder_(longest_told),
      beat_(executor_) {}
ZeromqCarrier::~ZeromqCarrier() = default;

void ZeromqCarrier::open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) {
  if (request.explain)
    return pipe->fail(StreamFailure::refused("explain: results over ZeroMQ have none: use ws://",
                                             "schema", "explain", std::nullopt));
  const std::uint64_t number = pipe->number();
  if (!link_) {
    link_ = std::make_unique<ZeromqLink>(executor_, service_, settings_.connect, settings_.silence,
                                         [this] { turn(); });
    beat_later();
  }
  Stream& stream = *(streams_[number] =
                         std::make_unique<Stream>(executor_, std::move(pipe), std::move(request)));
  limit(stream, Clock::now() + settings_.connect);
  list(stream);
  turn();
}

void ZeromqCarrier::woken(std::uint64_t number) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return;
  Stream& stream = *found->second;
  list(stream);
  if (stream.is_awaited && !stream.pipe->held_up()) {
    stream.is_awaited = false;
    stream.due.cancel();
  }
  turn();
}

void ZeromqCarrier::stop() { lose("the client was closed"); }

// Everything that can be done now. libzmq's descriptors tell of news once, and any call may have
// taken that in: so each turn looks at all of it.
void ZeromqCarrier::turn() {
  if (!link_) return;
  try {
    const State state = link_->follow();
    const bool drained = state != State::connecting && receive();
    if (!link_) return;
    if (state == State::ended && drained) return lose(link_->reason());
    if (state == State::connected) send();
    link_->look_again(true, !to_send_.empty());
  } catch (const std::exception& broken) {  // of memory, or libzmq's
    lose(broken.what());
  }
}

// Whether nothing is left that could be received.
bool ZeromqCarrier::receive() {
  for (unsigned i = 0; i < messages_per_turn; ++i) {
    if (!link_) return false;
    const auto message = link_->receive();
    if (!message) return true;
    hear(message->bytes());
  }
  return false;
}

void ZeromqCarrier::hear(Bytes bytes) {
  const auto message = decoder_.to_client(bytes);
  if (!message) return lose("the service sent what is none of its messages");
  const auto number = std::visit(StreamOf(), *message);
  if (!number) return lose(reason(*message));
  const auto found = streams_.find(*number);
  if (found == streams_.end()) return;  // we are done with it
  Stream& stream = *found->second;
  if (const auto* ready = std::get_if<cp::Ready>(&*message)) {
    stream.outgoing.open(*ready);
    stream.due.cancel();
    list(stream);
  } else if (const auto* credit = std::get_if<cp::Credit>(&*message)) {
    stream.outgoing.grant(credit->frames);
    list(stream);
  }
  millrace::hear(*stream.pipe, *message);
  if (std::holds_alternative<cp::Closed>(*message) || std::holds_alternative<cp::Error>(*message)) {
    streams_.erase(found);
  } else {
    await_user(stream);
  }
}

void ZeromqCarrier::await_user(Stream& stream) {
  if (!stream.pipe->held_up() || std::exchange(stream.is_awaited, true)) return;
  limit(stream, stream.pipe->held_up_since() + settings_.taking);
}

// What has room, one stream after the other: credit bounds what one of them has to say.
void ZeromqCarrier::send() {
  for (; !to_send_.empty(); to_send_.pop_front()) {
    const auto found = streams_.find(to_send_.front());
    if (found == streams_.end()) continue;
    if (!send(*found->second)) return;
    found->second->is_listed = false;
  }
}

// False where the connection has no room.
bool ZeromqCarrier::send(Stream& stream) {
  for (;;) {
    const Bytes message = stream.outgoing.next(encoder_);
    if (message.empty()) return true;
    if (!link_->send(message)) return false;
    stream.outgoing.sent();
  }
}

void ZeromqCarrier::list(Stream& stream) {
  if (!std::exchange(stream.is_listed, true)) to_send_.push_back(stream.pipe->number());
}

void ZeromqCarrier::limit(Stream& stream, Time due) {
  stream.due.expires_at(due);
  stream.due.async_wait(
      [this, number = stream.pipe->number()](boost::system::error_code cancelled) {
        if (!cancelled) expire(number);
      });
}

void ZeromqCarrier::expire(std::uint64_t number) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return;
  Stream& stream = *found->second;
  if (stream.is_awaited) {
    const Time due = stream.pipe->held_up_since() + settings_.taking;
    if (Clock::now() < due) return limit(stream, due);  // it took something meanwhile
    give_up(stream, slow_reader());
  } else if (stream.pipe->name().empty()) {
    give_up(stream, StreamFailure::lost("the service does not answer"));
  }
  turn();
}

// Which the service hears, where it knows of the stream.
void ZeromqCarrier::give_up(Stream& stream, StreamFailure why) {
  stream.pipe->fail(std::move(why));
  stream.outgoing.cut_short();
  if (stream.outgoing.has_ended())
    streams_.erase(stream.pipe->number());
  else
    list(stream);
}

// The service ends streams that it does not hear of for too long.
void ZeromqCarrier::beat() {
  for (const auto& [number, stream] : streams_)
    if (stream->outgoing.beat()) list(*stream);
  turn();
  if (link_) beat_later();
}

void ZeromqCarrier::beat_later() {
  beat_.expires_after(settings_.keepalive);
  beat_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled && link_) beat();
  });
}

void ZeromqCarrier::lose(const std::string& reason) {
  for (const auto& [number, stream] : streams_) stream->pipe->fail(StreamFailure::lost(reason));
  streams_.clear();
  to_send_.clear();
  beat_.cancel();
  link_.reset();
}

}  // namespace millrace
