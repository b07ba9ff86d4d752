// SPDX-License-Identifier: Apache-2.0
#include "client/internal/websocket_carrier.h"

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

namespace millrace {
namespace {

using net::experimental::awaitable_operators::operator&&;
using net::experimental::awaitable_operators::operator||;
using Kind = Connection::Kind;

constexpr std::uint16_t close_normal = 1000;
constexpr int looks = 8;         // at whether the other host is there, in the time that it has
constexpr std::size_t head = 6;  // bytes of a message besides its own, at least

std::string why(const Connection::Ended& ended) {
  if (ended.how != Connection::Ended::How::closed) return "the connection was lost";
  return "closed with " + std::to_string(ended.code) + " before it was over";
}

}  // namespace

// One stream and its connection: opened, read and written until both have ended.
class WebsocketCarrier::Stream {
 public:
  Stream(Executor executor, std::shared_ptr<StreamPipe> pipe, StreamRequest request,
         const ClientSettings& settings)
      : executor_(executor),
        pipe_(std::move(pipe)),
        request_(std::move(request)),
        settings_(settings),
        to_write_(executor),
        to_read_(executor),
        to_watch_(executor) {}

  Task<> run(ServiceUrl service) {
    co_await open(std::move(service));
    if (connection_) co_await (read() && write() && watch());
  }

  StreamPipe& pipe() { return *pipe_; }

  void woken() {
    to_write_.cancel();
    to_read_.cancel();
  }

  void stop() {
    stopped_ = true;
    pipe_->fail(StreamFailure::lost("the client was closed"));
    if (connection_) connection_->abort();
    woken();
  }

 private:
  Task<> open(ServiceUrl service) {
    const std::string where = service.host + ":" + service.port;
    to_write_.expires_after(settings_.connect);
    auto outcome = co_await (open_stream(executor_, std::move(service), std::move(request_)) ||
                             keep_to_time(where));
    if (outcome.index() == 1) co_return;
    auto& opened = std::get<0>(outcome);
    if (!opened) co_return pipe_->fail(refusal_of(opened.error()));
    connection_ = std::move(*opened);
    if (stopped_) connection_->abort();
  }

  // Until the time has passed, or the client stops. The user is told at once: a name that is being
  // looked up cannot be given up, and who waits for both waits for that.
  Task<> keep_to_time(const std::string& where) {
    while (!stopped_) {
      const auto [woken] = co_await to_write_.async_wait(no_throw);
      const auto cancelled = co_await net::this_coro::cancellation_state;
      if (cancelled.cancelled() != net::cancellation_type::none) co_return;
      if (woken) continue;
      co_return pipe_->fail(StreamFailure::lost(where + " does not answer"));
    }
  }

  Task<> read() {
    for (;;) {
      const auto received = co_await connection_->receive();
      if (const auto* ended = std::get_if<Connection::Ended>(&received)) {
        pipe_->fail(StreamFailure::lost(why(*ended)));
        break;
      }
      const auto& message = std::get<Connection::Message>(received);
      const bool known = message.kind == Kind::text ? hear_text(*pipe_, message.text())
                                                    : hear_bytes(*pipe_, message.bytes);
      if (!known) {
        pipe_->fail(StreamFailure::lost("the service sent what is none of its messages"));
        connection_->abort();
      }
      if (pipe_->held_up()) co_await await_room();
    }
    over_ = true;
    connection_->abort();  // nobody takes what is still being written
    to_write_.cancel();
    to_watch_.cancel();
  }

  // Nothing is read while the user takes nothing, for as long as it may.
  Task<> await_room() {
    while (pipe_->held_up()) {
      const Time due = pipe_->held_up_since() + settings_.taking;
      to_read_.expires_at(due);
      const auto [woken] = co_await to_read_.async_wait(no_throw);
      if (woken || due < pipe_->held_up_since() + settings_.taking) continue;
      pipe_->fail(StreamFailure::failed("slow_reader", "results were not taken"));
      connection_->abort();
    }
  }

