// SPDX-License-Identifier: Apache-2.0
#include "service/admin/history.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <string>

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

std::string metrics(int streams) {
  return "# HELP millrace_streams Open streams.\n"
         "millrace_streams{pipeline=\"asr\"} " +
         std::to_string(streams) +
         "\nmillrace_streams_opened_total{pipeline=\"asr\"} 9\n"
         "millrace_queue_wait_seconds_bucket{pipeline=\"asr\",stage=\"chunk\",le=\"+Inf\"} 0\n"
         "process_open_fds 40\n";
}

}  // namespace

TEST_CASE("a history has the plotted series, and one number for a series that did not change") {
  History history;
  history.add(metrics(3), Time(1000s));
  history.add(metrics(5), Time(1005s + 250ms));
  CHECK(history.json() ==
        "{\"times\":[1000,1005.25],\"series\":{\"millrace_streams{pipeline=\\\"asr\\\"}\":[3,5],"
        "\"millrace_queue_wait_seconds_bucket{pipeline=\\\"asr\\\",stage=\\\"chunk\\\",le=\\\"+"
        "Inf\\\"}"
        "\":0}}\n");
}

TEST_CASE("a history is empty before its first sample, and is then due once a period") {
  History history;
  CHECK(history.json() == "{\"times\":[],\"series\":{}}\n");
  CHECK(history.is_due(Time(1000s)));
  history.add(metrics(3), Time(1000s));
  CHECK_FALSE(history.is_due(Time(1004s + 999ms)));
  CHECK(history.is_due(Time(1005s)));
}

TEST_CASE("a history spans five minutes and the window before them, and then drops the oldest") {
  History history;
  for (int i = 0; i < 70; ++i) history.add(metrics(i), Time(1000s) + i * History::period);
  CHECK_THAT(history.json(), Contains("{\"times\":[1040,1045,"));
  CHECK_THAT(history.json(), Contains(",1340,1345],"));
  CHECK_THAT(history.json(), Contains("\"millrace_streams{pipeline=\\\"asr\\\"}\":[8,9,"));
}

TEST_CASE("large counts and fractions are exact in a history") {
  History history;
  history.add("millrace_ingest_audio_seconds_total{pipeline=\"asr\"} 12345678901.0625\n", Time(1s));
  CHECK_THAT(history.json(), Contains("}\":12345678901.0625}"));
}

TEST_CASE("samples of other series replace those of a history") {
  History history;
  history.add(metrics(3), Time(1000s));
  history.add("millrace_streams{pipeline=\"vad\"} 7\n", Time(1005s));
  CHECK(history.json() ==
        "{\"times\":[1005],\"series\":{\"millrace_streams{pipeline=\\\"vad\\\"}\":7}}\n");
}
