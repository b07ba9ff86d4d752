// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "monitoring/exporter.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

TEST_CASE("copies of all pipelines are counted for their device") {
  DeviceStats devices[2];
  devices[1].healthy.set(1);
  LaneStats lanes[2];
  for (LaneStats& lane : lanes) lane.copies = std::vector<CopyStats>(2);
  lanes[0].copies[0].copies.add(2);
  lanes[1].copies[0].copies.add(3);
  lanes[1].copies[1].bytes.add(4096);
  lanes[0].copies[1].took.observe(Duration(20us));
  lanes[0].copies[0].faults[DeviceFault::ecc].add();
  Exporter exporter({.service = {},
                     .threads = {},
                     .websocket = {},
                     .zmq = {},
                     .zmq_sockets = {},
                     .pipelines = {{"a", 16000, {}, {&lanes[0]}}, {"b", 100, {}, {&lanes[1]}}},
                     .devices = {{"cuda:0", {&devices[0]}}, {"cuda:2", {&devices[1]}}}});
  const std::string text = exporter.text(Time(1s)), first = "{device=\"cuda:0\"",
                    second = "{device=\"cuda:2\"";
  const auto check_line = [&](const std::string& what) {
    CHECK_THAT(text, Contains("\nmillrace_" + what + "\n"));
  };
  check_line("h2d_copies_total" + first + "} 5");
  check_line("h2d_copies_total" + second + "} 0");
  check_line("h2d_copied_bytes_total" + second + "} 4096");
  check_line("h2d_copy_duration_seconds_sum" + second + "} 2e-05");
  check_line("device_errors_total" + first + ",error=\"ecc\"} 1");
  check_line("device_errors_total" + second + ",error=\"ecc\"} 0");
  check_line("device_healthy" + first + "} 0");
  check_line("device_healthy" + second + "} 1");
}
