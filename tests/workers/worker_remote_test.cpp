// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "schemas/worker_codec.h"
#include "tests/support/patience.h"
#include "tests/transport/zeromq_peers.h"
#include "transport/file_descriptor.h"
#include "workers/worker.h"

using namespace millrace;
using namespace millrace::test;
using namespace millrace::worker_protocol;
using namespace std::chrono_literals;

namespace {

// The service's end over ZeroMQ, played by the test step by step: 8 slots, 4 rows of 3 columns of
// s16.
class RemoteService {
 public:
  Worker attach(const WorkerSettings& settings = {}) {
    std::jthread service([this] {
      (void)receive<Hello>();
      send_welcome();
    });
    return Worker(url(), settings);
  }
  const std::string& url() const { return router.endpoint(); }

  void send_welcome() {
    Welcome welcome;
    welcome.slots = 8;
    welcome.rows = 4;
    welcome.width = 3;
    welcome.chunk = R"({"size":3})";
    send(welcome);
  }
  template <class Message>
  void send(const Message& message) {
    const Bytes bytes = encoder_.encode(message);
    router.send({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  // A row with frames first, first + 1, first + 2 in slot 5.
  void send_batch(std::uint64_t id, std::int16_t first) {
    const std::array<std::int16_t, 3> frames{first, static_cast<std::int16_t>(first + 1),
                                             static_cast<std::int16_t>(first + 2)};
    HandedBatch batch;
    batch.id = BatchId{id};
    batch.rows = 1;
    batch.width = 3;
    batch.framed.resize(1);
    batch.framed[0].slot = 5;
    batch.framed[0].size = 3;
    batch.tensor = std::as_bytes(std::span(frames));
    send(batch);
  }
  // The next message of this kind; heartbeats before it are skipped.
  template <class Message>
  Message receive() {
    for (;;) {
      const std::string bytes = router.receive();
      auto message = decoder_.to_service(std::as_bytes(std::span(bytes)));
      if (!message) throw std::runtime_error("the worker sent what is no message");
      if (auto* wanted = std::get_if<Message>(&*message)) return std::move(*wanted);
      if (!std::holds_alternative<Heartbeat>(*message))
        throw std::runtime_error("the worker sent something else");
    }
  }

  RawRouter router;

 private:
  Encoder encoder_;
  Decoder decoder_{max_to_service};
};

std::string lost(Worker& worker) {
  try {
    (void)worker.next_until(Clock::now() + patience);
  } catch (const WorkerError& error) {
    return error.what();
  }
  return "not lost";
}

// A port where connections wait for ever to be accepted.
class SilentPort {
 public:
  SilentPort() {
    if (::listen(socket_.get(), 4) != 0) throw std::runtime_error("no port");
  }
  std::string url() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

 private:
  const FileDescriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

}  // namespace

TEST_CASE("a worker of a tcp url takes batches and gives them back") {
  RemoteService service;
  Worker worker = service.attach();
  CHECK(worker.slots() == 8);
  service.send_batch(1, 100);
  auto batch = worker.next();
  REQUIRE(batch);
  CHECK(batch->row_as<std::int16_t>(0)[2] == 102);
  CHECK(batch->slot()[0] == 5);
  CHECK(reinterpret_cast<std::uintptr_t>(batch->data().data()) % 256 == 0);
  const std::vector<Answer> answers{{Answer::Kind::text, "yes"}};
  worker.done(*batch, answers);
  const Done done = service.receive<Done>();
  CHECK(done.batch == BatchId{1});
  CHECK(done.answers.at(0).data == "yes");
}

TEST_CASE("a worker that waits is woken by each batch, whatever its heart sends meanwhile") {
  RemoteService service;
  Worker worker = service.attach({.heartbeats = {.interval = 100us, .silence = 30s}});
  std::jthread hands_over([&] {
    for (std::uint64_t id = 1; id <= 2000; ++id) {
      service.send_batch(id, 0);
      if (service.receive<Done>().batch != BatchId{id}) return;
    }
    service.send(Bye{});
  });
  int batches = 0;
  while (auto batch = worker.next_until(Clock::now() + patience)) {
    ++batches;
    worker.done(*batch);
  }
  CHECK(batches == 2000);
  CHECK(worker.ended());
}

TEST_CASE("a worker of a tcp url that computes is heard, and hears Bye") {
  RemoteService service;
  Worker worker = service.attach({.heartbeats = {.interval = 1ms, .silence = 30s}});
  for (int beats = 0; beats < 3; ++beats) (void)service.receive<Heartbeat>();
  worker.bye();
  (void)service.receive<Bye>();
  service.send(Bye{});
  CHECK(!worker.next());
  CHECK(worker.ended());
}

TEST_CASE("a service that is gone, or sends what it must not, loses its remote worker") {
  RemoteService service;
  Worker worker = service.attach();
  SECTION("gone") {
    service.router.hang_up();
    CHECK_THAT(lost(worker), Catch::Contains("connection") && Catch::Contains("lost"));
  }
  SECTION("its words") {
    service.send(Refused{"timeout", "an answer was overdue"});
    CHECK_THAT(lost(worker), Catch::Contains("an answer was overdue"));
  }
  SECTION("parts") {
    service.router.send("a", true);
    service.router.send("b");
    CHECK_THAT(lost(worker), Catch::Contains("several parts"));
  }
  SECTION("garbage") {
    service.router.send("garbage");
    CHECK_THAT(lost(worker), Catch::Contains("no message for workers (malformed)"));
  }
  SECTION("no tensor") {
    HandedBatch batch;
    batch.id = BatchId{1};
    batch.rows = 1;
    batch.width = 3;
    batch.framed.resize(1);
    batch.framed[0].size = 3;
    service.send(batch);
    CHECK_THAT(lost(worker), Catch::Contains("does not fit"));
  }
  CHECK_THAT(lost(worker), !Catch::Contains("not lost"));
}

TEST_CASE("a remote service of which nothing is heard is lost") {
  RemoteService service;
  Worker worker = service.attach({.heartbeats = {.interval = 1ms, .silence = 20ms}});
  CHECK_THAT(lost(worker), Catch::Contains("nothing was heard"));
}

TEST_CASE("a remote worker that is interrupted while it waits returns") {
  RemoteService service;
  Worker worker = service.attach();
  std::jthread interrupts([&] { worker.interrupt(); });
  CHECK(!worker.next());
  CHECK(!worker.ended());
}

TEST_CASE("answers that were given before a remote worker goes away arrive") {
  RemoteService service;
  {
    Worker worker = service.attach();
    service.send_batch(1, 100);
    auto batch = worker.next();
    worker.done(*batch);
  }
  CHECK(service.receive<Done>().batch == BatchId{1});
}

TEST_CASE("who waits for a service that never speaks is called back, and ends that by throwing") {
  const SilentPort silent;          // is no ZeroMQ
  const RemoteService unwelcoming;  // shakes hands, and no more
  struct Enough {};
  for (const std::string& url : {silent.url(), unwelcoming.url()}) {
    int calls = 0;
    const auto meanwhile = [&] {
      if (++calls == 6) throw Enough();
    };
    CHECK_THROWS_AS(Worker(url, {}, meanwhile), Enough);
  }
}

TEST_CASE("a tcp url that leads nowhere is an error that names it") {
  std::string url;
  {
    const RawRouter gone;
    url = gone.endpoint();
  }
  CHECK_THROWS_WITH(Worker(url, {.wait = {}}),
                    Catch::Contains(url) && Catch::Contains("nobody listens"));
  for (const char* wrong : {"tcp://", "tcp://host", "tcp://:1", "tcp://host:"})
    CHECK_THROWS_AS(Worker(wrong), std::invalid_argument);
  CHECK_THROWS_WITH(Worker("tcp://no.such.host.invalid:1", {.wait = {}}),
                    Catch::Contains("no service at tcp://no.such.host.invalid:1"));
}
