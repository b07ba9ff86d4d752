// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/server.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>

#include "tests/workers/hub/service_fixture.h"
#include "tests/workers/library/child.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Limits the size of files, and so of memfds, while it exists.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  void (*signal_)(int);
  rlimit before_{};
};

}  // namespace

TEST_CASE("a worker that sends Hello receives Welcome and its slabs") {
  HubService service;
  RawWorker worker(service);
  worker.send(Hello{.name = "w", .credits = 2});
  const auto welcome = worker.receive<Welcome>();
  CHECK(welcome.slabs == 3);
  const FileDescriptor slabs = worker.slabs();
  CHECK_NOTHROW(SharedMemory::map(slabs.get(), 3 * 4096));
  CHECK(service.stats.workers.value() == 1);
}

TEMPLATE_TEST_CASE("a pipeline is described to a connection that asks, which attaches nothing", "",
                   RawWorker, TcpWorker) {
  HubService service;
  TestType asks(service);
  asks.send(Describe{.name = "w"});
  const auto described = asks.template receive<Welcome>();
  CHECK(described.slots == 2);
  CHECK(described.rows == 4);
  CHECK(described.row_buckets == std::vector<std::uint32_t>{1, 4});
  CHECK(described.width_buckets == std::vector<std::uint32_t>{4});
  CHECK(described.slabs == 0);
  CHECK(asks.sees_end());
  CHECK(service.stats.workers.value() == 0);
  CHECK(service.slab_bytes.taken() == 0);
  CHECK(service.lines.empty());
}

TEST_CASE("a question for an unknown pipeline or of another version is refused with the reason") {
  HubService service;
  RawWorker lost(service), newer(service);
  CHECK(lost.send(Describe{.pipeline = "vad", .name = "w"}).receive<Refused>().message ==
        "there is no pipeline vad");
  CHECK(lost.sees_end());
  CHECK(newer.send(Describe{.version = 7, .name = "w"}).receive<Refused>().code == "version");
  CHECK(newer.sees_end());
  CHECK(service.lines == std::vector<std::string>{"worker refused", "worker refused"});
}

TEST_CASE("an attached worker that sends another first message breaks the protocol") {
  HubService service;
  RawWorker again(service), asks(service);
  CHECK(again.attach().send(Hello{.name = "w"}).receive<Refused>().code == "protocol");
  CHECK(asks.attach().send(Describe{.name = "w"}).receive<Refused>().code == "protocol");
}

TEST_CASE("a Hello that is received byte by byte is accepted") {
  HubService service;
  RawWorker worker(service);
  Encoder encoder;
  const Bytes hello = encoder.encode(Hello{.name = "w"});
  worker.send_bytes({static_cast<std::uint8_t>(hello.size()), 0});
  service.run();
  worker.send_bytes({0, 0});
  for (const std::byte byte : hello) {
    worker.send_bytes({static_cast<std::uint8_t>(byte)});
    service.run();
  }
  (void)worker.receive<Welcome>();
}

TEST_CASE("a worker that names an unknown pipeline or version is refused with the reason") {
  HubService service;
  RawWorker lost(service), old(service);
  lost.send(Hello{.pipeline = "vad", .name = "w"});
  const auto no_pipeline = lost.receive<Refused>();
  CHECK(no_pipeline.code == "pipeline");
  CHECK(no_pipeline.message == "there is no pipeline vad");
  CHECK(lost.sees_end());
  old.send(Hello{.version = 7, .name = "w"});
  CHECK(old.receive<Refused>().code == "version");
  CHECK(old.sees_end());
  CHECK(service.lines == std::vector<std::string>{"worker refused", "worker refused"});
}

TEST_CASE("a first message other than Hello ends its connection and no other") {
  HubService service;
  RawWorker worker(service);
  std::string why = "the first message is not a Hello";
  SECTION("garbage") { worker.send_message({1, 2, 3, 4, 5, 6, 7, 8}); }
  SECTION("nothing in it") { worker.send_message({}); }
  SECTION("another message") { worker.send(Heartbeat{}); }
  SECTION("longer than any") {
    worker.send_bytes({255, 255, 255, 255});
    why = "the first message is too long for a Hello";
  }
  SECTION("HTTP") {
    worker.send_bytes({'G', 'E', 'T', ' ', '/'});
    why = "the first message is too long for a Hello";
  }
  const auto refused = worker.receive<Refused>();
  CHECK(refused.code == "protocol");
  CHECK(refused.message == why);
  CHECK(worker.sees_end());
  CHECK(service.logged("worker refused"));
  RawWorker(service).attach();
}

