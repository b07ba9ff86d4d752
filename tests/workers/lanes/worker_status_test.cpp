// SPDX-License-Identifier: Apache-2.0
#include "workers/lanes/worker_status.h"

#include <catch2/catch.hpp>

#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::Pipeline;

TEST_CASE("the status of a worker has its slots, its batches and how long they took") {
  Pipeline p(3);
  const LaneId lane = p.lanes.attach(2, p.now);
  Histogram compute(buckets::fast);
  p.row(p.open(1));
  p.row(p.open(2));
  CHECK(p.next(lane) == "1.0 2.0");
  for (int i = 0; i < 100; ++i) compute.observe(Duration(i < 90 ? 8ms : 80ms));
  p.now += 2s;
  const WorkerStatus status = status_of(p.lanes.lanes().at(lane), compute, p.now);
  CHECK(!status.leaving);
  CHECK(status.slots == 3);
  CHECK(status.slots_used == 2);
  CHECK(status.credits == 2);
  CHECK(status.in_flight == 1);
  CHECK(status.batches == 100);
  CHECK(status.compute_p50 > 5ms);
  CHECK(status.compute_p50 <= 10ms);
  CHECK(status.compute_p99 > 50ms);
  CHECK(status.compute_p99 <= 100ms);
  CHECK(status.oldest == 2s);
}

TEST_CASE("if several lost workers have one name, the last one is found") {
  LostWorkers lost;
  lost.add("gpu-0", "disconnect", Time(1s));
  lost.add("gpu-0", "no heartbeat for 6 s", Time(2s));
  CHECK(!lost.find("gpu-1"));
  REQUIRE(lost.find("gpu-0"));
  CHECK(lost.find("gpu-0")->why == "no heartbeat for 6 s");
  CHECK(lost.find("gpu-0")->at == Time(2s));
}

TEST_CASE("the number of lost workers that are remembered is limited") {
  LostWorkers lost;
  for (std::size_t i = 0; i <= LostWorkers::capacity; ++i)
    lost.add(std::to_string(i), "disconnect", Time(1s));
  CHECK(!lost.find("0"));
  CHECK(lost.find("1"));
}

TEST_CASE("a quantile is in the bucket of its value") {
  Histogram histogram(buckets::fast);
  CHECK(quantile(histogram, 0.5) == 0ns);
  histogram.observe(Duration(4700ms));
  CHECK(quantile(histogram, 1) == 10s);
  CHECK(quantile(histogram, 0.5) == 6250ms);
  for (int i = 0; i < 99; ++i) histogram.observe(Duration(1h));
  CHECK(quantile(histogram, 0.99) == 120s);
}
