// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/server.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "schemas/worker_codec.h"
#include "schemas/worker_protocol.h"
#include "transport/net/limits.h"
#include "transport/net/listener.h"
#include "transport/net/net.h"
#include "transport/net/spawn.h"

namespace millrace {

using namespace net::experimental::awaitable_operators;
namespace wp = worker_protocol;

namespace {

constexpr auto accept_pause = std::chrono::milliseconds(100);
// After this many connections other work of the thread runs first.
constexpr unsigned accepted_per_turn = 16;

// The limits until Hello is accepted.
constexpr FramedLimits hello_limits{.max_message = wp::max_hello};

// The first message of a connection, or why it is refused. All are empty if another program has
// only checked that the port is open: its connection has ended without a byte.
struct FirstMessage {
  std::optional<wp::Hello> hello = {};
  std::optional<wp::Describe> describe = {};
  std::string why = {};
};

FirstMessage first_of(Result<wp::ToService, WireError> message) {
  if (message) {
    if (auto* hello = std::get_if<wp::Hello>(&*message)) return {.hello = std::move(*hello)};
    if (auto* asked = std::get_if<wp::Describe>(&*message)) return {.describe = std::move(*asked)};
  }
  return {.why = "the first message is not a Hello"};
}

std::string reason_of(FramedError error, const FramedSocket& socket) {
  if (error == FramedError::too_long) return "the first message is too long for a Hello";
  if (error == FramedError::descriptor) return "the first message must not bring a file descriptor";
  return socket.is_within_message() ? "the connection ended before Hello" : "";
}

// Requires: it is cancelled after the time limit.
Task<FirstMessage> read_hello(FramedSocket& socket, SocketWaits& waits) {
  wp::Decoder decoder(wp::max_hello);
  for (;;) {
    const auto message = socket.try_receive();
    if (!message) co_return FirstMessage{.why = reason_of(message.error(), socket)};
    if (*message) co_return first_of(decoder.to_service(**message));
    const bool readable = co_await waits.readable();
    if (!readable) co_return FirstMessage{};
  }
}

// Accepted sockets inherit the options.
FileDescriptor listen_on_tcp(const Executor& executor, const Tcp::endpoint& endpoint) {
  net::io_context* const contexts[] = {&executor.context()};
  Acceptor acceptor = std::move(listen_on(endpoint, contexts).front());
  acceptor.set_option(Tcp::no_delay(true));
  acceptor.set_option(Acceptor::keep_alive(true));
  acceptor.non_blocking(true);
  return FileDescriptor(acceptor.release());
}

}  // namespace

Result<PipelineHost, wp::Refused> WorkerServerSettings::host_for(
    std::uint32_t version, const std::string& pipeline) const {
  if (version != wp::version)
    return wp::Refused{"version", "this service supports version " + std::to_string(wp::version) +
                                      " of the worker protocol"};
  const PipelineHost home = find(pipeline);
  if (!home.host) return wp::Refused{"pipeline", "there is no pipeline " + pipeline};
  return home;
}

WorkerServer::WorkerServer(Executor executor, const std::string& path,
                           WorkerServerSettings settings)
    : executor_(executor),
      local_(path),
      waits_(executor, listening()),
      settings_(std::move(settings)) {}

WorkerServer::WorkerServer(Executor executor, const Tcp::endpoint& endpoint,
                           WorkerServerSettings settings, RemoteBudgets& budgets)
    : executor_(executor),
      tcp_(listen_on_tcp(executor, endpoint)),
      budgets_(&budgets),
      waits_(executor, listening()),
      settings_(std::move(settings)) {}

Task<> WorkerServer::serve() {
  for (unsigned turn = 1;; ++turn) {
    const Accepted accepted = accept();
    if (accepted == Accepted::none) {
      const bool readable = co_await waits_.readable();
      if (!readable) break;
    } else if (accepted == Accepted::failed) {
      Timer pause(executor_, accept_pause);
      co_await pause.async_wait(no_throw);
    } else if (turn % accepted_per_turn == 0) {
      co_await net::post(executor_, throwing);
    }
  }
}

std::uint16_t WorkerServer::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (!tcp_ || ::getsockname(tcp_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// Accepting fails if descriptors or memory are short. Both may be available again later.
WorkerServer::Accepted WorkerServer::accept() {
  std::string why;
  try {
    auto connection = try_accept(listening());
    if (connection) {
      if (!*connection) return Accepted::none;
      Share connection_share;
      if (budgets_) connection_share = Share(budgets_->connections, 1);
      if (budgets_ && !connection_share) return refuse_over_limit(), Accepted::one;
      spawn(executor_, receive(std::move(**connection), std::move(connection_share)));
      failing_ = full_ = false;
      return Accepted::one;
    }
    why = connection.error().message();
  } catch (const std::bad_alloc& error) {
    why = error.what();
  }
  if (!std::exchange(failing_, true)) settings_.log(warning("workers cannot connect", "", why));
  return Accepted::failed;
}

Task<> WorkerServer::receive(FileDescriptor connection, Share connection_share) {
  try {
    co_await receive_hello(std::move(connection), std::move(connection_share));
  } catch (const std::exception& error) {
    record_refusal("", error.what());
  }
}

Task<> WorkerServer::receive_hello(FileDescriptor connection, Share connection_share) {
  FramedSocket socket(std::move(connection), hello_limits);
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(settings_.hello_timeout);
  FirstMessage first{.why = "no Hello was received within " + seconds_of(limit)};
  {
    SocketWaits waits(executor_, socket.native_handle());
    Timer timeout(executor_, settings_.hello_timeout);
    auto done = co_await (read_hello(socket, waits) || timeout.async_wait(no_throw));
    if (done.index() == 0) first = std::get<0>(std::move(done));
  }
  if (first.hello)
    dispatch(std::move(socket), std::move(*first.hello), std::move(connection_share));
  else if (first.describe)
    describe(std::move(socket), *first.describe);
  else if (!first.why.empty())
    refuse(socket, "", {"protocol", first.why});
}

void WorkerServer::dispatch(FramedSocket socket, wp::Hello hello, Share connection_share) {
  const auto home = settings_.host_for(hello.version, hello.pipeline);
  if (!home) return refuse(socket, hello.name, home.error());
  socket.set_limits(limits(*home->host, hello));
  spawn(home->home->get_executor(), serve_worker(std::move(socket), std::move(hello), *home->host,
                                                 std::move(connection_share)));
}

void WorkerServer::describe(FramedSocket socket, const wp::Describe& asked) {
  const auto home = settings_.host_for(asked.version, asked.pipeline);
  if (!home) return refuse(socket, asked.name, home.error());
  const auto description = home->host->description();
  if (!description) return refuse(socket, asked.name, description.error());
  wp::Encoder encoder;
  (void)socket.try_send(encoder.encode(*description));
}

// Over TCP, batches contain their tensors. Their number is limited by the credits, and their bytes
// count in the slabs' budget.
FramedLimits WorkerServer::limits(const WorkerHost& host, const wp::Hello& hello) const {
  FramedLimits limits = worker_limits();
  limits.max_outgoing += hello.credits * host.post_bytes();
  if (!budgets_) return limits;
  limits.max_outgoing += hello.credits * host.batch_bytes();
  limits.incoming = &budgets_->unread;
  limits.unshared = reserved_unread_bytes;
  return limits;
}

void WorkerServer::refuse(FramedSocket& socket, std::string_view name, const wp::Refused& why) {
  wp::Encoder encoder;
  (void)socket.try_send(encoder.encode(why));
  record_refusal(name, why.message);
}

void WorkerServer::record_refusal(std::string_view name, std::string_view why) {
  stats_.refused[WorkerRefusal::handshake].add();
  settings_.log(warning("worker refused", name, why));
}

// Only the first refusal is logged, because there may be any number.
void WorkerServer::refuse_over_limit() {
  stats_.refused[WorkerRefusal::limit_global].add();
  if (!std::exchange(full_, true))
    settings_.log(warning(
        "worker refused", "",
        "the limit of " + std::to_string(max_remote_connections) + " connections is reached"));
}

}  // namespace millrace
