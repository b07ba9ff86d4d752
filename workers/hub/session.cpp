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
#include "transport/net/socket_waits.h"
#include "transport/net/wakeup.h"
#include "workers/hub/connection.h"
#include "workers/hub/server.h"

namespace millrace {

using namespace net::experimental::awaitable_operators;

FramedLimits worker_limits() {
  return {.max_message = worker_protocol::max_to_service,
          .max_outgoing = std::size_t{64} << 20,
          .takes_descriptor = false};
}

namespace {

// How long a worker may take to read what it is told last.
constexpr auto last_words = std::chrono::seconds(2);
constexpr unsigned messages_per_turn = 64;
constexpr net::use_awaitable_t<Executor> resume{};

class Session final : public WorkerConnection {
 public:
  // Throws boost::system::system_error where the socket cannot be waited for.
  Session(FramedSocket socket, Hub& hub, Executor executor)
      : executor_(executor),
        socket_(std::move(socket)),
        hub_(hub),
        waits_(executor, socket_.native_handle()),
        to_write_(executor) {}

  // What fails deep in the library, for want of memory, destroys the coroutine that waits for it.
  ~Session() {
    if (known_) hub_.lost(*this, failure_, blame_);
  }

  Task<> run(worker_protocol::Hello hello) {
    name_ = hello.name;
    known_ = true;
    hub_.hello(*this, hello);
    try {
      co_await (receive() && transmit());
    } catch (const std::exception& error) {
      failed(error);
    }
    hub_.lost(*this, failure_, blame_);
    known_ = false;
    socket_.end_output();  // a PeerProcess that waits for the hang-up keeps the connection open
    co_await linger();
  }

  void send(Bytes message, int descriptor) override {
    if (ended_) return;
    switch (try_send(message, descriptor)) {
      case FramedSocket::Sent::taken: break;
      case FramedSocket::Sent::full: cut(WorkerFailure::timeout); return;
      case FramedSocket::Sent::failed: return;  // receive() sees it
    }
    if (socket_.has_output()) to_write_.notify();
  }

  bool is_connected() const override { return millrace::is_connected(socket_.native_handle()); }

  std::shared_ptr<PeerProcess> process(PeerProcesses& known) override {
    return known.at_other_end_of(socket_.native_handle(), executor_);
  }

  std::size_t unsent() const override { return socket_.unsent(); }

  void end() override {
    known_ = false;
    close();
  }

 private:
  void close() {
    ended_ = true;
    waits_.cancel();
    to_write_.notify();
  }

  // Without memory for what waits, the worker has let too much wait.
  FramedSocket::Sent try_send(Bytes message, int descriptor) {
    try {
      return socket_.try_send(message, descriptor);
    } catch (const std::bad_alloc&) {
      return FramedSocket::Sent::full;
    }
  }

  // Until the worker or the hub ends it.
  Task<> receive() {
    try {
      co_await receive_messages();
    } catch (const std::exception& error) {
      failed(error);
    }
    gone_ |= !ended_;
    to_write_.notify();
  }

  Task<> receive_messages() {
    worker_protocol::Decoder decoder(worker_protocol::max_to_service);
    for (unsigned in_a_row = 0; !ended_ && !gone_;) {
      const auto message = socket_.try_receive();
      if (!message) co_return broken(message.error());
      if (!*message) {
        const bool readable = co_await waits_.readable();
        if (!readable) co_return;
        in_a_row = 0;
        continue;
      }
      auto decoded = decoder.to_service(**message);
      if (!decoded) co_return hub_.protocol_error(*this, name_of(decoded.error()));
      hub_.receive(*this, std::move(*decoded));
      // One that sends without end does not hold up the others of this thread.
      if (++in_a_row % messages_per_turn == 0) co_await net::post(executor_, resume);
    }
  }

  // Of the socket's errors an end is none of the protocol.
  void broken(FramedError error) {
    if (error == FramedError::too_long) hub_.protocol_error(*this, "a message over the limit");
    if (error == FramedError::descriptor) hub_.protocol_error(*this, "a descriptor");
    if (error == FramedError::no_room) hub_.no_room(*this, "there is no memory for its messages");
  }

  // Brings out what the hub said last, a Refused or a Bye, before it ends receive().
  Task<> transmit() {
    try {
      co_await transmit_messages();
    } catch (const std::exception& error) {
      failed(error);
    }
    gone_ = true;
    waits_.cancel();
  }

  Task<> transmit_messages() {
    while (!gone_) {
      co_await to_write_.wait();
      while (socket_.has_output() && !gone_) {
        const bool at_last = ended_;
        const bool writable = at_last ? co_await writable_soon() : co_await waits_.writable();
        if (writable ? !socket_.flush() : at_last) gone_ = true;
      }
      if (ended_) gone_ = true;
    }
  }

  // TCP drops what the worker has not read yet, a Refused for example, if a connection is closed
  // with unread input. So the input is read for a while.
  Task<> linger() {
    if (millrace::is_local(socket_.native_handle())) co_return;
    try {
      Timer patience(executor_, last_words);
      co_await (discard_input() || patience.async_wait(no_throw));
    } catch (const std::exception&) {  // memory is short: the connection is closed now
    }
  }
  Task<> discard_input() {
    for (bool readable = true; readable && socket_.discard_input();)
      readable = co_await waits_.readable();
  }

  // A worker that is stopped reads nothing: its connection is not kept for it.
  Task<bool> writable_soon() {
    Timer patience(executor_, last_words);
    const auto which = co_await (waits_.writable() || patience.async_wait(no_throw));
    co_return which.index() == 0 && std::get<0>(which);
  }

  // No memory for its messages, most likely: it costs this worker.
  void failed(const std::exception& error) {
    blame_ = Blame::service;
    hub_.settings().log(warning("worker's connection failed", name_, error.what()));
  }

  void cut(WorkerFailure why) {
    failure_ = why;
    gone_ = true;
    close();
  }

  const Executor executor_;
  FramedSocket socket_;
  Hub& hub_;
  std::string name_;
  SocketWaits waits_;
  Wakeup to_write_;
  WorkerFailure failure_ = WorkerFailure::disconnect;
  Blame blame_ = Blame::worker;
  bool known_ = false;  // to the hub, unless that ended it
  bool ended_ = false;  // nothing is received or queued any more
  bool gone_ = false;   // nor sent
};

}  // namespace

Task<> serve_worker(FramedSocket socket, worker_protocol::Hello hello, Hub& hub,
                    [[maybe_unused]] Share place) {
  const Executor executor = co_await net::this_coro::executor;
  std::optional<Session> session;
  try {
    session.emplace(std::move(socket), hub, executor);
  } catch (const std::exception& error) {
    hub.settings().log(warning("worker refused", hello.name, error.what()));
    co_return;
  }
  co_await session->run(std::move(hello));
}

}  // namespace millrace
