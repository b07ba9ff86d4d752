// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/streams/live_stream.h"
#include "tests/support/allocations.h"

using namespace millrace;

TEST_CASE("in steady state messages and rows need no allocation") {
  test::LiveStream live({.size = 1600, .left = 400}, 80000);
  live.lane.rows.reserve(1000);
  const std::vector<std::byte> message(3 * 1600 * sizeof(std::int16_t));
  const auto round = [&] {
    live.stream.frames(message, live.now);
    live.stream.flush(std::nullopt, live.now);
    live.stream.gap(10, live.now);
    live.take_and_answer(4);
  };
  for (int i = 0; i < 10; ++i) round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 100; ++i) round();
  CHECK(test::allocations() == before);
  CHECK(live.rows().size() == 440);
}

TEST_CASE("in steady state endpoints by voice need no allocation") {
  test::LiveStream live(
      {.id = StreamId{5},
       .type = {},
       .format = format_of(SampleFormat::s16le, {}),
       .chunk = {.spec = {.size = 1600}},
       .endpoint = EndpointRule{.silence = 1600, .before_speech = 1600, .max = 8000},
       .frames_limit = 80000});
  live.lane.rows.reserve(3000);
  const std::vector<std::byte> message(3 * 1600 * sizeof(std::int16_t));
  const auto round = [&] {
    live.stream.frames(message, live.now);
    live.stream.gap(10, live.now);
    live.take_and_answer(live.lane.rows.size() - live.answered);
  };
  for (int i = 0; i < 10; ++i) round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 100; ++i) round();
  CHECK(test::allocations() == before);
  CHECK(live.stats.endpoints[EndpointReason::no_speech].value() == 330);
}

TEST_CASE("in steady state drawn and adaptive sizes need no allocation") {
  for (const SizeRule::By by : {SizeRule::By::random, SizeRule::By::adaptive}) {
    CAPTURE(static_cast<int>(by));
    test::LiveStream live(
        {.id = StreamId{5},
         .type = {},
         .format = format_of(SampleFormat::s16le, {}),
         .chunk = {.spec = {.size = 800, .first = 900, .left = 100},
                   .sizes = {.by = by, .sizes = SizeList({400, 800, 1600, 3200}), .seed = 7}},
         .frames_limit = 80000});
    live.lane.rows.reserve(4000);
    const std::vector<std::byte> message(3 * 1600 * sizeof(std::int16_t));
    const auto round = [&](bool rows_wait) {
      live.stream.frames(message, live.now);
      live.stream.flush(std::nullopt, live.now);
      live.stream.gap(10, live.now);
      if (rows_wait) live.now += std::chrono::seconds(1);
      while (live.answered < live.lane.rows.size()) live.take_and_answer(1);
    };
    for (int i = 0; i < 20; ++i) round(false);
    const std::size_t before = test::allocations();
    for (int i = 0; i < 200; ++i) round(i < 10);
    CHECK(test::allocations() == before);
    CHECK(live.stats.size_changes[SizeChange::up].value() > 0);
    CHECK(live.stats.size_changes[SizeChange::down].value() > 0);
  }
}

TEST_CASE("a stream whose rate is converted needs no allocation in steady state either") {
  test::LiveStream live(StreamSettings{.id = {},
                                       .type = {},
                                       .format = {.format = SampleFormat::mulaw,
                                                  .values = 2,
                                                  .rate = 8000,
                                                  .channel = MeanOfChannels{}},
                                       .chunk = {.spec = {.size = 1600}},
                                       .frames_limit = 80000});
  live.lane.rows.reserve(1000);
  const std::vector<std::byte> message(2 * 800);
  const auto round = [&] {
    live.stream.frames(message, live.now);
    live.stream.gap(10, live.now);
    live.take_and_answer(2);
  };
  for (int i = 0; i < 10; ++i) round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 100; ++i) round();
  CHECK(test::allocations() == before);
}

TEST_CASE("opening a stream allocates its converter and nothing else") {
  test::LiveStream live({.size = 1600}, 80000);
  const std::size_t before = test::allocations();
  Stream idle({.id = {}, .chunk = {.spec = {.size = 1600}}, .frames_limit = 80000},
              {.host = live.lane,
               .blocks = live.pool,
               .stats = live.stats,
               .chosen_size = live.chosen_size},
              live.client);
  CHECK(test::allocations() == before + 1);
  CHECK(sizeof idle <= 1536);
}
