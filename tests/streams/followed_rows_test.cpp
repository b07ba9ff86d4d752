// SPDX-License-Identifier: Apache-2.0
// What a stream reports to a client that follows its rows.
#include <catch2/catch.hpp>

#include "tests/streams/live_stream.h"
#include "tests/support/speech_like.h"

using namespace millrace;
using test::LiveStream;
using test::Said;

namespace {

struct Followed : LiveStream {
  explicit Followed(const Spec& spec = test::tens) : LiveStream(spec) { client.follows = true; }
  void flush(std::optional<std::uint64_t> mark = {}) { stream.flush(mark, now); }
};

}  // namespace

TEST_CASE("frames are settled when every row that they complete is done") {
  Followed live;
  live.send(9);
  CHECK(live.said() == Said{"settled 9"});
  live.send(3);
  CHECK(live.said().empty());
  live.answer(1);
  CHECK(live.said() == Said{"settled 12"});
}

TEST_CASE("while a row is not done, only frames that do not complete it are settled") {
  Followed live({.size = 10, .right = 5});
  live.send(32);
  CHECK(live.said() == Said{"settled 14"});
  live.answer(1, Answer::Kind::json);
  CHECK(live.said() == Said{"result 0 said", "settled 24"});
  live.answer(1);
  CHECK(live.said() == Said{"settled 32"});
}

TEST_CASE("a segment ends before the result of its LAST row, and is settled after it") {
  Followed live;
  live.send(15);
  live.answer(1);
  live.said();
  live.flush(7);
  CHECK(live.said() == Said{"segment 1 at 15", "settled 14"});
  live.answer(1, Answer::Kind::json);
  CHECK(live.said() == Said{"result 1 said", "flushed 7", "settled 15"});
  live.flush();
  live.answer(1);
  CHECK(live.said() == Said{"segment 2 at 15", "settled 14", "settled 15"});
  CHECK(live.client.marks == std::vector<std::optional<std::uint64_t>>{7, std::nullopt});
}

TEST_CASE("a LAST row that the tail leaves frames to is settled with these frames") {
  Followed live({.size = 10, .right = 4, .min = 8});
  live.send(13);
  live.flush();
  CHECK(live.said() == Said{"settled 13", "segment 0 at 13", "settled 12"});
  live.answer(1);
  CHECK(live.said() == Said{"settled 13"});
}

TEST_CASE("a flush that waits for the chunker settles no frames before it is cut") {
  Followed live;
  live.send(80);  // as many rows as may be ready
  live.flush();
  live.said();
  live.answer(7);
  CHECK(live.said() == Said{"segment 8 at 80", "settled 19", "settled 29", "settled 39",
                            "settled 49", "settled 59", "settled 69", "settled 79"});
  live.answer(2);
  CHECK(live.said() == Said{"settled 80"});
}

TEST_CASE("the first speech of each segment is reported with its time") {
  StreamSettings settings{.id = StreamId{5},
                          .type = {},
                          .format = format_of(SampleFormat::s16le, {}),
                          .chunk = {.spec = {.size = 1600}},
                          .endpoint = EndpointRule{.silence = 8000, .max = 320'000},
                          .frames_limit = 160'000,
                          .opened = test::at(0)};
  LiveStream live(settings);
  live.client.follows = true;
  std::vector<std::int16_t> audio(3200);
  test::SpeechLike speech;
  for (int i = 0; i < 2; ++i) {
    speech.append(audio, 16'000);
    audio.resize(audio.size() + 16'000);
  }
  live.stream.frames(bytes_of(std::span<const std::int16_t>(audio)), live.now);
  while (live.answered < live.lane.rows.size()) live.take_and_answer(1);
  REQUIRE(live.client.speech.size() == 2);
  CHECK(live.client.speech[0] == Approx(0.2).margin(0.05));
  CHECK(live.client.speech[1] == Approx(2.2).margin(0.05));
  CHECK(live.client.marks.size() == 2);
  CHECK(live.client.endpoints == 2);
  live.stream.gap(5, live.now);
  live.stream.frames(bytes_of(std::span<const std::int16_t>(audio)), live.now);
  live.stream.gap(5, live.now);
  CHECK(live.client.marks.size() > 2);
  CHECK(live.client.endpoints == live.stats.endpoints[EndpointReason::silence].value());
}

TEST_CASE("a client that does not follow its rows receives none of this") {
  LiveStream live(test::tens);
  live.send(15);
  live.stream.flush(std::nullopt, live.now);
  live.answer(2);
  CHECK(live.said().empty());
}
