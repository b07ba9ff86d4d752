// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/stream_server.h"

#include <algorithm>
#include <new>
#include <utility>

#include "transport/http/io.h"
#include "transport/net/peer_address.h"
#include "transport/sessions/session.h"
#include "transport/websocket/websocket_connection.h"

namespace millrace {
namespace {

// Cuts a client that does not finish its upgrade in time.
class Handshake final : SessionScope::Watched {
 public:
  Handshake(SessionScope& scope, Socket& socket)
      : Watched(scope), deadline_(Clock::now() + scope.limits().handshake), socket_(socket) {}

  void check(Time now) override {
    if (now <= deadline_) return;
    why_ = "no upgrade request was received in time";
    abort();
  }
  void abort() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }
  void drain() override { abort(); }  // the client has no stream yet

  std::string_view why() const { return why_; }  // why the socket was closed

 private:
  const Time deadline_;
  Socket& socket_;
  std::string_view why_ = "the service is stopping";
};

struct Admitted {
  WebSocketProtocol::Accepted accepted;
  std::string rest;  // the bytes after the upgrade
};

// A client before its upgrade. The objects it refers to outlive it.
struct Arrival {
  std::string peer;  // its address
  const std::vector<WebSocketProtocol*>& protocols;
  PageRules rules;
  ClientGate& gate;
  Share socket;
};

std::string_view text_of(HttpFault fault, const Handshake& handshake) {
  switch (fault) {
    case HttpFault::malformed: return "must be a whole HTTP request without a body";
    case HttpFault::too_long: return "the header is too long";
    case HttpFault::disconnected: break;
  }
  return handshake.why();
}

RequestError no_such_path(const std::vector<WebSocketProtocol*>& protocols) {
  std::string message = "no such path; streams are at ";
  for (const WebSocketProtocol* protocol : protocols)
    message.append(message.ends_with(' ') ? "" : ", ").append(protocol->path());
  return {.status = 404, .message = std::move(message)};
}

// Null if none has the path of the request.
WebSocketProtocol* protocol_of(const HttpQuery& query,
                               const std::vector<WebSocketProtocol*>& protocols) {
  const auto found = std::ranges::find(protocols, query.path(), &WebSocketProtocol::path);
  return found == protocols.end() ? nullptr : *found;
}

Result<WebSocketProtocol::Accepted, RequestError> accept_upgrade(SessionScope& scope,
                                                                 const Arrival& arrival,
                                                                 const HttpQuery& query) {
  if (auto refused = refuse_page(query, arrival.rules)) return std::move(*refused);
  if (const auto why = arrival.gate.tokens.refusal(query)) return unauthenticated(*why);
  WebSocketProtocol* const protocol = protocol_of(query, arrival.protocols);
  if (!protocol) return no_such_path(arrival.protocols);
  return protocol->accept(query, scope, arrival.peer);
}

// The answer to a request that opens no stream: a file of the page, the list of pipelines, the page
// for health checks, or the error. Files and health checks need no token.
HttpAnswer answer_without_stream(SessionScope& scope, const Arrival& arrival,
                                 const HttpQuery& query, const RequestError& error) {
  if (error.status == 404 || error.status == 401) {
    if (auto file = find_file(arrival.gate.page, query)) return std::move(*file);
    if (error.status == 404 && query.path() == "/v1/pipelines")
      return {.body = arrival.gate.pipelines};
    if (query.path() == "/livez") return {.type = "text/plain", .body = "alive\n"};
  }
  // Before a page of another origin sends a token in a field, its browser asks whether it may.
  if (error.status == 405 && !query.all("Access-Control-Request-Headers").empty())
    return {.body = "", .fields = {{"Access-Control-Allow-Headers", "Authorization"}}};
  if (error.logged)
    scope.stats().refused[error.reason].add();
  else if (!is_question(query))
    scope.refuse(arrival.peer, error.reason, error.message);
  const WebSocketProtocol* const protocol = protocol_of(query, arrival.protocols);
  return protocol ? protocol->answer(error, scope) : answer_to(error);
}

// Lets a page of another origin read the answer if it may open streams. A wrong method is refused
// after a wrong origin.
void share_with_page(HttpAnswer& answer, const HttpQuery& query, const PageRules& rules) {
  answer.fields.emplace_back("Vary", "Origin");
  const auto refused = refuse_page(query, rules);
  const auto origin = query.all("Origin");
  if (origin.size() == 1 && (!refused || refused->status == 405))
    answer.fields.emplace_back("Access-Control-Allow-Origin", origin.front());
}

// Nullopt if the client was refused or has disconnected.
Task<std::optional<Admitted>> admit(SessionScope& scope, Socket& socket, const Arrival& arrival) {
  const Time accepted = Clock::now();
  Handshake handshake(scope, socket);
  std::string rest;
  const auto query = co_await read_query(socket, rest);
  if (query.has_error()) {
    // A peer that ends its connection at once has only checked that the port is open.
    const bool is_check = query.error() == HttpFault::disconnected && socket.is_open();
    if (!is_check)
      scope.refuse(arrival.peer, Refusal::handshake, text_of(query.error(), handshake));
    if (query.error() == HttpFault::disconnected) co_return std::nullopt;
    auto answer = answer_to(query.error());
    co_await answer_and_close(socket, std::move(answer));
    co_return std::nullopt;
  }

  auto conversation = accept_upgrade(scope, arrival, *query);
  if (conversation) {
    scope.stats().handshake.observe(Clock::now() - accepted);
    co_return Admitted{std::move(*conversation), std::move(rest)};
  }
  auto answer = answer_without_stream(scope, arrival, *query, conversation.error());
  share_with_page(answer, *query, arrival.rules);
  if (query->method == "HEAD") answer.without_body = true;
  co_await answer_and_close(socket, std::move(answer));
  co_return std::nullopt;
}

Task<> serve(SessionScope& scope, Socket socket, Arrival arrival) {
  if (scope.draining()) {  // accepted just before
    scope.refuse(arrival.peer, Refusal::draining, "the service is stopping");
    co_return;
  }
  auto admitted = co_await admit(scope, socket, arrival);
  if (!admitted) co_return;
  const std::size_t longest = admitted->accepted.longest_message.value_or(scope.limits().message);
  auto connection = co_await accept_websocket(
      std::move(socket), std::move(admitted->accepted.upgrade), std::move(admitted->rest), longest);
  if (!connection) {
    scope.refuse(arrival.peer, Refusal::handshake, "the upgrade could not be answered");
    co_return;
  }
  co_await run_session(scope, arrival.gate, *connection, *admitted->accepted.conversation);
}

}  // namespace

