// SPDX-License-Identifier: Apache-2.0
#include "client/internal/websocket_transport.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>
#include <vector>

#include "client/internal/incoming.h"
#include "client/internal/limits.h"
#include "schemas/json_commands.h"
#include "transport/net/spawn.h"
#include "transport/websocket/frame_head.h"

namespace millrace {
namespace {

using net::experimental::awaitable_operators::operator&&;
using net::experimental::awaitable_operators::operator||;
using Kind = Connection::Kind;

constexpr int checks = 8;                  // checks of the other host within `silence`
constexpr std::size_t frame_overhead = 6;  // least bytes of a WebSocket frame besides its payload

std::string reason_of(const Connection::Ended& ended) {
  if (ended.how != Connection::Ended::How::closed) return "the connection was lost";
  return "the connection was closed with code " + std::to_string(ended.code) +
         " before the stream had ended";
}

}  // namespace

// One stream and its connection.
class WebsocketTransport::Stream {
 public:
  Stream(Executor executor, std::shared_ptr<StreamPipe> pipe, StreamRequest request,
         const ClientSettings& settings)
      : executor_(executor),
        pipe_(std::move(pipe)),
        request_(std::move(request)),
        settings_(settings),
        write_timer_(executor),
        read_timer_(executor),
        watch_timer_(executor) {}

  Task<> run(CheckedAccess access) {
    co_await open(std::move(access));
    if (connection_) co_await (read() && write() && watch());
  }

  StreamPipe& pipe() { return *pipe_; }

  void woken() {
    write_timer_.cancel();
    read_timer_.cancel();
  }

  void stop() {
    stopped_ = true;
    pipe_->fail(StreamFailure::lost("the client was closed"));
    if (connection_) connection_->abort();
    woken();
  }

 private:
  Task<> open(CheckedAccess access) {
    const std::string address = access.url().host + ":" + access.url().port;
    write_timer_.expires_after(settings_.connect);
    auto outcome = co_await (open_stream(executor_, std::move(access), std::move(request_)) ||
                             fail_on_timeout(address));
    if (outcome.index() == 1) co_return;
    auto& opened = std::get<0>(outcome);
    if (!opened) co_return pipe_->fail(refusal_of(opened.error()));
    connection_ = std::move(*opened);
    if (stopped_) connection_->abort();
  }

  // Fails the stream after the time limit. The failure is in the pipe at once: resolving a name
  // cannot be cancelled, so open() returns only after that.
  Task<> fail_on_timeout(const std::string& address) {
    while (!stopped_) {
      const auto [woken] = co_await write_timer_.async_wait(no_throw);
      const auto cancelled = co_await net::this_coro::cancellation_state;
      if (cancelled.cancelled() != net::cancellation_type::none) co_return;
      if (woken) continue;
      co_return pipe_->fail(StreamFailure::lost(address + " does not answer"));
    }
  }

  Task<> read() {
    for (;;) {
      const auto received = co_await connection_->receive();
      if (const auto* ended = std::get_if<Connection::Ended>(&received)) {
        pipe_->fail(StreamFailure::lost(reason_of(*ended)));
        break;
      }
      const auto& message = std::get<Connection::Message>(received);
      const bool valid = message.kind == Kind::text ? receive_text(*pipe_, message.text())
                                                    : receive_bytes(*pipe_, message.bytes);
      if (!valid) {
        pipe_->fail(StreamFailure::lost("the service sent an invalid message"));
        connection_->abort();
      }
      if (pipe_->held_up()) co_await await_user();
    }
    over_ = true;
    connection_->abort();  // the service does not read what is still being written
    write_timer_.cancel();
    watch_timer_.cancel();
  }

  // Reads nothing while the stream is held up; fails it if the user takes no event for `taking`.
  Task<> await_user() {
    while (pipe_->held_up()) {
      const Time due = pipe_->held_up_since() + settings_.taking;
      read_timer_.expires_at(due);
      const auto [woken] = co_await read_timer_.async_wait(no_throw);
      if (woken || due < pipe_->held_up_since() + settings_.taking) continue;
      pipe_->fail(StreamFailure::failed("slow_reader", "results were not taken in time"));
      connection_->abort();
    }
  }

