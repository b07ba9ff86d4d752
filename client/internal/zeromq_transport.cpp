// SPDX-License-Identifier: Apache-2.0
#include "client/internal/zeromq_transport.h"

#include <exception>
#include <string>
#include <utility>

#include "transport/net/limits.h"

namespace millrace {
namespace {

namespace cp = client_protocol;
using State = ZeromqDealer::State;

constexpr unsigned messages_per_turn = 256;
constexpr std::chrono::milliseconds ack_interval{500};

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

}  // namespace

ZeromqTransport::Stream::Stream(ZeromqTransport& transport, std::shared_ptr<StreamPipe> its_pipe,
                                StreamRequest request)
    : ZeromqStream(std::move(its_pipe), std::move(request), transport.token_, transport.settings_,
                   transport.resumes_, Clock::now()),
      timer(transport.executor_) {}

ZeromqTransport::ZeromqTransport(Executor executor, ServiceUrl service, std::string token,
                                 const ClientSettings& settings)
    : executor_(std::move(executor)),
      service_(std::move(service)),
      token_(std::move(token)),
      settings_(settings),
      decoder_(max_service_message),
      resumes_(settings.resume),
      keepalive_timer_(executor_),
      ack_timer_(executor_) {}
ZeromqTransport::~ZeromqTransport() = default;

void ZeromqTransport::open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) {
  if (request.explain)
    return pipe->fail(StreamFailure::refused("explain: not available over ZeroMQ: use ws://",
                                             "schema", "explain", std::nullopt));
  const std::uint64_t number = pipe->number();
  Stream& stream =
      *(streams_[number] = std::make_unique<Stream>(*this, std::move(pipe), std::move(request)));
  connect(settings_.connect);
  enqueue(stream);
  settle(stream);
  turn();
}

// All streams that wait for a connection continue over the new one.
void ZeromqTransport::connect(Duration limit) {
  if (link_) return;
  link_ = std::make_unique<ZeromqLink>(executor_, service_, limit, settings_.silence,
                                       [this] { turn(); });
  repeat(keepalive_timer_, settings_.keepalive,
         [](OutgoingStream& outgoing) { return outgoing.check_idle(); });
  repeat(ack_timer_, ack_interval,
         [](OutgoingStream& outgoing) { return outgoing.check_ack(Clock::now()); });
  for (const auto& [number, stream] : streams_) {
    if (!stream->awaits_connection()) continue;
    stream->request(Clock::now());
    enqueue(*stream);
    settle(*stream);
  }
}

void ZeromqTransport::woken(std::uint64_t number) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return;
  found->second->woken();
  enqueue(*found->second);
  settle(*found->second);
  turn();
}

void ZeromqTransport::stop() {
  for (const auto& [number, stream] : streams_)
    stream->pipe().fail(StreamFailure::lost("the client was closed"));
  lose_connection("");
}

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
  heard_ = Clock::now();
  const auto found = streams_.find(*number);
  if (found == streams_.end()) return;  // already ended here
  Stream& stream = *found->second;
  if (!stream.receive(*message, heard_))
    return lose_connection("the service sent an invalid message");
  // A result allows no more to be sent, except input that waits for it.
  if (!std::holds_alternative<cp::Result>(*message) || stream.outgoing().has_input())
    enqueue(stream);
  settle(stream);
}

// One stream after another sends all its messages: its credit bounds them.
void ZeromqTransport::send() {
  for (; !to_send_.empty(); to_send_.pop_front()) {
    const auto found = streams_.find(to_send_.front());
    if (found == streams_.end()) continue;
    if (!send(*found->second)) return;
    found->second->is_queued = false;
    settle(*found->second);
  }
}

// False if the connection is full.
bool ZeromqTransport::send(Stream& stream) {
  const Time now = Clock::now();
  for (;;) {
    const Bytes message = stream.outgoing().next(encoder_, now);
    if (message.empty()) return true;
    if (!link_->send(message)) return false;
    stream.outgoing().sent(now);
  }
}

void ZeromqTransport::enqueue(Stream& stream) {
  if (!std::exchange(stream.is_queued, true)) to_send_.push_back(stream.pipe().number());
}

// After each call of the stream, which may be over then.
void ZeromqTransport::settle(Stream& stream) {
  if (stream.is_over())
    streams_.erase(stream.pipe().number());
  else if (stream.due() != stream.timer_due)
    start_timer(stream);
}

void ZeromqTransport::start_timer(Stream& stream) {
  stream.timer_due = stream.due();
  stream.timer.cancel();
  if (stream.timer_due == Time::max()) return;
  stream.timer.expires_at(stream.timer_due);
  stream.timer.async_wait(
      [this, number = stream.pipe().number()](boost::system::error_code cancelled) {
        if (!cancelled) expire(number);
      });
}

void ZeromqTransport::expire(std::uint64_t number) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return;
  Stream& stream = *found->second;
  switch (stream.expire(Clock::now(), heard_)) {
    case ZeromqStream::Expired::nothing: break;
    case ZeromqStream::Expired::wait:
      connect(stream.attempt_time());
      if (stream.outgoing().is_waiting()) stream.request(Clock::now());
      break;
    case ZeromqStream::Expired::silence: return lose_connection("the service does not answer");
  }
  enqueue(stream);
  settle(stream);
  turn();
}

// While there is a link. `check`: true if the stream has a message to send.
template <class Check>
void ZeromqTransport::repeat(Timer& timer, Duration interval, Check check) {
  timer.expires_after(interval);
  timer.async_wait([this, &timer, interval, check](boost::system::error_code cancelled) {
    if (cancelled || !link_) return;
    for (const auto& [number, stream] : streams_)
      if (check(stream->outgoing())) enqueue(*stream);
    turn();
    if (link_) repeat(timer, interval, check);
  });
}

void ZeromqTransport::lose_connection(const std::string& reason) {
  link_.reset();
  keepalive_timer_.cancel();
  ack_timer_.cancel();
  to_send_.clear();
  for (auto at = streams_.begin(); at != streams_.end();) {
    Stream& stream = *at->second;
    ++at;
    stream.is_queued = false;
    stream.lose(reason, Clock::now());
    settle(stream);
  }
}

}  // namespace millrace
