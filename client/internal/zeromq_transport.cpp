// SPDX-License-Identifier: Apache-2.0
#include "client/internal/zeromq_transport.h"

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

// The stream of a message; nullopt if it concerns the connection.
struct StreamOf {
  std::optional<std::uint64_t> operator()(const auto& message) const { return message.stream; }
};

// Why the connection is lost after a message that concerns it.
std::string reason(const cp::ToClient& message) {
  const auto* error = std::get_if<cp::Error>(&message);
  return error ? "error from the service: " + std::string(error->message)
               : "the service sent a message without a stream";
}

StreamFailure slow_reader() {
  return StreamFailure::failed("slow_reader", "results were not taken in time");
}

}  // namespace

ZeromqTransport::Stream::Stream(const ZeromqTransport& transport,
                                std::shared_ptr<StreamPipe> its_pipe, StreamRequest request)
    : pipe(std::move(its_pipe)),
      outgoing(*pipe, std::move(request), transport.token_),
      timer(transport.executor_) {}

ZeromqTransport::ZeromqTransport(Executor executor, ServiceUrl service, std::string token,
                                 const ClientSettings& settings)
    : executor_(std::move(executor)),
      service_(std::move(service)),
      token_(std::move(token)),
      settings_(settings),
      decoder_(max_service_message),
      keepalive_timer_(executor_) {}
ZeromqTransport::~ZeromqTransport() = default;

void ZeromqTransport::open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) {
  if (request.explain)
    return pipe->fail(StreamFailure::refused("explain: not available over ZeroMQ: use ws://",
                                             "schema", "explain", std::nullopt));
  const std::uint64_t number = pipe->number();
  if (!link_) {
    link_ = std::make_unique<ZeromqLink>(executor_, service_, settings_.connect, settings_.silence,
                                         [this] { turn(); });
    schedule_keepalives();
  }
  Stream& stream =
      *(streams_[number] = std::make_unique<Stream>(*this, std::move(pipe), std::move(request)));
  start_timer(stream, Clock::now() + settings_.connect);
  enqueue(stream);
  turn();
}

void ZeromqTransport::woken(std::uint64_t number) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return;
  Stream& stream = *found->second;
  enqueue(stream);
  if (stream.awaits_user && !stream.pipe->held_up()) {
    stream.awaits_user = false;
    stream.timer.cancel();
  }
  turn();
}

void ZeromqTransport::stop() { lose_connection("the client was closed"); }

// Receives and sends everything possible. libzmq's descriptors become readable only once for
// several events, and any call may have consumed that: so each turn checks for all of them.
void ZeromqTransport::turn() {
  if (!link_) return;
  try {
    const State state = link_->process_events();
    const bool drained = state != State::connecting && receive();
    if (!link_) return;
    if (state == State::ended && drained) return lose_connection(link_->reason());
    if (state == State::connected) send();
    link_->schedule_turn(true, !to_send_.empty());
  } catch (const std::exception& broken) {  // no memory, or an error of libzmq
    lose_connection(broken.what());
  }
}

// True if no message is left.
bool ZeromqTransport::receive() {
  for (unsigned i = 0; i < messages_per_turn; ++i) {
    if (!link_) return false;
    const auto message = link_->receive();
    if (!message) return true;
    handle(message->bytes());
  }
  return false;
}

void ZeromqTransport::handle(Bytes bytes) {
  const auto message = decoder_.to_client(bytes);
  if (!message && message.error() == WireError::unknown) return;  // a later version sends it
  if (!message) return lose_connection("the service sent an invalid message");
  const auto number = std::visit(StreamOf(), *message);
  if (!number) return lose_connection(reason(*message));
  const auto found = streams_.find(*number);
  if (found == streams_.end()) return;  // already ended here
  Stream& stream = *found->second;
  if (const auto* ready = std::get_if<cp::Ready>(&*message)) {
    stream.outgoing.open(*ready);
    stream.timer.cancel();
    enqueue(stream);
  } else if (const auto* credit = std::get_if<cp::Credit>(&*message)) {
    stream.outgoing.grant(credit->frames);
    enqueue(stream);
  }
  millrace::receive(*stream.pipe, *message);
  if (std::holds_alternative<cp::Closed>(*message) || std::holds_alternative<cp::Error>(*message)) {
    streams_.erase(found);
  } else {
    await_user(stream);
  }
}

// Messages of workers arrive even if nothing more is sent, and other streams share the connection.
void ZeromqTransport::await_user(Stream& stream) {
  if (stream.pipe->overflows()) return fail(stream, slow_reader());
  if (!stream.pipe->held_up() || std::exchange(stream.awaits_user, true)) return;
  start_timer(stream, stream.pipe->held_up_since() + settings_.taking);
}

// One stream after another sends all its messages: its credit bounds them.
void ZeromqTransport::send() {
  for (; !to_send_.empty(); to_send_.pop_front()) {
    const auto found = streams_.find(to_send_.front());
    if (found == streams_.end()) continue;
    if (!send(*found->second)) return;
    found->second->is_queued = false;
  }
}

// False if the connection is full.
bool ZeromqTransport::send(Stream& stream) {
  for (;;) {
    const Bytes message = stream.outgoing.next(encoder_);
    if (message.empty()) return true;
    if (!link_->send(message)) return false;
    stream.outgoing.sent();
  }
}

void ZeromqTransport::enqueue(Stream& stream) {
  if (!std::exchange(stream.is_queued, true)) to_send_.push_back(stream.pipe->number());
}

void ZeromqTransport::start_timer(Stream& stream, Time due) {
  stream.timer.expires_at(due);
  stream.timer.async_wait(
      [this, number = stream.pipe->number()](boost::system::error_code cancelled) {
        if (!cancelled) expire(number);
      });
}

void ZeromqTransport::expire(std::uint64_t number) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return;
  Stream& stream = *found->second;
  if (stream.awaits_user) {
    const Time due = stream.pipe->held_up_since() + settings_.taking;
    if (Clock::now() < due) return start_timer(stream, due);  // the user took an event meanwhile
    fail(stream, slow_reader());
  } else if (stream.pipe->name().empty()) {
    fail(stream, StreamFailure::lost("the service does not answer"));
  }
  turn();
}

// Also sends End if the service has received Open.
void ZeromqTransport::fail(Stream& stream, StreamFailure why) {
  stream.pipe->fail(std::move(why));
  stream.outgoing.cut_short();
  if (stream.outgoing.has_ended())
    streams_.erase(stream.pipe->number());
  else
    enqueue(stream);
}

// The service ends streams from which it receives nothing for too long.
void ZeromqTransport::send_keepalives() {
  for (const auto& [number, stream] : streams_)
    if (stream->outgoing.check_idle()) enqueue(*stream);
  turn();
  if (link_) schedule_keepalives();
}

void ZeromqTransport::schedule_keepalives() {
  keepalive_timer_.expires_after(settings_.keepalive);
  keepalive_timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled && link_) send_keepalives();
  });
}

void ZeromqTransport::lose_connection(const std::string& reason) {
  for (const auto& [number, stream] : streams_) stream->pipe->fail(StreamFailure::lost(reason));
  streams_.clear();
  to_send_.clear();
  keepalive_timer_.cancel();
  link_.reset();
}

}  // namespace millrace
