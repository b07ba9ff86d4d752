// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "monitoring/exporter.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

TEST_CASE("without a recorder there are no metrics of recording") {
  CHECK_THAT(Exporter(Sources()).text(Time(1s)), !Contains("millrace_recording"));
}

TEST_CASE("slices dropped by io threads and by the recorder are one count") {
  recording::RecordingStats recorder;
  recording::TapStats taps[2];
  recorder.dropped[recording::DropReason::disk_full].add(1);
  recorder.dropped[recording::DropReason::memory].add(2);
  taps[0].dropped[recording::DropReason::memory].add(3);
  taps[1].dropped[recording::DropReason::queue_full].add(4);
  Sources sources;
  sources.recorder = {&recorder};
  sources.taps = {&taps[0], &taps[1]};
  const std::string dropped = "millrace_recording_records_dropped_total{reason=";
  CHECK_THAT(Exporter(sources).text(Time(1s)),
             Contains(dropped + "\"queue_full\"} 4\n" + dropped + "\"disk_full\"} 1\n" + dropped +
                      "\"io_error\"} 0\n" + dropped + "\"memory\"} 5\n"));
}

TEST_CASE("a recorder has at most 90 series") {
  const recording::RecordingStats recorder;
  Sources sources;
  const auto lines = [&] {
    const std::string text = Exporter(sources).text(Time(1s));
    return std::ranges::count(text, '\n');
  };
  const auto without = lines();
  sources.recorder = {&recorder};
  const auto headings = 2 * 14;  // of its families
  CHECK(lines() - without - headings <= 90);
}
