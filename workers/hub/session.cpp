// SPDX-License-Identifier: Apache-2.0
// One worker's connection, from its Hello to its end.
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "schemas/worker_codec.h"
#include "schemas/worker_protocol.h"
#include "transport/net/net.h"
#include "transport/net/socket_waits.h"
#include "transport/net/wakeup.h"
#include "workers/hub/connection.h"
#include "workers/hub/server.h"

namespace millrace {

using namespace net::experimental::awaitable_operators;

FramedLimits worker_limits() {
  return {.max_message = worker_protocol::max_to_service,
          .max_outgoing = std::size_t{64} << 20,
          .accepts_descriptor = false};
}

namespace {

// How long the worker may take to read the last message.
constexpr auto final_send_limit = std::chrono::seconds(2);
constexpr unsigned messages_per_turn = 64;

class Session final : public WorkerConnection {
 public:
  // Throws boost::system::system_error if Asio cannot wait for the socket.
  Session(FramedSocket socket, WorkerHost& host, Executor executor)
      : executor_(executor),
        socket_(std::move(socket)),
        host_(host),
        waits_(executor, socket_.native_handle()),
        to_write_(executor) {}

  // If an allocation fails inside Asio, the waiting coroutines are destroyed and run() does not
  // continue.
  ~Session() {
    if (registered_) host_.lost(*this, failure_, loss_cause_);
  }

  Task<> run(worker_protocol::Hello hello) {
    name_ = hello.name;
    registered_ = true;
    host_.hello(*this, hello);
    try {
      co_await (receive() && transmit());
    } catch (const std::exception& error) {
      on_exception(error);
    }
    host_.lost(*this, failure_, loss_cause_);
    registered_ = false;
    socket_.end_output();  // a PeerProcess without a pidfd keeps the connection open
    co_await linger();
  }

  void send(Bytes message, int descriptor) override {
    if (closing_) return;
    switch (try_send(message, descriptor)) {
      case FramedSocket::Sent::accepted: break;
      case FramedSocket::Sent::full: drop(WorkerFailure::timeout); return;
      case FramedSocket::Sent::failed: return;  // receive() gets the error
    }
    if (socket_.has_output()) to_write_.notify();
  }

  bool is_connected() const override { return millrace::is_connected(socket_.native_handle()); }

  std::shared_ptr<PeerProcess> process(PeerProcesses& processes) override {
    return processes.peer_of(socket_.native_handle(), executor_);
  }

  std::size_t unsent() const override { return socket_.unsent(); }

  void end() override {
    registered_ = false;
    close();
  }

 private:
  void close() {
    closing_ = true;
    waits_.cancel();
    to_write_.notify();
  }

  // No memory for the send queue has the same consequence as a full queue.
  FramedSocket::Sent try_send(Bytes message, int descriptor) {
    try {
      return socket_.try_send(message, descriptor);
    } catch (const std::bad_alloc&) {
      return FramedSocket::Sent::full;
    }
  }

  // Receives until the worker or the host ends the connection.
  Task<> receive() {
    try {
      co_await receive_messages();
    } catch (const std::exception& error) {
      on_exception(error);
    }
    closed_ |= !closing_;
    to_write_.notify();
  }

  Task<> receive_messages() {
    worker_protocol::Decoder decoder(worker_protocol::max_to_service);
    for (unsigned in_a_row = 0; !closing_ && !closed_;) {
      const auto message = socket_.try_receive();
      if (!message) co_return report_error(message.error());
      if (!*message) {
        const bool readable = co_await waits_.readable();
        if (!readable) co_return;
        in_a_row = 0;
        continue;
      }
      auto decoded = decoder.to_service(**message);
      if (!decoded) co_return host_.protocol_error(*this, name_of(decoded.error()));
      host_.receive(*this, std::move(*decoded));
      // A worker that sends without a pause must not delay the others on this thread.
      if (++in_a_row % messages_per_turn == 0) co_await net::post(executor_, throwing);
    }
  }

  // The end of the connection is not a protocol error.
  void report_error(FramedError error) {
    if (error == FramedError::too_long) host_.protocol_error(*this, "a message over the limit");
    if (error == FramedError::descriptor) host_.protocol_error(*this, "a descriptor");
    if (error == FramedError::no_room)
      host_.no_room(*this, "the budget for received messages is used up");
  }

  // Sends the last message, a Refused or a Bye, before it ends receive().
  Task<> transmit() {
    try {
      co_await transmit_messages();
    } catch (const std::exception& error) {
      on_exception(error);
    }
    closed_ = true;
    waits_.cancel();
  }

  Task<> transmit_messages() {
    while (!closed_) {
      co_await to_write_.wait();
      while (socket_.has_output() && !closed_) {
        const bool last_send = closing_;
        const bool writable = last_send ? co_await writable_in_time() : co_await waits_.writable();
        if (writable ? !socket_.flush() : last_send) closed_ = true;
      }
      if (closing_) closed_ = true;
    }
  }

  // If a TCP connection is closed with unread input, bytes that the worker has not read yet are
  // lost, a Refused for example. So the input is read for a while.
  Task<> linger() {
    if (millrace::is_local(socket_.native_handle())) co_return;
    try {
      Timer limit(executor_, final_send_limit);
      co_await (discard_input() || limit.async_wait(no_throw));
    } catch (const std::exception&) {  // memory is short: the connection is closed at once
    }
  }
  Task<> discard_input() {
    for (bool readable = true; readable && socket_.discard_input();)
      readable = co_await waits_.readable();
  }

  // A suspended worker reads nothing: its connection is not kept open.
  Task<bool> writable_in_time() {
    Timer limit(executor_, final_send_limit);
    const auto which = co_await (waits_.writable() || limit.async_wait(no_throw));
    co_return which.index() == 0 && std::get<0>(which);
  }

  // Most likely there was no memory for its messages. This worker is dropped.
  void on_exception(const std::exception& error) {
    loss_cause_ = LossCause::service;
    host_.log()(warning("worker connection failed", name_, error.what()));
  }

  void drop(WorkerFailure why) {
    failure_ = why;
    closed_ = true;
    close();
  }

  const Executor executor_;
  FramedSocket socket_;
  WorkerHost& host_;
  std::string name_;
  SocketWaits waits_;
  Wakeup to_write_;
  WorkerFailure failure_ = WorkerFailure::disconnect;
  LossCause loss_cause_ = LossCause::worker;
  bool registered_ = false;  // the host knows this connection and has not ended it
  bool closing_ = false;     // nothing more is received or queued
  bool closed_ = false;      // nothing more is sent either
};

}  // namespace

Task<> serve_worker(FramedSocket socket, worker_protocol::Hello hello, WorkerHost& host,
                    [[maybe_unused]] Share connection_share) {
  const Executor executor = co_await net::this_coro::executor;
  std::optional<Session> session;
  try {
    session.emplace(std::move(socket), host, executor);
  } catch (const std::exception& error) {
    host.log()(warning("worker refused", hello.name, error.what()));
    co_return;
  }
  co_await session->run(std::move(hello));
}

}  // namespace millrace
