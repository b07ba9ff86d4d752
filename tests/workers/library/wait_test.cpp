// SPDX-License-Identifier: Apache-2.0
// Invalid settings, and a service that does not listen yet.
#include <catch2/catch.hpp>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/workers/library/fake_service.h"
#include "workers/library/worker.h"

using namespace millrace;

TEST_CASE("a worker waits for a service that does not listen yet, and reports the wait once") {
  FakeService service;
  const TemporaryDirectory directory;
  const std::string place = directory / "workers.sock";
  std::vector<std::string> said;
  const auto listens = [&](const std::string& why, Duration) {
    said.push_back(why);
    std::filesystem::create_symlink(service.url().substr(5), place);
  };
  std::jthread serves([&] {
    service.expect_worker();
    service.send_welcome();
  });
  const Worker worker("unix:" + place, {.on_wait = listens});
  CHECK(worker.slots() == 8);
  CHECK(said == std::vector<std::string>{"no service at unix:" + place + " (" + place +
                                         ": No such file or directory)"});
}

TEST_CASE("a wait for a service ends after its time, and with an exception of `meanwhile`") {
  const TemporaryDirectory directory;
  const std::string url = "unix:" + (directory / "workers.sock");
  int waits = 0, calls = 0;
  const auto count = [&](const std::string&, Duration) { ++waits; };
  CHECK_THROWS_AS(Worker(url, {.wait = {}, .on_wait = count}), ServiceAbsent);
  CHECK(waits == 0);
  struct Enough {};
  CHECK_THROWS_AS(Worker(url, {.on_wait = count},
                         [&] {
                           if (++calls == 3) throw Enough();
                         }),
                  Enough);
  CHECK(waits == 1);
}

TEST_CASE("a service that refuses a worker is not waited for") {
  FakeService service;
  const auto refuses = [&] { service.send(Refused{"pipeline", "unknown pipeline"}); };
  CHECK_THROWS_WITH(service.attach({}, refuses), Catch::Contains("unknown pipeline"));
}

TEST_CASE("invalid settings are refused before anything is sent") {
  const auto refused = [](const WorkerSettings& settings, const std::string& words) {
    CHECK_THROWS_WITH(Worker("unix:/nowhere", settings), Catch::Contains(words));
    CHECK_THROWS_AS(Worker("unix:/nowhere", settings), std::invalid_argument);
  };
  refused({.credits = 0}, "credits must be 1 to 1024, not 0");
  refused({.credits = 1025}, "credits must be 1 to 1024, not 1025");
  refused({.name = "a\nb"}, "name must be text of at most 256 bytes without control characters");
  refused({.name = std::string(257, 'x')}, "name must be");
  refused({.pipeline = "\xff"}, "pipeline must be");
}
