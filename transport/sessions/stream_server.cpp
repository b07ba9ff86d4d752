// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/stream_server.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <new>
#include <utility>

#include "base/file_descriptor.h"
#include "transport/addresses/read_proxy_header.h"
#include "transport/http/io.h"
#include "transport/net/peer_address.h"
#include "transport/net/tls/socket_io.h"
#include "transport/net/turns.h"
#include "transport/sessions/session.h"
#include "transport/sessions/upgrade_limit.h"
#include "transport/websocket/handshake.h"
#include "transport/websocket/websocket_connection.h"

namespace millrace {
namespace {

// A client before its upgrade. The objects it refers to outlive it.
struct Arrival {
  ClientOrigin origin;
  std::optional<Credential> credential;  // nullopt: not known yet
  const std::vector<WebSocketProtocol*>& protocols;
  PageRules rules;
  ClientGate& gate;
  Share socket;
};

std::string_view text_of(HttpFault fault, const UpgradeLimit& handshake) {
  switch (fault) {
    case HttpFault::malformed: return "must be a whole HTTP request without a body";
    case HttpFault::too_long: return "the header is too long";
    case HttpFault::disconnected: break;
  }
  return handshake.why();
}

// Why the client is refused; nullopt once its credential is known.
std::optional<std::string_view> identify(Arrival& arrival, const HttpQuery& query) {
  if (arrival.credential) return std::nullopt;
  auto credential = arrival.gate.access.identify(query);
  if (!credential) return credential.error();
  arrival.credential = *std::move(credential);
  return std::nullopt;
}

ClientIdentity identity_of(const Arrival& arrival) {
  return {.peer = std::string(arrival.origin.text()),
          .credential = arrival.credential.value_or(Credential())};
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
                                                                 Arrival& arrival,
                                                                 const HttpQuery& query) {
  if (arrival.origin.is_proxy()) arrival.origin.set_client(query);
  if (const auto fault = arrival.origin.take_place(Clock::now()))
    return error_of(*fault, scope.retry_times().after_refusal());
  if (auto refused = refuse_page(query, arrival.rules)) return std::move(*refused);
  if (const auto why = identify(arrival, query)) return unauthenticated(*why);
  WebSocketProtocol* const protocol = protocol_of(query, arrival.protocols);
  if (!protocol) return no_such_path(arrival.protocols);
  return protocol->accept(query, scope, identity_of(arrival));
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
  else if (error.reason == Refusal::limit_address || !is_question(query))
    scope.refuse(arrival.origin.text(), error.reason, error.message);
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

// A request that was read.
struct Request {
  HttpQuery query;
  std::string rest;  // the bytes after it
  Time accepted;     // when its connection was accepted
};

// If the peer is a proxy, reads the address of the client from the header of the PROXY protocol.
// False if the client was refused.
Task<bool> find_origin(SessionScope& scope, StreamSocket& socket, Arrival& arrival) {
  if (!arrival.origin.is_proxy()) co_return true;
  const auto client = co_await read_proxy_header(socket.tcp());
  if (client && *client) arrival.origin.set_client(**client);
  const auto fault = arrival.origin.take_place(Clock::now());
  if (client && !fault) co_return true;
  const auto error = client ? error_of(*fault, scope.retry_times().after_refusal())
                            : RequestError{.message = "must be a header of the PROXY protocol",
                                           .reason = Refusal::handshake};
  scope.refuse(arrival.origin.text(), error.reason, error.message);
  if (client && !socket.tls()) answer_at_once(socket, answer_to(error));
  co_return false;
}

// A client that has begun without TLS can read why it is refused.
void refuse_plain_http(StreamSocket& socket) {
  StreamSocket plain(std::move(socket.tcp()));
  answer_at_once(plain, answer_to(RequestError{.message = "this port speaks TLS: use wss:// or "
                                                          "https://"}));
}

// False if the client was refused or has disconnected.
Task<bool> shake_hands(SessionScope& scope, StreamSocket& socket, const Arrival& arrival,
                       const UpgradeLimit& handshake) {
  Turns::Turn turn(scope.executor());
  const auto failed = co_await shake_hands(socket, turn);
  if (!failed) co_return true;
  const bool is_open = socket.tcp().is_open();
  if (is_open && failed == net::error::eof) co_return false;  // a check whether the port is open
  scope.refuse(arrival.origin.text(), Refusal::handshake,
               is_open ? socket.tls()->failure() : handshake.why());
  if (socket.tls()->is_plain_http()) refuse_plain_http(socket);
  // Otherwise unread bytes, such as a request, would make the client lose the reason.
  if (is_open && socket.tcp().is_open()) co_await wait_for_end(socket);
  co_return false;
}

// Nullopt if the client was refused or has disconnected.
Task<std::optional<Request>> read_request(SessionScope& scope, StreamSocket& socket,
                                          Arrival& arrival) {
  const Time accepted = Clock::now();
  UpgradeLimit handshake(scope, socket);
  const bool known = co_await find_origin(scope, socket, arrival);
  if (!known) co_return std::nullopt;
  const bool ready = co_await shake_hands(scope, socket, arrival, handshake);
  if (!ready) co_return std::nullopt;
  std::string rest;
  auto query = co_await read_query(socket, rest);
  if (!query.has_error()) co_return Request{std::move(*query), std::move(rest), accepted};
  // A peer that ends its connection at once has only checked that the port is open.
  const bool is_check = query.error() == HttpFault::disconnected && socket.tcp().is_open();
  if (!is_check)
    scope.refuse(arrival.origin.text(), Refusal::handshake, text_of(query.error(), handshake));
  if (query.error() == HttpFault::disconnected) co_return std::nullopt;
  auto answer = answer_to(query.error());
  co_await answer_and_close(socket, std::move(answer));
  co_return std::nullopt;
}

// Nullopt if the client was refused. Requests that arrive at once wait for their turns, so that the
// work of accepting them does not delay the streams of others.
Task<std::optional<WebSocketProtocol::Accepted>> admit(SessionScope& scope, StreamSocket& socket,
                                                       Arrival& arrival, const Request& request) {
  UpgradeLimit handshake(scope, socket);
  Turns::Turn turn(scope.executor());
  co_await turn.next();
  if (!socket.tcp().is_open()) {
    scope.refuse(arrival.origin.text(), Refusal::handshake, handshake.why());
    co_return std::nullopt;
  }
  auto accepted = accept_upgrade(scope, arrival, request.query);
  if (accepted) {
    scope.stats().handshake.observe(Clock::now() - request.accepted);
    co_return std::move(*accepted);
  }
  auto answer = answer_without_stream(scope, arrival, request.query, accepted.error());
  share_with_page(answer, request.query, arrival.rules);
  if (request.query.method == "HEAD") answer.without_body = true;
  co_await answer_and_close(socket, std::move(answer));
  co_return std::nullopt;
}

// False if the client cannot be answered, or not in time: it may have filled its socket before.
Task<bool> answer_upgrade(SessionScope& scope, StreamSocket& socket, const Upgrade& upgrade) {
  UpgradeLimit limit(scope, socket);
  const std::string answer = answer_to(upgrade);
  const auto unsent = co_await write_all(socket, answer);
  co_return !unsent;
}

Task<> serve_request(SessionScope& scope, StreamSocket socket, Arrival arrival, Request request) {
  auto admitted = co_await admit(scope, socket, arrival, request);
  if (!admitted) co_return;
  request.query = {};  // a session may last for hours
  const std::size_t longest = admitted->longest_message.value_or(scope.limits().message);
  const bool answered = co_await answer_upgrade(scope, socket, admitted->upgrade);
  if (!answered) {
    scope.refuse(arrival.origin.text(), Refusal::handshake, "the upgrade could not be answered");
    co_return;
  }
  const auto connection =
      open_websocket(Role::server, std::move(socket), std::move(request.rest), longest);
  co_await run_session(scope, arrival.gate, *connection, *admitted->conversation);
}

}  // namespace

// A client whose request continues a stream of another thread, on its way to that thread.
struct StreamServer::Moved {
  Tcp protocol;
  FileDescriptor socket;
  std::unique_ptr<TlsSession> tls;
  Share share;
  ClientOrigin origin;
  std::optional<Credential> credential;
  Request request;
};

StreamServer::StreamServer(SessionScope& scope, Acceptor acceptor,
                           std::vector<WebSocketProtocol*> protocols, ClientGate& gate,
                           std::optional<Credential> credential)
    : scope_(scope),
      acceptor_(std::move(acceptor)),
      protocols_(std::move(protocols)),
      gate_(gate),
      credential_(std::move(credential)),
      rules_{.loopback = acceptor_.local_endpoint().address().is_loopback(),
             .origins = gate.origins},
      accepting_(scope.executor(), [this] { return accept_all(); }) {}

void StreamServer::stop_accepting() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

Task<> StreamServer::serve(Socket accepted, ClientOrigin origin, Share share) {
  StreamSocket socket = server_end(std::move(accepted), gate_.tls.get());
  Arrival arrival{std::move(origin), credential_, protocols_, rules_, gate_, std::move(share)};
  if (scope_.draining()) {  // accepted just before
    scope_.refuse(arrival.origin.text(), Refusal::draining, "the service is stopping");
    co_return;
  }
  auto request = co_await read_request(scope_, socket, arrival);
  if (!request) co_return;
  const WebSocketProtocol* const protocol = protocol_of(request->query, protocols_);
  const bool resumes = protocol && protocol->resumes(request->query);
  const auto thread = resumes && !identify(arrival, request->query)
                          ? protocol->thread_of(request->query, identity_of(arrival))
                          : std::nullopt;
  if (thread && *thread < siblings_.size()) {
    boost::system::error_code lost;
    const Tcp version = socket.tcp().local_endpoint(lost).protocol();
    if (lost) co_return;
    auto [descriptor, tls] = socket.release();
    siblings_[*thread]->take({version, std::move(descriptor), std::move(tls),
                              std::move(arrival.socket), std::move(arrival.origin),
                              std::move(arrival.credential), std::move(*request)});
    co_return;
  }
  // As a task of its own, so that the memory of this one is free.
  scope_.spawn(serve_request(scope_, std::move(socket), std::move(arrival), std::move(*request)));
}

void StreamServer::take(Moved moved) {
  net::post(scope_.executor(), [this, moved = std::move(moved)]() mutable {
    if (!acceptor_.is_open()) return;  // the thread ends
    try {
      Socket socket(scope_.executor(), moved.protocol, moved.socket.get());
      (void)moved.socket.release();
      Arrival arrival{
          std::move(moved.origin), std::move(moved.credential), protocols_, rules_, gate_,
          std::move(moved.share)};
      scope_.spawn(serve_request(scope_, StreamSocket(std::move(socket), std::move(moved.tls)),
                                 std::move(arrival), std::move(moved.request)));
    } catch (const std::exception& failure) {
      scope_.report(failure);
    }
  });
}

Task<> StreamServer::accept_all() {
  while (acceptor_.is_open()) {
    auto socket = co_await accept(acceptor_);
    if (socket) handle_connection(std::move(*socket));
  }
}

void StreamServer::handle_connection(Socket socket) {
  try {
    ClientOrigin origin(peer_of(socket), gate_);
    Share share(gate_.sockets, 1);
    if (auto error = refusal(origin, share))
      return refuse(std::move(socket), origin.text(), std::move(*error));
    scope_.spawn(serve(std::move(socket), std::move(origin), std::move(share)));
  } catch (const std::bad_alloc& failure) {
    scope_.report(failure);  // the next client may succeed
  }
}

// Why a client is refused before its first byte is read; nullopt if it is not.
std::optional<RequestError> StreamServer::refusal(ClientOrigin& origin, const Share& share) {
  const auto busy = [this](Refusal reason, std::string message) {
    return RequestError{
        .status = 503,
        .message = std::move(message),
        .retry_after = scope_.retry_times().after_refusal(reason == Refusal::overload),
        .reason = reason};
  };
  if (scope_.draining()) return busy(Refusal::draining, "the service is stopping");
  if (gate_.memory_short.load(std::memory_order_relaxed))
    return busy(Refusal::overload, "the service is short of memory");
  if (!share)
    return busy(Refusal::limit_global, "the service has reached its limit of connections");
  const auto fault = origin.take_place(Clock::now());
  if (!fault) return std::nullopt;
  return error_of(*fault, scope_.retry_times().after_refusal());
}

void StreamServer::refuse(Socket accepted, std::string_view peer, const RequestError& error) {
  scope_.refuse(peer, error.reason, error.message);
  if (gate_.tls.get()) return;  // an answer would need the handshake
  StreamSocket socket(std::move(accepted));
  answer_at_once(socket, answer_to(error));
}

}  // namespace millrace
