// SPDX-License-Identifier: Apache-2.0
#include "transport/stream_server.h"

#include <new>
#include <utility>

#include "transport/http_io.h"
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

// Nothing when the client was refused, or is gone.
Task<std::optional<Admitted>> admit(SessionScope& scope, Socket& socket, Door& door,
                                    SessionOutbox& outbox) {
  const Time accepted = Clock::now();
  const Handshake handshake(scope, socket);
  DoorStats& stats = scope.stats();
  std::string rest;
  const auto query = co_await read_query(socket, rest);
  if (query.has_error()) {
    stats.refused[Refusal::handshake].add();
    if (query.error() != HttpFault::gone) {
      auto answer = answer_to(query.error());
      co_await answer_and_close(socket, std::move(answer));
    }
    co_return std::nullopt;
  }

  auto upgrade = parse_upgrade(*query);
  std::optional<RequestError> error;
  if (upgrade) {
    auto sink = door.open(std::move(upgrade->stream), outbox);
    if (sink) {
      stats.handshake.observe(Clock::now() - accepted);
      co_return Admitted{std::move(upgrade->upgrade), std::move(rest), std::move(*sink)};
    }
    error = std::move(sink.error());
  } else {
    error = std::move(upgrade.error());
  }
  stats.refused[error->reason].add();
  auto answer = answer_to(*error);
  co_await answer_and_close(socket, std::move(answer));
  co_return std::nullopt;
}

Task<> serve(SessionScope& scope, Socket socket, Door& door, Share /*of the sockets*/) {
  if (scope.draining()) {  // accepted just before
    scope.stats().refused[Refusal::draining].add();
    co_return;
  }
  SessionOutbox outbox(scope);
  auto admitted = co_await admit(scope, socket, door, outbox);
  if (!admitted) co_return;
  auto connection = co_await accept_websocket(std::move(socket), std::move(admitted->upgrade),
                                              std::move(admitted->rest), scope.limits().message);
  if (!connection) {
    scope.stats().refused[Refusal::handshake].add();
    co_return;
  }
  co_await run_session(scope, *connection, outbox, std::move(admitted->stream));
}

}  // namespace

StreamServer::StreamServer(SessionScope& scope, Acceptor acceptor, Door& door, Budget& sockets)
    : scope_(scope), acceptor_(std::move(acceptor)), door_(door), sockets_(sockets) {}

void StreamServer::start() { scope_.spawn(accept_all()); }

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
  Share share(sockets_, 1);
  if (!share) return scope_.stats().refused[Refusal::limit_global].add();
  try {
    scope_.spawn(serve(scope_, std::move(socket), door_, std::move(share)));
  } catch (const std::bad_alloc& failure) {
    scope_.report(failure);  // others may have better luck
  }
}

}  // namespace millrace