  Task<> write() {
    std::vector<StreamPipe::Queued> queued;
    while (!over_) {
      const bool last = pipe_->abandoned();  // read before the queue: nothing is queued afterwards
      pipe_->take(queued);
      if (queued.empty() && last) co_return co_await close();
      for (const auto& entry : queued) {
        co_await send(entry);
        pipe_->sent(entry);
      }
      if (queued.empty())
        co_await await_queued();
      else  // a write need not wait, and the user may queue without end: lets other streams run
        co_await net::post(executor_, throwing);
    }
  }

  // The service treats a close as an end, and drops its results.
  Task<> close() {
    connection_->close(close_codes::normal, "");
    co_await (connection_->flushed() && abort_on_timeout());
  }

  Task<> abort_on_timeout() {
    write_timer_.expires_after(settings_.connect);
    while (!over_) {
      const auto [woken] = co_await write_timer_.async_wait(no_throw);
      if (woken) continue;
      connection_->abort();
      co_return;
    }
  }

  // The service closes connections that send nothing for too long.
  Task<> await_queued() {
    write_timer_.expires_at(sent_ + settings_.keepalive);
    const auto [woken] = co_await write_timer_.async_wait(no_throw);
    if (!woken) co_await send(Kind::binary, "");
  }

  // A lost host acknowledges nothing; TCP alone would retry for a quarter of an hour. A stream that
  // is held up is not lost: `taking` limits it. A service that does not read still sends pings.
  Task<> watch() {
    Time alive_at = Clock::now();
    std::int64_t max_acknowledged = 0;  // bytes
    while (!over_) {
      watch_timer_.expires_after(settings_.silence / checks);
      const auto [woken] = co_await watch_timer_.async_wait(no_throw);
      if (woken) continue;
      const auto waiting = static_cast<std::int64_t>(connection_->unacknowledged());
      const std::int64_t acknowledged = written_ - waiting;
      if (waiting == 0 || acknowledged > max_acknowledged || pipe_->held_up())
        alive_at = Clock::now();
      max_acknowledged = std::max(max_acknowledged, acknowledged);
      alive_at = std::max(alive_at, connection_->last_received());
      if (Clock::now() - alive_at <= settings_.silence) continue;
      pipe_->fail(StreamFailure::lost("the service's host no longer responds"));
      connection_->abort();
    }
  }

  Task<> send(const StreamPipe::Queued& queued) {
    if (const auto* command = std::get_if<ClientMessage>(&queued)) {
      const std::string text = to_json(*command);
      co_return co_await send(Kind::text, text);
    }
    std::string_view frames = std::get<std::string>(queued);
    const std::size_t longest = pipe_->has_packets() ? frames.size() : longest_frames;
    while (!frames.empty()) {
      const std::string_view message = frames.substr(0, longest);
      frames.remove_prefix(message.size());
      co_await send(Kind::binary, message);
    }
  }

  Task<> send(Kind kind, std::string_view message) {
    co_await connection_->send(kind, message);
    sent_ = Clock::now();
    written_ += static_cast<std::int64_t>(message.size() + frame_overhead);
  }

  const Executor executor_;
  const std::shared_ptr<StreamPipe> pipe_;
  StreamRequest request_;
  const ClientSettings& settings_;
  Timer write_timer_, read_timer_, watch_timer_;  // cancelled to wake the coroutine that waits
  std::unique_ptr<Connection> connection_;
  Time sent_ = Clock::now();
  std::int64_t written_ = 0;  // bytes
  bool over_ = false;
  bool stopped_ = false;
};

WebsocketTransport::WebsocketTransport(Executor executor, CheckedAccess access,
                                       const ClientSettings& settings)
    : executor_(std::move(executor)), access_(std::move(access)), settings_(settings) {}
WebsocketTransport::~WebsocketTransport() = default;

void WebsocketTransport::open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) {
  const std::uint64_t number = pipe->number();
  auto stream = std::make_unique<Stream>(executor_, std::move(pipe), std::move(request), settings_);
  spawn(executor_, serve(*streams_.emplace(number, std::move(stream)).first->second));
}

Task<> WebsocketTransport::serve(Stream& stream) {
  try {
    CheckedAccess access = access_;
    co_await stream.run(std::move(access));
  } catch (const std::exception& failure) {  // no memory or descriptor
    stream.pipe().fail(StreamFailure::lost(failure.what()));
  }
  streams_.erase(stream.pipe().number());
}

void WebsocketTransport::woken(std::uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found != streams_.end()) found->second->woken();
}

void WebsocketTransport::stop() {
  for (auto& [number, stream] : streams_) stream->stop();
}

}  // namespace millrace
