// SPDX-License-Identifier: Apache-2.0
// Workers over TCP, at the worker's end. The other tests of workers hold for all connections.
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/workers/library/fake_service.h"
#include "workers/library/worker.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

struct RemoteService : FakeService {
  RemoteService() : FakeService(Over::tcp) {}

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
};

// Accepts one connection, sends these bytes, and closes it.
class Stranger {
 public:
  explicit Stranger(std::string_view says) : thread_([this, says] { answer(says); }) {}
  std::string url() const { return listener_.url(); }

 private:
  void answer(std::string_view says) {
    const FileDescriptor connection(::accept(listener_.native_handle(), nullptr, nullptr));
    char hello[4096];
    [[maybe_unused]] const ssize_t got = ::read(connection.get(), hello, sizeof hello);
    [[maybe_unused]] const ssize_t sent = ::write(connection.get(), says.data(), says.size());
  }

  TcpListener listener_;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("a worker with a tcp url takes batches and returns them") {
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

TEST_CASE(
    "a waiting worker is woken by each batch, whatever its heartbeat thread sends meanwhile") {
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

TEST_CASE("answers that were sent before a remote worker ends arrive") {
  RemoteService service;
  {
    Worker worker = service.attach();
    service.send_batch(1, 100);
    auto batch = worker.next();
    service.send_batch(2, 100);  // which the worker does not read
    worker.done(*batch);
  }
  CHECK(service.receive<Done>().batch == BatchId{1});
}

TEST_CASE("a tcp url without a listener is an error that names it") {
  const std::string url = TcpListener().url();  // the listener is closed already
  CHECK_THROWS_WITH(Worker(url, {.wait = {}}),
                    Catch::Contains(url) && Catch::Contains("Connection refused"));
  for (const char* wrong : {"tcp://", "tcp://host", "tcp://:1", "tcp://host:"})
    CHECK_THROWS_AS(Worker(wrong), std::invalid_argument);
  CHECK_THROWS_WITH(Worker("tcp://no.such.host.invalid:1", {.wait = {}}),
                    Catch::Contains("no service at tcp://no.such.host.invalid:1"));
}

TEST_CASE("the error for a TCP port of another program names the port for workers") {
  for (const char* says : {"HTTP/1.1 400 Bad Request\r\n\r\n", "\xff\1\1\1\1\1\1\1\1\x7f"}) {
    const Stranger stranger(says);
    CHECK_THROWS_WITH(
        Worker(stranger.url(), {.wait = {}}),
        Catch::Contains(
            "workers connect to [listen] workers or workers_remote, not to a port for clients"));
  }
}

TEST_CASE("a TCP connection that is closed before the first message counts as no service") {
  const Stranger proxy("");
  CHECK_THROWS_AS(Worker(proxy.url(), {.wait = {}}), ServiceAbsent);
}
