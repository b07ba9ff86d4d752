// SPDX-License-Identifier: Apache-2.0
#include "transport/http_server.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "transport/http_io.h"
#include "transport/listener.h"

namespace millrace {
namespace {

using namespace net::experimental::awaitable_operators;

Task<> time_limit(Executor executor, Duration limit) {
  Timer timer(executor, limit);
  co_await timer.async_wait(no_throw);
}

}  // namespace

HttpServer::HttpServer(Acceptor acceptor, Answer answer, Duration time_limit)
    : acceptor_(std::move(acceptor)), answer_(std::move(answer)), time_limit_(time_limit) {}

Task<> HttpServer::serve() {
  co_await (serve_one_by_one() && serve_one_by_one() && serve_one_by_one() && serve_one_by_one());
}

void HttpServer::stop() { acceptor_.close(); }

Task<> HttpServer::serve_one_by_one() {
  while (acceptor_.is_open()) {
    auto socket = co_await accept(acceptor_);
    if (!socket) continue;
    co_await (serve(std::move(*socket)) || time_limit(acceptor_.get_executor(), time_limit_));
  }
}

// What fails must not take its time, as a loser of `||` would.
Task<> HttpServer::serve(Socket socket) {
  try {
    co_await read_and_answer(socket);
  } catch (const std::exception&) {
    // Out of memory: whoever asked sees it.
  }
}

Task<> HttpServer::read_and_answer(Socket& socket) {
  std::string rest;
  const auto query = co_await read_query(socket, rest);
  HttpAnswer answer;
  if (query.has_error()) {
    if (query.error() == HttpFault::gone) co_return;
    answer = answer_to(query.error());
  } else if (query->method != "GET") {
    answer = {
        .status = 405, .type = "text/plain", .body = "GET only\n", .fields = {{"Allow", "GET"}}};
  } else {
    answer = answer_or_apology(*query);
  }
  co_await answer_and_close(socket, std::move(answer));
}

HttpAnswer HttpServer::answer_or_apology(const HttpQuery& query) const {
  try {
    return answer_(query);
  } catch (const std::exception&) {
    return {.status = 500, .type = "text/plain", .body = "internal error\n"};
  }
}

}  // namespace millrace
