// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "schemas/worker_codec.h"
#include "tests/transport/zeromq_peers.h"
#include "tests/workers/hub_fixture.h"
#include "workers/remote_server.h"

namespace millrace::test {

// A hub behind a real door for workers of other machines, and another hub with a thread of its own,
// of the pipeline "other"; the test runs the threads.
class RemoteDoor : public HubUnderTest {
 public:
  static constexpr std::size_t max_unread = std::size_t{1} << 20;

  explicit RemoteDoor(Patience patience = patient, Duration handshake = 1h)
      : HubUnderTest(patience),
        server(io(), "tcp://127.0.0.1:0", reception(handshake), max_unread) {
    lines.reserve(64);  // a test without memory has its log
    server.start();
  }
  ~RemoteDoor() {
    for (HubUnderTest* each : {static_cast<HubUnderTest*>(this), &other}) {
      each->hub.dismiss();
      each->run();
    }
  }

  HubUnderTest other;
  bool other_runs = true;

  void run_until(const auto& happened) {
    HubUnderTest::run_until([&] {
      if (other_runs) other.run();
      return happened();
    });
  }

  std::uint64_t failures(WorkerFailure why) const { return stats.failures[why].value(); }
  bool logged(const std::string& event) const {
    return std::ranges::find(lines, event) != lines.end();
  }

 private:
  WorkerReception reception(Duration handshake) {
    WorkerReception reception;
    reception.find = [this](std::string_view pipeline) {
      if (pipeline == "broken") throw std::runtime_error("no memory, or something like it");
      if (pipeline == "other") return HubHome{&other.hub, &other.io()};
      return pipeline == "default" ? HubHome{&hub, &io()} : HubHome{};
    };
    reception.log = [this](const WorkerEvent& event) { lines.emplace_back(event.what); };
    reception.patience = handshake;
    return reception;
  }

 public:
  RemoteServer server;
};

// A worker of another machine without the library: says what the test wants it to say.
class RemoteWorker {
 public:
  explicit RemoteWorker(RemoteDoor& door) : door_(door), dealer_(door.server.port()) {
    dealer_.socket().set(zmq::sockopt::linger, 0);  // a test that fails does not wait for its door
  }

  template <class Message>
  RemoteWorker& send(const Message& message) {
    const Bytes bytes = encoder_.encode(message);
    return send_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  RemoteWorker& send_bytes(std::string_view bytes, bool more = false) {
    dealer_.send(bytes, more);
    return *this;
  }

  // The next message, which must be of this kind; the service runs until it comes. Heartbeats and
  // Company are skipped. A batch's tensor stays until the next message.
  template <class Message>
  Message take() {
    for (;;) {
      door_.run_until([&] { return received_ = dealer_.receive(); });
      auto message = decoder_.to_worker(std::as_bytes(std::span(*received_)));
      if (!message) throw std::runtime_error("the service sent what is no message");
      if (auto* wanted = std::get_if<Message>(&*message)) return std::move(*wanted);
      if (!std::holds_alternative<Heartbeat>(*message) &&
          !std::holds_alternative<Company>(*message))
        throw std::runtime_error("the service sent something else");
    }
  }
  // Says Hello and is welcomed.
  RemoteWorker& attach(std::uint32_t credits = 2, std::string pipeline = "default") {
    send(Hello{.pipeline = std::move(pipeline), .name = "raw", .credits = credits});
    (void)take<Welcome>();
    return *this;
  }
  // A message that means nothing, of so many bytes or some more: what is behind one is not read.
  RemoteWorker& beat(std::size_t bytes = 0) {
    const Bytes beat = encoder_.encode(Heartbeat{});
    std::string text(reinterpret_cast<const char*>(beat.data()), beat.size());
    return send_bytes(text.append(bytes, '\0'));
  }
  // What waits to be sent is dropped, and so is the connection.
  void vanish() { dealer_.vanish(); }

 private:
  RemoteDoor& door_;
  Dealer dealer_;
  Encoder encoder_;
  Decoder decoder_{max_to_worker};
  std::optional<std::string> received_;
};

}  // namespace millrace::test