TEMPLATE_TEST_CASE("a connection without Hello is ended after the timeout", "", RawWorker,
                   TcpWorker) {
  HubService service(HubUnderTest::long_timeouts, 5ms);
  TestType silent(service), half(service);
  half.send_bytes({100, 0, 0, 0, 1});
  CHECK(silent.template receive<Refused>().message == "no Hello was received within 0 s");
  CHECK(silent.sees_end());
  CHECK(half.template receive<Refused>().code == "protocol");
}

TEST_CASE("a connection that ends before Hello is removed, and others can attach") {
  HubService service;
  { RawWorker(service).send_bytes({100, 0, 0, 0, 1}); }
  service.run_until([&] { return service.lines.size() == 1; });
  RawWorker(service).attach();
  CHECK(service.stats.workers.value() == 1);
}

TEST_CASE("a worker that sent Hello and disconnected before Welcome gets no row") {
  HubService service;
  service.open(1);
  service.row(1);
  for (int i = 0; i < 2; ++i) RawWorker(service).send(Hello{.name = "w"});
  service.run_until([&] { return service.lines.size() == 2; });
  CHECK(service.lines == std::vector<std::string>{"worker refused", "worker refused"});
  CHECK(service.failures(WorkerFailure::disconnect) == 0);
  CHECK(service.returned().empty());
  CHECK(rows_of(RawWorker(service).attach().receive<HandedBatch>()) == "1.0");
}

TEMPLATE_TEST_CASE("a failure in one connection ends only that one", "", RawWorker, TcpWorker) {
  HubService service;
  TestType worker(service);
  worker.send(Hello{.pipeline = "broken", .name = "w"});
  CHECK(worker.sees_end());
  CHECK(service.lines == std::vector<std::string>{"worker refused"});
  TestType(service).attach();
}

TEST_CASE("a process whose workers are lost again and again takes no more descriptors") {
  const auto open_descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  HubService service;
  std::uint64_t lost = 0;
  const auto lose = [&] {
    RawWorker(service).attach();
    ++lost;
    service.run_until([&] { return service.failures(WorkerFailure::disconnect) == lost; });
  };
  lose();
  const auto before = open_descriptors();
  for (int i = 0; i < 10; ++i) lose();
  CHECK(open_descriptors() == before);
  CHECK(service.slab_bytes.taken() == 11 * 3 * 4096);  // slabs count until the process ends
}

TEST_CASE("a worker for whose slabs there is no memory is refused, and no other") {
  HubService service;
  {
    const FileLimit limit(3 * 4096);
    RawWorker greedy(service), modest(service);
    greedy.send(Hello{.name = "w", .credits = 3});
    const auto refused = greedy.receive<Refused>();
    CHECK(refused.code == "internal");
    CHECK(refused.message.find("cannot allocate shared memory") != std::string::npos);
    modest.attach(2);
    CHECK(service.slab_bytes.taken() == 3 * 4096);
  }
}

TEST_CASE("the slabs of a process that was evicted and lives on count until it ends") {
  HubService service({.silence = 5ms, .answer = 1h, .first_answer = 1h});
  // It has mapped its slabs; its connection may be closed.
  const bool hangs_up = GENERATE(false, true);
  Child child([&, path = service.path()] {
    FramedSocket socket = FramedSocket::connect(path, {.accepts_descriptor = true});
    Encoder encoder;
    (void)socket.try_send(encoder.encode(Hello{.name = "w"}));
    pollfd input{socket.native_handle(), POLLIN, 0};
    while (!socket.take_descriptor()) {
      ::poll(&input, 1, -1);
      (void)socket.try_receive();
    }
    if (!hangs_up) ::pause();
  });
  service.run_until([&] { return service.logged("worker lost"); });
  service.run();
  CHECK(service.slab_bytes.taken() == 3 * 4096);
  child.kill();
  service.run_until([&] { return service.slab_bytes.taken() == 0; });
}
