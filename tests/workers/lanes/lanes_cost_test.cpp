// SPDX-License-Identifier: Apache-2.0
// The processor time of events with many streams.
#include <catch2/catch.hpp>
#include <ctime>

#include "tests/workers/pipeline.h"

using namespace millrace;
using namespace millrace::test;

namespace {

double seconds(auto&& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Two workers with 5000 streams. A worker had a row of each stream.
struct ManyStreams {
  static constexpr std::uint64_t streams = 5000;

  Pipeline p{streams, 2ms};
  LaneId first = p.lanes.attach(2, p.now), second = p.lanes.attach(2, p.now);

  ManyStreams() {
    for (std::uint64_t id = 1; id <= streams; ++id) p.row(p.open(id));
    for (LaneId lane : {first, second}) {
      p.now += 2ms;
      CHECK(p.next(lane) != "none");
      p.done(lane);
    }
    p.events();
  }

  // Adds rows of one stream, answers each, and moves the clock after each.
  double serve() {
    return seconds([this] {
      for (int i = 0; i < 2000; ++i) {
        p.row(StreamId{1});
        p.now += 2ms;
        p.lanes.on_message(first, p.now);
        p.lanes.on_message(second, p.now);
        p.lanes.expire(p.now);
        CHECK(p.lanes.deadline() > t0);
        for (LaneId lane : {first, second})
          if (p.next(lane) != "none") p.done(lane);
        p.events();
      }
    });
  }
};

}  // namespace

TEST_CASE("an event costs no more while a worker with thousands of streams leaves") {
  ManyStreams many;
  const double before = many.serve();
  many.p.lanes.bye(many.second, many.p.now);
  CHECK(many.p.lanes.leaving(many.second));
  const double leaving = many.serve();
  CHECK(many.p.lanes.lanes().size() == 2);
  CHECK(leaving < 3 * before + 0.01);
}

TEST_CASE("an event costs no more while a worker keeps thousands of streams after bye_wait") {
  ManyStreams many;
  const double before = many.serve();
  many.p.lanes.bye(many.second, many.p.now);
  many.p.lanes.bye(many.first, many.p.now);  // no other worker has a free slot
  many.p.pass_bye_wait();
  const double kept = many.serve();
  CHECK(many.p.lanes.lanes().size() == 2);
  CHECK(kept < 3 * before + 0.01);
}

TEST_CASE("streams of a lost worker with old rows are queued again without a search for each") {
  constexpr std::uint64_t streams = 20000;
  Pipeline p(2 * streams, 1h);
  const LaneId first = p.lanes.attach(2, p.now), second = p.lanes.attach(2, p.now);
  const double queued = seconds([&] {
    for (std::uint64_t id = 1; id <= 2 * streams; ++id) p.open(id);
    for (std::uint64_t i = 0; i < 2 * streams; ++i) {  // in a nearly random order
      p.now += 1us;
      p.row(StreamId{1 + i * 7919 % (2 * streams)});
    }
  });
  const double again = seconds([&] { p.lanes.lost(first, LossCause::worker, p.now); });
  CHECK(p.lanes.lanes().at(second).batcher().waiting() == 2 * streams);
  CHECK(again < 3 * queued + 0.01);
}
