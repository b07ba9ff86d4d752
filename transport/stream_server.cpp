// SPDX-License-Identifier: Apache-2.0
#include "transport/stream_server.h"

#include <new>
#include <utility>

#include "transport/http_io.h"
#include "transport/peer_address.h"
#include "transport/session.h"
#include "transport/websocket_connection.h"

namespace millrace {
namespace {

// Cuts a client that does not finish its upgrade in time.
class Handshake final : SessionScope::Watched {
 public:
  Handshake(SessionScope& scope, Socket& socket)
      : Watched(scope), deadline_(Clock::now() + scope.limits().handshake), socket_(socket) {}

  void check(Time now) override {
    if (now > deadline_) abort();
  }
  void abort() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }
  void drain() override { abort(); }  // it has no stream yet

 private:
  const Time deadline_;
  Socket& socket_;
};

struct Admitted {
  Upgrade upgrade;
  std::string rest;  // what came behind the upgrade
  std::unique_ptr<StreamSink> stream;
};

// A client before its upgrade. What it refers to outlives it.
struct Arrival {
  std::string peer;  // its address
  Door& door;
  PageRules rules;
  std::span<const PageFile> page;
  Share socket;
};

std::string_view text_of(HttpFault fault) {
  switch (fault) {
    case HttpFault::malformed: return "not an HTTP request without a body";
    case HttpFault::too_long: return "the header is too long";
    case HttpFault::gone: break;
  }
  return "no upgrade came, or not in time";
}

// The request's stream, or how it is refused.
Result<Admitted, RequestError> request_stream(const Arrival& arrival, const HttpQuery& query,
                                              SessionOutbox& outbox) {
  auto upgrade = parse_upgrade(query, arrival.rules);
  if (!upgrade) return std::move(upgrade.error());
  auto sink = arrival.door.open(std::move(upgrade->stream), outbox);
  if (!sink) return std::move(sink.error());
  return Admitted{std::move(upgrade->upgrade), {}, std::move(*sink)};
}

// The answer to a request that opens no stream: a file of the page, or why it was refused.
HttpAnswer answer_instead(SessionScope& scope, const Arrival& arrival, const HttpQuery& query,
                          const RequestError& error) {
  if (error.status == 404)
    if (auto file = find_file(arrival.page, query)) return std::move(*file);
  scope.refuse(arrival.peer, error.reason, error.message);
  auto answer = answer_to(error);
  answer.without_body = query.method == "HEAD";
  return answer;
}

// Nullopt if the client was refused, or is gone.
Task<std::optional<Admitted>> admit(SessionScope& scope, Socket& socket, const Arrival& arrival,
                                    SessionOutbox& outbox) {
  const Time accepted = Clock::now();
  const Handshake handshake(scope, socket);
  std::string rest;
  const auto query = co_await read_query(socket, rest);
  if (query.has_error()) {
    scope.refuse(arrival.peer, Refusal::handshake, text_of(query.error()));
    if (query.error() == HttpFault::gone) co_return std::nullopt;
    auto answer = answer_to(query.error());
    co_await answer_and_close(socket, std::move(answer));
    co_return std::nullopt;
  }

  auto admitted = request_stream(arrival, *query, outbox);
  if (admitted) {
    scope.stats().handshake.observe(Clock::now() - accepted);
    admitted->rest = std::move(rest);
    co_return std::move(*admitted);
  }
  auto answer = answer_instead(scope, arrival, *query, admitted.error());
  co_await answer_and_close(socket, std::move(answer));
  co_return std::nullopt;
}

Task<> serve(SessionScope& scope, Socket socket, Arrival arrival) {
  if (scope.draining()) {  // accepted just before
    scope.refuse(arrival.peer, Refusal::draining, "the service is stopping");
    co_return;
  }
  SessionOutbox outbox(scope, arrival.peer);
  auto admitted = co_await admit(scope, socket, arrival, outbox);
  if (!admitted) co_return;
  auto connection = co_await accept_websocket(std::move(socket), std::move(admitted->upgrade),
                                              std::move(admitted->rest), scope.limits().message);
  if (!connection) {
    scope.refuse(arrival.peer, Refusal::handshake, "the upgrade could not be answered");
    co_return;
  }
  co_await run_session(scope, *connection, outbox, std::move(admitted->stream));
}

}  // namespace

StreamServer::StreamServer(SessionScope& scope, Acceptor acceptor, Door& door, ClientGate& gate)
    : scope_(scope),
      acceptor_(std::move(acceptor)),
      door_(door),
      gate_(gate),
      rules_{.loopback = acceptor_.local_endpoint().address().is_loopback(),
             .origins = gate.origins,
             .own_page = !gate.page.empty()},
      accepting_(scope.executor(), [this] { return accept_all(); }) {}

void StreamServer::stop_accepting() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

Task<> StreamServer::accept_all() {
  while (acceptor_.is_open()) {
    auto socket = co_await accept(acceptor_);
    if (socket) let_in(std::move(*socket));
  }
}

void StreamServer::let_in(Socket socket) {
  try {
    Arrival arrival{text_of(peer_of(socket)), door_, rules_, gate_.page, Share(gate_.sockets, 1)};
    if (gate_.memory_short.load(std::memory_order_relaxed))
      return refuse(std::move(socket), arrival.peer, Refusal::overload,
                    "the service is short of memory");
    if (!arrival.socket)
      return refuse(std::move(socket), arrival.peer, Refusal::limit_global,
                    "the service has as many connections as it may have");
    scope_.spawn(serve(scope_, std::move(socket), std::move(arrival)));
  } catch (const std::bad_alloc& failure) {
    scope_.report(failure);  // others may have better luck
  }
}

void StreamServer::refuse(Socket socket, std::string_view peer, Refusal reason,
                          std::string message) {
  scope_.refuse(peer, reason, message);
  answer_at_once(socket, answer_to(RequestError{
                             .status = 503,
                             .message = std::move(message),
                             .retry_after = retry_times_.of_refused(reason == Refusal::overload),
                             .reason = reason}));
}

}  // namespace millrace
