// SPDX-License-Identifier: Apache-2.0
// The control law of adaptive sizes. A frame is a millisecond.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cutting/adaptive_size.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

const SizeList doubling({80, 160, 320, 640});

// One stream, whose bodies lie end to end.
struct Bodies {
  explicit Bodies(std::uint32_t begin, const SizeList& of = doubling,
                  std::string stream_name = "mic")
      : sizes(of), name(std::move(stream_name)), law({sizes, 2ms, 1000}, name, begin) {}

  std::uint32_t next(Duration waited) {
    const std::uint32_t size = law.next(waited, position);
    position += size;
    return size;
  }
  // The size after `time` with this wait.
  std::uint32_t after(Duration time, Duration waited) {
    std::uint32_t size = 0;
    const std::uint64_t until = position + static_cast<std::uint64_t>(time / 1ms);
    while (position < until) size = next(waited);
    return size;
  }
  // When the size first is smaller than now, with short waits.
  std::uint64_t time_to_smaller() {
    const std::uint64_t from = position;
    const std::uint32_t size = next(1ms);
    while (next(1ms) >= size) {
    }
    return position - from;
  }

  SizeList sizes;
  std::string name;
  AdaptiveSize law;
  std::uint64_t position = 0;
};

}  // namespace

TEST_CASE("the limits derive from the sizes and max_wait, and ascend") {
  const Bodies bodies(80);
  CHECK(bodies.law.limit_up(0) == 182ms);
  CHECK(bodies.law.limit_up(3) == 182ms);
  CHECK(bodies.law.limit_down(1) == 162ms);
  const Bodies many(40, SizeList({40, 80, 160, 1280}));
  CHECK(many.law.limit_up(0) == 92ms);
  CHECK(many.law.limit_up(1) == 182ms);
  CHECK(many.law.limit_up(2) == 322ms);
  CHECK(many.law.limit_down(3) == 312ms);
}

TEST_CASE("a stream begins with the given size") {
  CHECK(Bodies(320).next(0ms) == 320);
  CHECK(Bodies(80).next(0ms) == 80);
}

TEST_CASE("a size stays while waits are below the limit, for any time") {
  Bodies bodies(80);
  CHECK(bodies.after(1h, 182ms) == 80);
}

TEST_CASE("a wait above the limit gives the next size") {
  Bodies bodies(80);
  bodies.after(160ms, 1ms);
  CHECK(bodies.next(183ms) == 160);
}

TEST_CASE("a wait far above the limit skips sizes") {
  Bodies bodies(80);
  bodies.after(640ms, 1ms);
  CHECK(bodies.next(300ms) == 640);
}

TEST_CASE("a larger body begins at a multiple of its size") {
  Bodies bodies(80);
  bodies.after(80ms, 1ms);
  CHECK(bodies.next(183ms) == 80);   // from 80
  CHECK(bodies.next(183ms) == 160);  // from 160
  CHECK(bodies.next(500ms) == 320);  // from 320
  CHECK(bodies.next(600ms) == 640);  // from 640
}

TEST_CASE("while a queue drains, the size stays") {
  Bodies bodies(80);
  bodies.after(640ms, 1ms);
  CHECK(bodies.next(250ms) == 160);
  CHECK(bodies.after(1s, 240ms) == 160);
  CHECK(bodies.after(2s, 240ms) > 160);  // it does not drain
}

TEST_CASE("after a quiet time the size is smaller, down to the smallest") {
  Bodies bodies(640);
  CHECK(bodies.after(1s, 1ms) == 640);
  CHECK(bodies.after(1min, 1ms) == 80);
  CHECK(bodies.after(1h, 1ms) == 80);
}

TEST_CASE("waits between the limits change nothing") {
  Bodies bodies(640);
  CHECK(bodies.after(1h, 170ms) == 640);
}

TEST_CASE("each failure doubles the quiet time before the next try, up to a limit") {
  std::vector<std::uint64_t> seconds;
  for (int failures = 0; failures < 7; ++failures) {
    Bodies bodies(640);
    for (int i = 0; i < failures; ++i) {
      bodies.time_to_smaller();
      while (bodies.next(183ms) < 640) {
      }
    }
    seconds.push_back(bodies.time_to_smaller() / 1000);
  }
  CHECK(seconds[0] < 11);
  for (std::size_t i = 1; i < seconds.size(); ++i) {
    const std::uint64_t quiet = 20u << std::min<std::size_t>(i - 1, 3);
    CHECK(seconds[i] >= quiet);
    CHECK(seconds[i] <= quiet + 10);  // and the stream's turn
  }
}

TEST_CASE("a few streams try a smaller size first, and the others follow") {
  std::vector<std::uint64_t> times;
  for (int i = 0; i < 1000; ++i)
    times.push_back(Bodies(640, doubling, "mic-" + std::to_string(i)).time_to_smaller());
  std::ranges::sort(times);
  CHECK(times[20] < 3000);
  CHECK(times[150] > 4000);
  CHECK(times[400] > 7000);
  CHECK(times[999] < 11'000);
}

TEST_CASE("a long wait while others try is a failure, and the stream stays") {
  Bodies bodies(640);
  const std::uint64_t turn = Bodies(640).time_to_smaller() - 640;
  REQUIRE(turn > 2560);                                // not one of the first
  bodies.after(std::chrono::milliseconds(1920), 1ms);  // the quiet time is over
  CHECK(bodies.next(170ms) == 640);
  CHECK(bodies.after(20s, 1ms) == 640);
  CHECK(bodies.after(12s, 1ms) < 640);
}

TEST_CASE("streams of one name make the same choices") {
  Bodies one(640), two(640);
  for (int i = 0; i < 1000; ++i) {
    const Duration waited = i % 50 == 0 ? 400ms : 1ms;
    REQUIRE(one.next(waited) == two.next(waited));
  }
}

TEST_CASE("sixteen sizes work, and sizes that are no multiples of each other") {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t size = 30; size <= 180; size += 10) sizes.push_back(size);
  Bodies bodies(30, SizeList(sizes));
  CHECK(bodies.after(10s, 1s) == 180);
  CHECK(bodies.after(10min, 1ms) == 30);
}
