// SPDX-License-Identifier: Apache-2.0
// The properties of a pipeline, asked for before a worker attaches.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/workers/library/fake_service.h"
#include "workers/library/worker.h"

using namespace millrace;

namespace {

// The answer to describe(), if the service does this with the connection.
Welcome described(FakeService& service, const WorkerSettings& settings,
                  const std::function<void()>& answer) {
  std::jthread serves([&] {
    (void)service.expect_describe();
    answer();
    service.hang_up();
  });
  return describe(service.url(), settings);
}

}  // namespace

TEST_CASE("describe() returns what a worker would be welcomed with, over each connection") {
  FakeService service(GENERATE(FakeService::Over::path, FakeService::Over::tcp));
  service.welcome.slabs = 0;
  service.welcome.row_buckets = {1, 4};
  const Welcome got = described(service, {}, [&] { service.send(service.welcome); });
  CHECK(got == service.welcome);
}

TEST_CASE("describe() names the pipeline and itself") {
  FakeService service;
  Describe asked;
  std::jthread serves([&] {
    asked = service.expect_describe();
    service.send(Refused{"pipeline", "there is no pipeline vad"});
  });
  CHECK_THROWS_WITH(describe(service.url(), {.pipeline = "vad", .name = "v"}),
                    Catch::Contains("there is no pipeline vad (pipeline)"));
  serves.join();
  CHECK(asked == Describe{.pipeline = "vad", .name = "v"});
}

TEST_CASE("a service that does not know describe() is called older") {
  FakeService service;
  const auto refuses = [&] {
    service.send(Refused{"protocol", "the first message is not a Hello"});
  };
  try {
    (void)described(service, {}, refuses);
    FAIL("nothing was thrown");
  } catch (const WorkerError& error) {
    CHECK(error.code() == "version");
    CHECK_THAT(error.what(), Catch::Contains("older than this library"));
  }
}
