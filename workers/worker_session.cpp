// SPDX-License-Identifier: Apache-2.0
#include "workers/worker_session.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <utility>

#include "schemas/worker_codec.h"
#include "transport/socket_waits.h"
#include "transport/wakeup.h"
#include "workers/protocol.h"
#include "workers/worker_connection.h"

namespace millrace {

using namespace net::experimental::awaitable_operators;

LocalLimits worker_limits() {
  return {.max_message = worker_protocol::max_to_service,
          .max_outgoing = std::size_t{64} << 20,
          .takes_descriptor = false};
}

namespace {

// How long a worker may take to read what it is told last.
constexpr auto last_words = std::chrono::seconds(2);

class Session final : public WorkerConnection {
 public:
  Session(LocalSocket socket, Hub& hub, Executor executor)
      : executor_(executor),
        socket_(std::move(socket)),
        hub_(hub),
        waits_(executor, socket_.native_handle()),
        to_write_(executor) {}

  Task<> run(worker_protocol::Hello hello) {
    hub_.hello(*this, hello);
    co_await (receive() && transmit());
    hub_.lost(*this, failure_);
    socket_.end_output();  // who watches for its hang-up keeps the connection open
  }

  void send(Bytes message, int descriptor) override {
    if (ended_) return;
    switch (socket_.try_send(message, descriptor)) {
      case LocalSocket::Sent::taken: break;
      case LocalSocket::Sent::full: cut(WorkerFailure::timeout); return;
      case LocalSocket::Sent::failed: return;  // receive() sees it
    }
    if (socket_.has_output()) to_write_.notify();
  }

  std::unique_ptr<PeerProcess> process() override {
    const int socket = socket_.native_handle();
    return std::make_unique<PeerProcess>(executor_, pidfd_of_peer(socket), socket);
  }

  std::size_t unsent() const override { return socket_.unsent(); }

  void end() override {
    ended_ = true;
    to_write_.notify();
  }

 private:
  // Until the worker or the hub ends it.
  Task<> receive() {
    worker_protocol::Decoder decoder(worker_protocol::max_to_service);
    while (!ended_) {
      auto message = socket_.try_receive();
      if (!message) {
        if (message.error() != LocalError::closed && message.error() != LocalError::lost)
          hub_.protocol_error(*this, message.error() == LocalError::too_long
                                         ? "a message over the limit"
                                         : "a descriptor");
        break;
      }
      if (!*message) {
        const bool readable = co_await waits_.readable();
        if (!readable) break;
        continue;
      }
      auto decoded = decoder.to_service(**message);
      if (!decoded) {
        hub_.protocol_error(*this, name_of(decoded.error()));
        break;
      }
      hub_.receive(*this, std::move(*decoded));
    }
    gone_ |= !ended_;
    to_write_.notify();
  }

  // Brings out what the hub said last, a Refused or a Bye, before it ends receive().
  Task<> transmit() {
    while (!gone_) {
      co_await to_write_.wait();
      while (socket_.has_output() && !gone_) {
        const bool writable = ended_ ? co_await writable_soon() : co_await waits_.writable();
        if (!writable || !socket_.flush()) gone_ = true;
      }
      if (ended_) gone_ = true;
    }
    waits_.cancel();
  }

  // A worker that is stopped reads nothing: its connection is not kept for it.
  Task<bool> writable_soon() {
    Timer patience(executor_, last_words);
    const auto which = co_await (waits_.writable() || patience.async_wait(no_throw));
    co_return which.index() == 0 && std::get<0>(which);
  }

  void cut(WorkerFailure why) {
    failure_ = why;
    gone_ = true;
    end();
  }

  const Executor executor_;
  LocalSocket socket_;
  Hub& hub_;
  SocketWaits waits_;
  Wakeup to_write_;
  WorkerFailure failure_ = WorkerFailure::disconnect;
  bool ended_ = false;  // nothing is received or queued any more
  bool gone_ = false;   // nor sent
};

}  // namespace

Task<> serve_worker(LocalSocket socket, worker_protocol::Hello hello, Hub& hub) {
  const Executor executor = co_await net::this_coro::executor;
  Session session(std::move(socket), hub, executor);
  co_await session.run(std::move(hello));
}

}  // namespace millrace