StreamServer::StreamServer(SessionScope& scope, Acceptor acceptor,
                           std::vector<WebSocketProtocol*> protocols, ClientGate& gate)
    : scope_(scope),
      acceptor_(std::move(acceptor)),
      protocols_(std::move(protocols)),
      gate_(gate),
      rules_{.loopback = acceptor_.local_endpoint().address().is_loopback(),
             .origins = gate.origins},
      accepting_(scope.executor(), [this] { return accept_all(); }) {}

void StreamServer::stop_accepting() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

Task<> StreamServer::accept_all() {
  while (acceptor_.is_open()) {
    auto socket = co_await accept(acceptor_);
    if (socket) handle_connection(std::move(*socket));
  }
}

void StreamServer::handle_connection(Socket socket) {
  try {
    Arrival arrival{peer_text(peer_of(socket)), protocols_, rules_, gate_, Share(gate_.sockets, 1)};
    if (scope_.draining())
      return refuse(std::move(socket), arrival.peer, Refusal::draining, "the service is stopping");
    if (gate_.memory_short.load(std::memory_order_relaxed))
      return refuse(std::move(socket), arrival.peer, Refusal::overload,
                    "the service is short of memory");
    if (!arrival.socket)
      return refuse(std::move(socket), arrival.peer, Refusal::limit_global,
                    "the service has reached its limit of connections");
    scope_.spawn(serve(scope_, std::move(socket), std::move(arrival)));
  } catch (const std::bad_alloc& failure) {
    scope_.report(failure);  // the next client may succeed
  }
}

void StreamServer::refuse(Socket socket, std::string_view peer, Refusal reason,
                          std::string message) {
  scope_.refuse(peer, reason, message);
  answer_at_once(socket, answer_to(RequestError{.status = 503,
                                                .message = std::move(message),
                                                .retry_after = scope_.retry_times().after_refusal(
                                                    reason == Refusal::overload),
                                                .reason = reason}));
}

}  // namespace millrace
