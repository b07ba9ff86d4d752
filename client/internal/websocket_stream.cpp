// SPDX-License-Identifier: Apache-2.0
#include "client/internal/websocket_stream.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <random>
#include <utility>
#include <variant>

#include "client/internal/incoming.h"

namespace millrace {
namespace {

using net::experimental::awaitable_operators::operator||;
using Asked = StreamConnection::Asked;

// The service, or a proxy in front of it, may accept the stream later.
bool is_temporary(const ConnectError& error) {
  return error.status == 0 || error.status == 429 || error.status >= 500;
}

}  // namespace

WebsocketStream::WebsocketStream(Executor executor, CheckedAccess access,
                                 std::shared_ptr<StreamPipe> pipe, StreamRequest request,
                                 const ClientSettings& settings, bool& resumes)
    : executor_(executor),
      access_(std::move(access)),
      pipe_(std::move(pipe)),
      request_(std::move(request)),
      settings_(settings),
      resumes_(resumes),
      state_(pipe_->has_packets(), request_.options),
      reconnects_(settings.resume_window, std::random_device{}()),
      timer_(executor) {}

Task<> WebsocketStream::run() {
  bool connected = co_await open();
  while (connected) {
    co_await connection_->run();
    connected = co_await reconnect();
  }
}

void WebsocketStream::woken() {
  timer_.cancel();
  if (connection_) connection_->woken();
}

void WebsocketStream::stop() {
  stopped_ = true;
  pipe_->fail(StreamFailure::lost("the client was closed"));
  if (connection_) connection_->abort();
  woken();
}

Task<bool> WebsocketStream::open() {
  request_.resumption.reset();
  for (;;) {
    request_.resume = resumes_;
    const auto error = co_await connect(settings_.connect);
    if (!error) co_return true;
    StreamFailure refusal = refusal_of(*error);
    const bool unknown = error->status == 400 && refusal.parameter == "resume";
    if (!unknown || !request_.resume) {
      pipe_->fail(std::move(refusal));
      co_return false;
    }
    resumes_ = false;
  }
}

// Also after the user has closed the stream: the service still gets its input, and the close.
Task<bool> WebsocketStream::reconnect() {
  why_lost_ = connection_->why_lost();
  const bool closed = connection_->has_closed();
  const auto ready_at = connection_->ready_at();
  connection_.reset();
  if (closed || !state_.can_resume()) give_up("");
  if (pipe_->has_ended()) co_return false;
  if (ready_at) {  // otherwise the window continues
    reconnects_.opened(*ready_at);
    reconnects_.lost(Clock::now(), state_.has_progressed());
  }
  request_.id = pipe_->name();
  std::string problem;
  int conflicts = 0;
  Duration wait{};
  while (const auto at = reconnects_.next(Clock::now(), wait)) {
    co_await wait_until(*at);
    if (stopped_) co_return false;
    request_.resumption = state_.resumption();
    const auto error = co_await connect(attempt_time());
    if (!error) co_return true;
    problem = refusal_of(*error).message;
    const bool conflict = error->status == 409 && ++conflicts == 1;
    if (!is_temporary(*error) && !conflict) {
      give_up("the service no longer has the stream: " + problem);
      co_return false;
    }
    wait = error->retry_after.value_or(std::chrono::seconds(0));
  }
  give_up(problem.empty() ? problem : "could not be resumed: " + problem);
  co_return false;
}

// Does nothing if the stream has ended.
void WebsocketStream::give_up(const std::string& why) {
  pipe_->fail(StreamFailure::lost(why.empty() ? why_lost_ : why_lost_ + ", and " + why));
}

Task<std::optional<ConnectError>> WebsocketStream::connect(Duration limit) {
  CheckedAccess access = access_;
  StreamRequest request = request_;
  auto outcome =
      co_await (open_stream(executor_, std::move(access), std::move(request)) || time_out(limit));
  if (outcome.index() == 1) co_return ConnectError{.message = address() + " does not answer"};
  auto& opened = std::get<0>(outcome);
  if (!opened) co_return std::move(opened.error());
  const Asked asked = request_.resumption ? Asked::resume
                      : request_.resume   ? Asked::open_to_resume
                                          : Asked::open;
  connection_ = std::make_unique<StreamConnection>(executor_, std::move(*opened), *pipe_, state_,
                                                   asked, settings_, attempt_time());
  if (stopped_) connection_->abort();
  co_return std::nullopt;
}

// If this was the last attempt, the failure is in the pipe at once: resolving a name cannot be
// cancelled, so connect() returns only after that.
Task<> WebsocketStream::time_out(Duration limit) {
  const Time until = Clock::now() + limit;
  while (!stopped_) {
    timer_.expires_at(until);
    const auto [woken] = co_await timer_.async_wait(no_throw);
    const auto cancelled = co_await net::this_coro::cancellation_state;
    if (cancelled.cancelled() != net::cancellation_type::none) co_return;
    if (woken) continue;
    const std::string why = address() + " does not answer";
    if (!request_.resumption)
      pipe_->fail(StreamFailure::lost(why));
    else if (Clock::now() >= reconnects_.limit())
      give_up("could not be resumed: " + why);
    co_return;
  }
}

Task<> WebsocketStream::wait_until(Time time) {
  while (!stopped_ && Clock::now() < time) {
    timer_.expires_at(time);
    co_await timer_.async_wait(no_throw);
  }
}

Duration WebsocketStream::attempt_time() const {
  return reconnects_.attempt_time(settings_.connect);
}

std::string WebsocketStream::address() const {
  return access_.url().host + ":" + access_.url().port;
}

}  // namespace millrace
