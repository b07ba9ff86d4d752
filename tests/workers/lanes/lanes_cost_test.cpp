// SPDX-License-Identifier: Apache-2.0
// What events cost when there are many streams, by the time of the processor.
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

// Two workers with 5000 streams, each of which a worker has had a row of.
struct Crowd {
  static constexpr std::uint64_t streams = 5000;

  Pipeline p{streams, 2ms};
  LaneId first = p.lanes.attach(2, p.now), second = p.lanes.attach(2, p.now);

  Crowd() {
    for (std::uint64_t id = 1; id <= streams; ++id) p.row(p.open(id));
    for (LaneId lane : {first, second}) {
      p.now += 2ms;
      CHECK(p.next(lane) != "none");
      p.done(lane);
    }
    p.events();
  }

  // Rows of one stream, each answered, and a tick of the clock after each.
  double serve() {
    return seconds([this] {
      for (int i = 0; i < 2000; ++i) {
        p.row(StreamId{1});
        p.now += 2ms;
        p.lanes.heard(first, p.now);
        p.lanes.heard(second, p.now);
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
  Crowd crowd;
  const double before = crowd.serve();
  crowd.p.lanes.bye(crowd.second, crowd.p.now);
  CHECK(crowd.p.lanes.leaving(crowd.second));
  const double leaving = crowd.serve();
  CHECK(crowd.p.lanes.lanes().size() == 2);
  CHECK(leaving < 3 * before + 0.01);
}

TEST_CASE("an event costs no more while a worker keeps thousands of streams after bye_wait") {
  Crowd crowd;
  const double before = crowd.serve();
  crowd.p.lanes.bye(crowd.second, crowd.p.now);
  crowd.p.lanes.bye(crowd.first, crowd.p.now);  // there is no room elsewhere
  crowd.p.pass_bye_wait();
  const double kept = crowd.serve();
  CHECK(crowd.p.lanes.lanes().size() == 2);
  CHECK(kept < 3 * before + 0.01);
}

TEST_CASE("streams of a lost worker with old rows are queued again without a search for each") {
  constexpr std::uint64_t streams = 20000;
  Pipeline p(2 * streams, 1h);
  const LaneId first = p.lanes.attach(2, p.now), second = p.lanes.attach(2, p.now);
  for (std::uint64_t id = 1; id <= 2 * streams; ++id) p.open(id);
  for (std::uint64_t i = 0; i < 2 * streams; ++i) {  // as good as by chance
    p.now += 1us;
    p.row(StreamId{1 + i * 7919 % (2 * streams)});
  }
  const double took = seconds([&] { p.lanes.lost(first, Blame::worker, p.now); });
  CHECK(p.lanes.lanes().at(second).batcher().waiting() == 2 * streams);
  CHECK(took < 0.5);
}
