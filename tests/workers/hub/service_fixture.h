// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/host/shared_memory.h"
#include "schemas/worker_codec.h"
#include "tests/support/temporary_directory.h"
#include "tests/workers/hub/hub_fixture.h"
#include "transport/net/framed_socket.h"
#include "transport/net/spawn.h"
#include "workers/hub/server.h"

namespace millrace::test {

// Must outlive the io_context of HubUnderTest.
struct TestBudgets {
  RemoteBudgets budgets{std::uint64_t{1} << 20};
};

// A hub with real listeners, on a Unix socket and over TCP. The test runs its thread.
class HubService : public TestBudgets, public HubUnderTest {
 public:
  explicit HubService(LaneTimeouts timeouts = long_timeouts, Duration hello_timeout = 1h,
                      const DeviceRule& rule = {.use = DeviceRule::Use::host})
      : HubUnderTest(timeouts, rule),
        server_(io().get_executor(), path(), server_settings(hello_timeout)),
        tcp(io().get_executor(), {net::ip::address_v4::loopback(), 0},
            server_settings(hello_timeout), budgets) {
    lines.reserve(64);  // so that the log needs no memory in tests that have none
    spawn(io().get_executor(), server_.serve());
    spawn(io().get_executor(), tcp.serve());
    run();
  }

  // Ends the sessions, which would otherwise still wait.
  ~HubService() {
    hub.stop();
    run();
  }

  std::string path() const { return directory_ / "workers.sock"; }
  // The worker's end of a TCP connection.
  FileDescriptor connect_tcp() const {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(tcp.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("no connection");
    return socket;
  }
  PipelineHost other;  // the pipeline "other", if a test has one
  std::uint64_t failures(WorkerFailure why) const { return stats.failures[why].value(); }
  bool logged(const std::string& event) const {
    return std::ranges::find(lines, event) != lines.end();
  }

 private:
  WorkerServerSettings server_settings(Duration hello_timeout) {
    WorkerServerSettings settings;
    settings.find = [this](std::string_view pipeline) {
      if (pipeline == "broken") throw std::runtime_error("no memory, or something like it");
      if (pipeline == "other") return other;
      return pipeline == "default" ? PipelineHost{&hub, &io()} : PipelineHost{};
    };
    settings.log = [this](const WorkerEvent& event) { lines.emplace_back(event.what); };
    settings.hello_timeout = hello_timeout;
    return settings;
  }

  TemporaryDirectory directory_;
  WorkerServer server_;

 public:
  WorkerServer tcp;
};

// A worker without the library: the test sends and receives its messages.
class RawWorker {
 public:
  explicit RawWorker(HubService& service, FramedLimits limits = {.accepts_descriptor = true})
      : service_(service), socket_(FramedSocket::connect(service.path(), limits)) {}
  // Uses this connected socket.
  RawWorker(HubService& service, FileDescriptor socket)
      : service_(service), socket_(std::move(socket), {.accepts_descriptor = true}) {}

  template <class Message>
  RawWorker& send(const Message& message, int descriptor = -1) {
    if (socket_.try_send(encoder_.encode(message), descriptor) != FramedSocket::Sent::accepted)
      throw std::runtime_error("the service does not read");
    return *this;
  }
  // Sends the bytes without a length before them.
  RawWorker& send_bytes(const std::vector<std::uint8_t>& bytes) {
    if (::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("the service does not read");
    return *this;
  }
  // Sends a message with these bytes.
  RawWorker& send_message(const std::vector<std::uint8_t>& bytes) {
    const auto size = static_cast<std::uint8_t>(bytes.size());
    return send_bytes({size, 0, 0, 0}).send_bytes(bytes);
  }

  // The next message, which must be of this type. Runs the service until it is received. Skips
  // Heartbeat and Company.
  template <class Message>
  Message receive() {
    std::optional<ToWorker> message;
    service_.run_until([&] { return (message = next()) || gone_; });
    if (!message) throw std::runtime_error("the service is gone");
    if (auto* batch = std::get_if<HandedBatch>(&*message))
      batch->tensor = tensors_.emplace_back(batch->tensor.begin(), batch->tensor.end());
    if (auto* wanted = std::get_if<Message>(&*message)) return std::move(*wanted);
    throw std::runtime_error("the service sent something else");
  }
  // Sends Hello and receives Welcome.
  RawWorker& attach(std::uint32_t credits = 2, const std::string& device = "host",
                    const std::string& pipeline = "default") {
    send(Hello{.pipeline = pipeline, .name = "raw", .credits = credits, .device = device});
    (void)receive<Welcome>();
    return *this;
  }
  // Runs the service until it has ended the connection. Returns false if a message is received
  // first.
  bool sees_end() {
    std::optional<ToWorker> message;
    service_.run_until([&] { return (message = next()) || gone_; });
    return !message;
  }

  FileDescriptor slabs() { return socket_.take_descriptor(); }
  int handle() const { return socket_.native_handle(); }

 private:
  std::optional<ToWorker> next() {
    for (;;) {
      const auto bytes = socket_.try_receive();
      gone_ = !bytes;
      if (gone_ || !*bytes) return std::nullopt;
      auto message = decoder_.to_worker(**bytes);
      if (!message) throw std::runtime_error("the service sent what is no message");
      if (!std::holds_alternative<Heartbeat>(*message) &&
          !std::holds_alternative<Company>(*message))
        return std::move(*message);
    }
  }

  HubService& service_;
  FramedSocket socket_;
  Encoder encoder_;
  Decoder decoder_{max_to_worker};
  std::deque<std::vector<std::byte>> tensors_;
  bool gone_ = false;
};

// The same over TCP.
struct TcpWorker : RawWorker {
  explicit TcpWorker(HubService& service) : RawWorker(service, service.connect_tcp()) {}
};

}  // namespace millrace::test
