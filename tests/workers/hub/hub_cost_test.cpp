// SPDX-License-Identifier: Apache-2.0
// The processor time of an event on the home thread with many attached workers.
#include <time.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "tests/workers/hub/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Duration thread_cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Many workers, of which one has the only stream. They are on other machines, so that they need no
// descriptors.
struct OneOfMany {
  HubUnderTest h;
  std::vector<Link*> workers;

  explicit OneOfMany(std::size_t count) {
    h.slab_bytes.set_limit(std::uint64_t{1} << 30);
    while (workers.size() < count) {
      Link& worker = *workers.emplace_back(&h.connect());
      worker.is_remote = true;
      h.hub.hello(worker, {.name = "w", .credits = 1});
      h.run_until([&] { return !worker.idle(); });
      (void)worker.receive<Welcome>();
    }
    h.open(1);
  }

  // A row, a heartbeat of another worker and an answer, many times.
  Duration serve() {
    const Duration before = thread_cpu_time();
    for (int i = 0; i < 500; ++i) {
      h.row(1);
      h.hub.receive(*workers.back(), Heartbeat{});
      h.done(*workers.front(), workers.front()->receive<HandedBatch>().id);
      h.back.clear();
    }
    return thread_cpu_time() - before;
  }
};

}  // namespace

TEST_CASE("an event costs the home thread the same with 3 workers and with 3000") {
  OneOfMany few(3), many(3000);
  Duration least_few = 1h, least_many = 1h;
  for (int round = 0; round < 10; ++round) {
    least_few = std::min(least_few, few.serve());
    least_many = std::min(least_many, many.serve());
  }
  CHECK(least_many < 3 * least_few);
}
