// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/server.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>

#include "tests/workers/hub/door_fixture.h"
#include "tests/workers/library/child.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// While it lives, files may not be larger than this. A memfd is one.
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

TEST_CASE("a worker that says Hello is welcomed and gets its slabs") {
  Door door;
  RawWorker worker(door);
  worker.send(Hello{.name = "w", .credits = 2});
  const auto welcome = worker.take<Welcome>();
  CHECK(welcome.slabs == 3);
  const FileDescriptor slabs = worker.slabs();
  CHECK_NOTHROW(SharedMemory::map(slabs.get(), 3 * 4096));
  CHECK(door.stats.workers.value() == 1);
}

TEST_CASE("a Hello that comes byte by byte is a Hello") {
  Door door;
  RawWorker worker(door);
  Encoder encoder;
  const Bytes hello = encoder.encode(Hello{.name = "w"});
  worker.send_bytes({static_cast<std::uint8_t>(hello.size()), 0});
  door.run();
  worker.send_bytes({0, 0});
  for (const std::byte byte : hello) {
    worker.send_bytes({static_cast<std::uint8_t>(byte)});
    door.run();
  }
  (void)worker.take<Welcome>();
}

TEST_CASE("who asks for a pipeline or a version that there is not hears so") {
  Door door;
  RawWorker lost(door), old(door);
  lost.send(Hello{.pipeline = "vad", .name = "w"});
  const auto no_pipeline = lost.take<Refused>();
  CHECK(no_pipeline.code == "pipeline");
  CHECK(no_pipeline.message == "there is no pipeline vad");
  CHECK(lost.sees_end());
  old.send(Hello{.version = 7, .name = "w"});
  CHECK(old.take<Refused>().code == "version");
  CHECK(old.sees_end());
  CHECK(door.lines == std::vector<std::string>{"worker refused", "worker refused"});
}

TEST_CASE("a first message that is no Hello ends its connection and no other") {
  Door door;
  RawWorker worker(door);
  SECTION("garbage") { worker.send_message({1, 2, 3, 4, 5, 6, 7, 8}); }
  SECTION("nothing in it") { worker.send_message({}); }
  SECTION("longer than any") { worker.send_bytes({255, 255, 255, 255}); }
  SECTION("HTTP") { worker.send_bytes({'G', 'E', 'T', ' ', '/'}); }
  SECTION("another message") { worker.send(Heartbeat{}); }
  CHECK(worker.take<Refused>().code == "protocol");
  CHECK(worker.sees_end());
  CHECK(door.logged("worker refused"));
  RawWorker(door).attach();
}

TEST_CASE("who says nothing is not waited for") {
  Door door(HubUnderTest::patient, 5ms);
  RawWorker silent(door), half(door);
  half.send_bytes({100, 0, 0, 0, 1});
  CHECK(silent.take<Refused>().code == "protocol");
  CHECK(silent.sees_end());
  CHECK(half.take<Refused>().code == "protocol");
}

TEST_CASE("who hangs up before Hello leaves nothing behind") {
  Door door;
  { RawWorker(door).send_bytes({100, 0, 0, 0, 1}); }
  { const RawWorker nothing(door); }
  door.run_until([&] { return door.lines.size() == 2; });  // each is refused, and gone
  RawWorker(door).attach();
  CHECK(door.stats.workers.value() == 1);
}

TEST_CASE("a worker that said Hello and hung up before it was welcomed gets no row") {
  Door door;
  door.open(1);
  door.row(1);
  for (int i = 0; i < 2; ++i) RawWorker(door).send(Hello{.name = "w"});
  door.run_until([&] { return door.lines.size() == 2; });
  CHECK(door.lines == std::vector<std::string>{"worker refused", "worker refused"});
  CHECK(door.failures(WorkerFailure::disconnect) == 0);
  CHECK(door.returned().empty());
  CHECK(rows_of(RawWorker(door).attach().take<HandedBatch>()) == "1.0");
}

TEST_CASE("what fails of one connection ends that one") {
  Door door;
  RawWorker worker(door);
  worker.send(Hello{.pipeline = "broken", .name = "w"});
  CHECK(worker.sees_end());
  CHECK(door.lines == std::vector<std::string>{"worker refused"});
  RawWorker(door).attach();
}

TEST_CASE("a process whose workers are lost again and again takes no more descriptors") {
  const auto open_descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  Door door;
  std::uint64_t lost = 0;
  const auto lose = [&] {
    RawWorker(door).attach();
    ++lost;
    door.run_until([&] { return door.failures(WorkerFailure::disconnect) == lost; });
  };
  lose();
  const auto before = open_descriptors();
  for (int i = 0; i < 10; ++i) lose();
  CHECK(open_descriptors() == before);
  CHECK(door.slab_bytes.taken() == 11 * 3 * 4096);  // which count until the process ends
}

TEST_CASE("a worker for whose slabs there is no memory is refused, and no other") {
  Door door;
  {
    const FileLimit limit(3 * 4096);
    RawWorker greedy(door), modest(door);
    greedy.send(Hello{.name = "w", .credits = 3});
    const auto refused = greedy.take<Refused>();
    CHECK(refused.code == "internal");
    CHECK(refused.message.find("cannot allocate shared memory") != std::string::npos);
    modest.attach(2);
    CHECK(door.slab_bytes.taken() == 3 * 4096);
  }
}

TEST_CASE("the slabs of a process that was evicted and lives on count until it ends") {
  Door door({.silence = 5ms, .answer = 1h, .first_answer = 1h});
  // It has its slabs mapped, and its connection closed or not.
  const bool hangs_up = GENERATE(false, true);
  Child child([&, path = door.path()] {
    FramedSocket socket = FramedSocket::connect(path, {.takes_descriptor = true});
    Encoder encoder;
    (void)socket.try_send(encoder.encode(Hello{.name = "w"}));
    pollfd input{socket.native_handle(), POLLIN, 0};
    while (!socket.take_descriptor()) {
      ::poll(&input, 1, -1);
      (void)socket.try_receive();
    }
    if (!hangs_up) ::pause();
  });
  door.run_until([&] { return door.logged("worker lost"); });
  door.run();
  CHECK(door.slab_bytes.taken() == 3 * 4096);
  child.kill();
  door.run_until([&] { return door.slab_bytes.taken() == 0; });
}
