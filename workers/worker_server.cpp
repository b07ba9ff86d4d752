// SPDX-License-Identifier: Apache-2.0
#include "workers/worker_server.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "schemas/worker_codec.h"
#include "transport/spawn.h"
#include "workers/protocol.h"
#include "workers/worker_session.h"

namespace millrace {

using namespace net::experimental::awaitable_operators;
namespace wp = worker_protocol;

namespace {

constexpr auto accept_pause = std::chrono::milliseconds(100);

// The first message; nothing where it is none, or does not come in time.
Task<std::optional<wp::Hello>> read_hello(LocalSocket& socket, SocketWaits& waits) {
  wp::Decoder decoder(wp::max_to_service);
  for (;;) {
    const auto message = socket.try_receive();
    if (!message) co_return std::nullopt;
    if (*message) {
      auto decoded = decoder.to_service(**message);
      auto* hello = decoded ? std::get_if<wp::Hello>(&*decoded) : nullptr;
      if (!hello) co_return std::nullopt;
      co_return std::move(*hello);
    }
    const bool readable = co_await waits.readable();
    if (!readable) co_return std::nullopt;
  }
}

}  // namespace

Result<HubHome, wp::Refused> WorkerReception::home_of(const wp::Hello& hello) const {
  if (hello.version != wp::version)
    return wp::Refused{"version", "this service speaks version " + std::to_string(wp::version) +
                                      " of the worker protocol"};
  const HubHome home = find(hello.pipeline);
  if (!home.hub) return wp::Refused{"pipeline", "there is no pipeline " + hello.pipeline};
  return home;
}

WorkerServer::WorkerServer(Executor executor, const std::string& path, WorkerReception reception)
    : executor_(executor),
      listener_(path),
      waits_(executor, listener_.native_handle()),
      reception_(std::move(reception)) {}

Task<> WorkerServer::serve() {
  for (;;) {
    const Accepted accepted = accept();
    if (accepted == Accepted::none) {
      const bool readable = co_await waits_.readable();
      if (!readable) break;
    } else if (accepted == Accepted::failed) {
      Timer pause(executor_, accept_pause);
      co_await pause.async_wait(no_throw);
    }
  }
}

// Fails for want of descriptors or memory, which others may give back.
WorkerServer::Accepted WorkerServer::accept() {
  std::string why;
  try {
    auto connection = listener_.try_accept();
    if (connection) {
      if (!*connection) return Accepted::none;
      spawn(executor_, receive(std::move(**connection)));
      failing_ = false;
      return Accepted::one;
    }
    why = connection.error().message();
  } catch (const std::bad_alloc& error) {
    why = error.what();
  }
  if (!std::exchange(failing_, true))
    reception_.log({.what = "workers cannot connect", .worker = "", .why = why, .warning = true});
  return Accepted::failed;
}

Task<> WorkerServer::receive(FileDescriptor connection) {
  try {
    co_await receive_hello(std::move(connection));
  } catch (const std::exception& error) {
    reception_.log({.what = "worker refused", .worker = "", .why = error.what(), .warning = true});
  }
}

Task<> WorkerServer::receive_hello(FileDescriptor connection) {
  LocalSocket socket(std::move(connection), worker_limits());
  std::optional<wp::Hello> hello;
  {
    SocketWaits waits(executor_, socket.native_handle());
    Timer late(executor_, reception_.patience);
    auto first = co_await (read_hello(socket, waits) || late.async_wait(no_throw));
    if (first.index() == 0) hello = std::get<0>(std::move(first));
  }
  if (hello)
    dispatch(std::move(socket), std::move(*hello));
  else
    refuse(socket, {}, {"protocol", "the first message is Hello, within 10 s"});
}

void WorkerServer::dispatch(LocalSocket socket, wp::Hello hello) {
  const auto home = reception_.home_of(hello);
  if (!home) return refuse(socket, hello, home.error());
  spawn(home->home->get_executor(), serve_worker(std::move(socket), std::move(hello), *home->hub));
}

void WorkerServer::refuse(LocalSocket& socket, const wp::Hello& hello, wp::Refused why) {
  wp::Encoder encoder;
  (void)socket.try_send(encoder.encode(why));
  reception_.log(
      {.what = "worker refused", .worker = hello.name, .why = why.message, .warning = true});
}

}  // namespace millrace
