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

TEST_CASE("in steady state sizes that change need no allocation") {
  for (const auto by : {SizeRule::By::adaptive, SizeRule::By::random}) {
    test::LiveStream live(
        {.id = StreamId{5},
         .type = {},
         .format = format_of(SampleFormat::s16le, {}),
         .chunk = {.spec = {.size = 800},
                   .sizes = {.by = by,
                             .sizes = SizeList(std::vector<std::uint32_t>{400, 800, 1600})}},
         .frames_limit = 80000});
    live.lane.rows.reserve(5000);
    const std::vector<std::byte> message(800 * sizeof(std::int16_t));
    int rounds = 0;
    const auto round = [&] {
      live.stream.frames(message, live.now);
      if (++rounds % 20 == 0) live.now += std::chrono::seconds(3);  // the rows wait
      live.stream.frames(message, live.now);
      live.take_and_answer(live.lane.rows.size() - live.answered);
    };
    for (int i = 0; i < 100; ++i) round();
    const std::size_t before = test::allocations();
    for (int i = 0; i < 200; ++i) round();
    CHECK(test::allocations() == before);
    CHECK(live.stats.size_changes[SizeChange::up].value() > 0);
  }
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
