// SPDX-License-Identifier: Apache-2.0
#include "transport/http/server.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <string>

#include "transport/http/host.h"
#include "transport/http/io.h"
#include "transport/net/listener.h"
#include "transport/net/tls/socket_io.h"
#include "transport/net/turns.h"

namespace millrace {
namespace {

using namespace net::experimental::awaitable_operators;

constexpr int at_a_time = 64;
constexpr std::size_t small = 64 * 1024;  // fits into the socket's send buffer

HttpAnswer busy(std::chrono::seconds retry_after) {
  return {.status = 503,
          .type = "text/plain",
          .body = "too many large answers are being sent; try again later\n",
          .fields = {{"Retry-After", std::to_string(retry_after.count())}}};
}

Task<> time_limit(Executor executor, Duration limit) {
  Timer timer(executor, limit);
  co_await timer.async_wait(no_throw);
}

}  // namespace

HttpServer::HttpServer(Acceptor acceptor, Answer answer, Budget& large,
                       std::vector<std::string> names, const Current<TlsContext>* tls)
    : acceptor_(std::move(acceptor)),
      answer_(std::move(answer)),
      large_(large),
      names_(std::move(names)),
      tls_(tls),
      loopback_(acceptor_.local_endpoint().address().is_loopback()) {}

HttpServer::HttpServer(Acceptor acceptor, Answer answer, Budget& large, TimeLimits limits)
    : acceptor_(std::move(acceptor)),
      answer_(std::move(answer)),
      large_(large),
      limits_(limits),
      loopback_(acceptor_.local_endpoint().address().is_loopback()) {}

void HttpServer::start() {
  for (int i = 0; i < at_a_time; ++i)
    serving_.emplace_back(acceptor_.get_executor(), [this] { return serve_one_by_one(); }).start();
}

void HttpServer::stop() { acceptor_.close(); }

Task<> HttpServer::serve_one_by_one() {
  while (acceptor_.is_open()) {
    auto socket = co_await accept(acceptor_);
    if (socket) co_await serve(std::move(*socket));
  }
}

Task<> HttpServer::serve(Socket accepted) {
  const auto executor = acceptor_.get_executor();
  StreamSocket socket = server_end(std::move(accepted), tls_ ? tls_->get() : nullptr);
  if (socket.tls()) {
    const auto shaken = co_await (shake_hands(socket) || time_limit(executor, limits_.answer));
    const auto* const done = std::get_if<0>(&shaken);
    if (!done || !*done) co_return;
  }
  const auto read = co_await (receive(socket) || time_limit(executor, limits_.header));
  const auto* received = std::get_if<0>(&read);
  if (!received || !*received) co_return;
  const auto replied = co_await (reply(socket, **received) || time_limit(executor, limits_.answer));
  if (replied.index() == 0) co_await (wait_for_end(socket) || time_limit(executor, limits_.end));
}

// These three must not throw: `||` would then wait until the time limit.
Task<bool> HttpServer::shake_hands(StreamSocket& socket) {
  try {
    Turns::Turn turn(acceptor_.get_executor());
    const auto failed = co_await millrace::shake_hands(socket, turn);
    co_return !failed;
  } catch (const std::exception&) {
    co_return false;
  }
}

Task<HttpServer::Received> HttpServer::receive(StreamSocket& socket) {
  try {
    std::string rest;
    co_return co_await read_query(socket, rest);
  } catch (const std::exception&) {
    co_return std::nullopt;  // out of memory: the client sees a closed connection
  }
}

Task<> HttpServer::reply(StreamSocket& socket, const Result<HttpQuery, HttpFault>& query) {
  if (query.has_error() && query.error() == HttpFault::disconnected) co_return;
  try {
    auto answer = query ? answer_to_query(*query) : answer_to(query.error());
    if (query && query->method == "HEAD") answer.without_body = true;
    Share share;
    if (!answer.without_body && answer.body.size() > small) {
      share = Share(large_, 1);
      if (!share) answer = busy(retry_times_.after_refusal());
    }
    co_await write_answer(socket, std::move(answer));
  } catch (const std::exception&) {
  }
}

bool HttpServer::is_allowed(const HttpQuery& query) const {
  return loopback_ ? is_for_loopback(query) : is_for_listener(query, names_);
}

HttpAnswer HttpServer::answer_to_query(const HttpQuery& query) const {
  if (!is_allowed(query))
    return {.status = 421,
            .type = "text/plain",
            .body = loopback_
                        ? "this listener is on loopback: Host must be localhost or a loopback "
                          "address\n"
                        : "Host must be an address, localhost, a name without a dot, or one of "
                          "[listen] names\n"};
  if (query.method == "GET" || query.method == "HEAD") return answer_or_internal_error(query);
  return {.status = 405,
          .type = "text/plain",
          .body = "the method must be GET or HEAD\n",
          .fields = {{"Allow", "GET, HEAD"}}};
}

HttpAnswer HttpServer::answer_or_internal_error(const HttpQuery& query) const {
  try {
    return answer_(query);
  } catch (const std::exception&) {
    return {.status = 500, .type = "text/plain", .body = "internal error\n"};
  }
}

}  // namespace millrace
