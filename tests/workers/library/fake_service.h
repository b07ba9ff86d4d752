// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/host/shared_memory.h"
#include "gpu/host/slab_layout.h"
#include "schemas/worker_codec.h"
#include "tests/support/patience.h"
#include "tests/support/temporary_directory.h"
#include "transport/net/framed_socket.h"
#include "transport/net/local_listener.h"
#include "workers/library/worker.h"

namespace millrace {

using namespace worker_protocol;

// A listening TCP socket at a free port of this machine.
class TcpListener {
 public:
  TcpListener() {
    if (::listen(socket_.get(), 4) != 0) throw std::runtime_error("no port");
  }
  int native_handle() const { return socket_.get(); }
  std::string url() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

 private:
  const FileDescriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

// The service's end of the protocol, which the test controls step by step. The pipeline has s16
// frames, 8 slots, and 4 rows of 3 columns; slabs have 2 KiB. A test can change `welcome`.
class FakeService {
 public:
  enum class Over { path, tcp };  // over TCP tensors come inline

  explicit FakeService(Over over = Over::path) : decoder_(max_to_service) {
    if (over == Over::tcp)
      tcp_.emplace();
    else
      local_.emplace(directory_ / "workers.sock");
    welcome.slots = 8;
    welcome.rows = 4;
    welcome.width = 3;
    welcome.width_buckets = {3};
    welcome.chunk = R"({"size":3})";
    welcome.slabs = over == Over::tcp ? 0 : 3;
    welcome.slab_bytes = 2048;
  }

  Welcome welcome;

  std::string url() const { return tcp_ ? tcp_->url() : "unix:" + local_->path(); }

  // Attaches a worker. `answer` answers its Hello; by default with Welcome.
  Worker attach(const WorkerSettings& settings = {}) {
    return attach(settings, [this] { send_welcome(); });
  }
  // This service sends no heartbeats by itself. A worker whose test sets no limit on its silence
  // does not miss them.
  Worker attach(WorkerSettings settings, const std::function<void()>& answer) {
    if (settings.heartbeats.silence == worker_protocol::Heartbeats{}.silence)
      settings.heartbeats.silence = std::chrono::hours(1);
    std::jthread service([&] {
      expect_worker();
      answer();
    });
    return Worker(url(), settings);
  }

  // Waits for the connection of a worker and for its Hello.
  void expect_worker() {
    accept();
    hello_ = receive<Hello>();
  }
  const Hello& hello() const { return hello_; }
  // Waits for a connection that asks for the description of a pipeline.
  Describe expect_describe() {
    accept();
    return receive<Describe>();
  }

  void send_welcome() {
    if (welcome.slabs > 0) slabs_ = SharedMemory::create(welcome.slabs * welcome.slab_bytes);
    send(welcome, slabs_ ? slabs_->descriptor() : -1);
  }

  template <class Message>
  void send(const Message& message, int descriptor = -1) {
    send_bytes(encoder_.encode(message), descriptor);
  }
  void send_bytes(Bytes message, int descriptor = -1) {
    if (socket_->try_send(message, descriptor) != FramedSocket::Sent::accepted || !socket_->flush())
      throw std::runtime_error("the worker does not read");
  }
  // Sends the bytes without a length before them.
  void send_raw(const std::vector<std::uint8_t>& bytes) {
    if (::send(socket_->native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("the worker does not read");
  }

  // The worker's next message, which must be of this type. Skips heartbeats. Throws if no message
  // is received in time.
  template <class Message>
  Message receive() {
    for (;;) {
      ToService message = next();
      if (auto* wanted = std::get_if<Message>(&message)) return std::move(*wanted);
      if (!std::holds_alternative<Heartbeat>(message))
        throw std::runtime_error("the worker sent something else");
    }
  }

  // True if the connection ends without another message except heartbeats.
  bool sees_end() {
    for (;;) {
      const auto bytes = wait();
      if (!bytes) return bytes.error() == FramedError::closed;
      if (!std::holds_alternative<Heartbeat>(*decoder_.to_service(*bytes))) return false;
    }
  }

  void hang_up() { socket_.reset(); }

  MutableBytes slab(std::uint32_t slab) {
    return slabs_->bytes().subspan(slab * welcome.slab_bytes, welcome.slab_bytes);
  }

 private:
  void await(int descriptor) {
    pollfd wanted{descriptor, POLLIN, 0};
    if (::poll(&wanted, 1, std::chrono::milliseconds(patience).count()) != 1)
      throw std::runtime_error("the worker does nothing");
  }

  void accept() {
    const int listening = tcp_ ? tcp_->native_handle() : local_->native_handle();
    await(listening);
    socket_.emplace(std::move(**try_accept(listening)),
                    FramedLimits{.max_message = max_to_service});
  }

  Result<Bytes, FramedError> wait() {
    for (;;) {
      const auto message = socket_->try_receive();
      if (!message) return message.error();
      if (*message) return **message;
      await(socket_->native_handle());
    }
  }

  ToService next() {
    const auto bytes = wait();
    if (!bytes) throw std::runtime_error("the worker is gone");
    auto message = decoder_.to_service(*bytes);
    if (!message) throw std::runtime_error("the worker sent what is no message");
    return std::move(*message);
  }

  TemporaryDirectory directory_;
  std::optional<LocalListener> local_;
  std::optional<TcpListener> tcp_;  // without local_
  std::optional<FramedSocket> socket_;
  std::optional<SharedMemory> slabs_;
  Encoder encoder_;
  Decoder decoder_;
  Hello hello_;
};

// A batch of the pipeline of FakeService: one row with frames in slot 5, and a marker row.
inline HandedBatch example_batch(std::uint64_t id, std::uint32_t slab = 0) {
  HandedBatch batch;
  batch.id = BatchId{id};
  batch.slab = slab;
  batch.rows = 2;
  batch.width = 3;
  batch.framed.resize(1);
  batch.framed[0].stream = StreamId{11};
  batch.framed[0].slot = 5;
  batch.framed[0].size = 3;
  batch.framed[0].flags = 7;
  batch.framed[0].reason = 1;
  batch.marks.resize(1);
  batch.marks[0].stream = StreamId{11};
  batch.marks[0].seq = 1;
  batch.marks[0].begin = 3;
  batch.marks[0].slot = 5;
  batch.marks[0].flags = 16;
  return batch;
}

// A worker that holds a batch.
struct BusyWorker {
  FakeService service;
  Worker worker = service.attach();
  std::optional<WorkerBatch> batch = (service.send(example_batch(1)), worker.next());
};

// True if the worker's wait for a batch throws a WorkerError whose text contains `part`.
inline bool throws_lost(Worker& worker, const std::string& part) {
  try {
    (void)worker.next_until(Clock::now() + patience);
  } catch (const WorkerError& error) {
    return std::string(error.what()).find(part) != std::string::npos;
  }
  return false;
}

}  // namespace millrace