  Task<> write() {
    std::vector<StreamPipe::Said> said;
    while (!over_) {
      const bool last = pipe_->abandoned();  // asked first: then what is taken is all
      pipe_->take(said);
      if (said.empty() && last) co_return co_await close();
      for (const auto& one : said) {
        co_await send(one);
        pipe_->sent(one);
      }
      if (said.empty())
        co_await await_words();
      else  // a write need not wait, and the user may go on and on: others have their turn
        co_await net::post(executor_, net::use_awaitable_t<Executor>());
    }
  }

  // Which the service takes for an end, whose results are dropped.
  Task<> close() {
    connection_->close(close_normal, "");
    co_await (connection_->flushed() && cut_late());
  }

  Task<> cut_late() {
    to_write_.expires_after(settings_.connect);
    while (!over_) {
      const auto [woken] = co_await to_write_.async_wait(no_throw);
      if (woken) continue;
      connection_->abort();
      co_return;
    }
  }

  // A service hangs up on those that say nothing for too long: they may be gone.
  Task<> await_words() {
    to_write_.expires_at(sent_ + settings_.keepalive);
    const auto [woken] = co_await to_write_.async_wait(no_throw);
    if (!woken) co_await send(Kind::binary, "");
  }

  // A host that vanished says nothing, not even that it got what was sent; TCP alone would try for
  // a quarter of an hour. While we read nothing, or the service, there are signs of life all the
  // same: the user takes something; the service sends pings.
  Task<> watch() {
    Time alive = Clock::now();
    std::int64_t most = 0;  // bytes that it got
    while (!over_) {
      to_watch_.expires_after(settings_.silence / looks);
      const auto [woken] = co_await to_watch_.async_wait(no_throw);
      if (woken) continue;
      const auto waiting = static_cast<std::int64_t>(connection_->untaken());
      const std::int64_t got = written_ - waiting;
      if (waiting == 0 || got > most || pipe_->held_up()) alive = Clock::now();
      most = std::max(most, got);
      alive = std::max(alive, connection_->heard());
      if (Clock::now() - alive <= settings_.silence) continue;
      pipe_->fail(StreamFailure::lost("nothing is heard of the service's host any more"));
      connection_->abort();
    }
  }

  Task<> send(const StreamPipe::Said& said) {
    if (const auto* command = std::get_if<ClientMessage>(&said)) {
      const std::string text = to_json(*command);
      co_return co_await send(Kind::text, text);
    }
    std::string_view frames = std::get<std::string>(said);
    while (!frames.empty()) {
      const std::string_view message = frames.substr(0, longest_frames);
      frames.remove_prefix(message.size());
      co_await send(Kind::binary, message);
    }
  }

  Task<> send(Kind kind, std::string_view message) {
    co_await connection_->send(kind, message);
    sent_ = Clock::now();
    written_ += static_cast<std::int64_t>(message.size() + head);
  }

  const Executor executor_;
  const std::shared_ptr<StreamPipe> pipe_;
  StreamRequest request_;
  const ClientSettings& settings_;
  Timer to_write_, to_read_, to_watch_;  // what wakes the one who waits is their end
  std::unique_ptr<Connection> connection_;
  Time sent_ = Clock::now();
  std::int64_t written_ = 0;  // bytes
  bool over_ = false;
  bool stopped_ = false;
};

WebsocketCarrier::WebsocketCarrier(Executor executor, ServiceUrl service,
                                   const ClientSettings& settings)
    : executor_(std::move(executor)), service_(std::move(service)), settings_(settings) {}
WebsocketCarrier::~WebsocketCarrier() = default;

void WebsocketCarrier::open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) {
  const std::uint64_t number = pipe->number();
  auto stream = std::make_unique<Stream>(executor_, std::move(pipe), std::move(request), settings_);
  spawn(executor_, serve(*streams_.emplace(number, std::move(stream)).first->second));
}

Task<> WebsocketCarrier::serve(Stream& stream) {
  try {
    ServiceUrl service = service_;
    co_await stream.run(std::move(service));
  } catch (const std::exception& failure) {  // of memory or descriptors
    stream.pipe().fail(StreamFailure::lost(failure.what()));
  }
  streams_.erase(stream.pipe().number());
}

void WebsocketCarrier::woken(std::uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found != streams_.end()) found->second->woken();
}

void WebsocketCarrier::stop() {
  for (auto& [number, stream] : streams_) stream->stop();
}

}  // namespace millrace
