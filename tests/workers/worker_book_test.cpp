// SPDX-License-Identifier: Apache-2.0
#include "workers/worker_book.h"

#include <catch2/catch.hpp>

#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::Pipeline;

TEST_CASE("a worker is listed with its slots, its batches and how long they took") {
  Pipeline p(3);
  WorkerBook book;
  const LaneId lane = p.lanes.attach(2, p.now);
  book.attached(lane, "gpu-0", true, p.now);
  p.row(p.open(1));
  p.row(p.open(2));
  CHECK(p.next(lane) == "1.0 2.0");
  for (int i = 0; i < 100; ++i) book.done(lane, i < 90 ? 8ms : 80ms);
  p.now += 2s;
  const auto all = book.list(p.lanes, 3, p.now);
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "gpu-0");
  CHECK(all[0].remote);
  CHECK(!all[0].leaving);
  CHECK(all[0].slots == 3);
  CHECK(all[0].slots_used == 2);
  CHECK(all[0].credits == 2);
  CHECK(all[0].in_flight == 1);
  CHECK(all[0].batches == 100);
  CHECK(all[0].compute_p50 > 5ms);
  CHECK(all[0].compute_p50 <= 10ms);
  CHECK(all[0].compute_p99 > 50ms);
  CHECK(all[0].compute_p99 <= 100ms);
  CHECK(all[0].oldest == 2s);
  CHECK(all[0].attached == 2s);
  CHECK(!all[0].last_failure);
}

TEST_CASE("a worker that comes again shows why the last one of its name was lost") {
  Pipeline p;
  WorkerBook book;
  const LaneId first = p.lanes.attach(2, p.now), other = p.lanes.attach(2, p.now);
  book.attached(first, "gpu-0", false, p.now);
  book.attached(other, "gpu-1", false, p.now);
  book.lost(first, "no heartbeat for 6 s", p.now);
  p.lanes.lost(first, Blame::worker, p.now);
  book.attached(p.lanes.attach(2, p.now), "gpu-0", false, p.now);
  const auto all = book.list(p.lanes, 2, p.now + 5s);
  REQUIRE(all.size() == 2);
  CHECK(!all[0].last_failure);
  REQUIRE(all[1].last_failure);
  CHECK(all[1].last_failure->why == "no heartbeat for 6 s");
  CHECK(all[1].last_failure->ago == 5s);
}

TEST_CASE("failures that are remembered are bounded, and a worker that left is none") {
  Pipeline p;
  WorkerBook book;
  for (std::size_t i = 0; i <= WorkerBook::most_failures; ++i) {
    const LaneId lane = p.lanes.attach(2, p.now);
    book.attached(lane, std::to_string(i), false, p.now);
    book.lost(lane, "disconnect", p.now);
    p.lanes.lost(lane, Blame::worker, p.now);
  }
  const LaneId leaves = p.lanes.attach(2, p.now);
  book.attached(leaves, "leaves", false, p.now);
  book.left(leaves);
  for (const char* name : {"0", "1", "leaves"})
    book.attached(p.lanes.attach(2, p.now), name, false, p.now);
  const auto all = book.list(p.lanes, 2, p.now);
  REQUIRE(all.size() == 3);
  CHECK(!all[0].last_failure);
  CHECK(all[1].last_failure);
  CHECK(!all[2].last_failure);
}

TEST_CASE("a quantile lies in the bucket of its value") {
  Histogram histogram(buckets::fast);
  CHECK(quantile(histogram, 0.5) == 0ns);
  histogram.observe(Duration(4700ms));
  CHECK(quantile(histogram, 1) == 10s);
  CHECK(quantile(histogram, 0.5) == 6250ms);
  for (int i = 0; i < 99; ++i) histogram.observe(Duration(1h));
  CHECK(quantile(histogram, 0.99) == 120s);
}
