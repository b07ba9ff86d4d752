// SPDX-License-Identifier: Apache-2.0
// The rows and the times that the histograms of stages count.
#include <catch2/catch.hpp>
#include <vector>

#include "tests/streams/live_stream.h"

using namespace millrace;
using test::at;
using test::tens;

namespace {

// A stream whose rows take 1, 2, 4, 8 and 16 ms in the stages from `chunk` to `compute`.
struct Waits : test::LiveStream {
  Waits() : LiveStream(tens) {}

  void done(Answer::Kind kind = Answer::Kind::none) {
    const Instants row{.arrived = at(0),
                       .ready = at(1),
                       .closed = at(3),
                       .copied = at(7),
                       .taken = at(15),
                       .done = at(31),
                       .written = {}};
    stream.done({.seq = answered++, .answer = {kind, "said"}, .at = row}, now = at(31));
  }
  // Rows that each stage has counted.
  std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> all;
    for (const Histogram& stage : stats.stages) all.push_back(count_of(stage));
    return all;
  }
  static std::uint64_t count_of(const Histogram& histogram) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) count += histogram.count(i);
    return count;
  }
  // Milliseconds of all rows.
  std::vector<std::int64_t> sums() const {
    std::vector<std::int64_t> all;
    for (const Histogram& stage : stats.stages) all.push_back(stage.sum() / 1'000'000);
    return all;
  }
};

using Counts = std::vector<std::uint64_t>;
using Sums = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a row counts in the stages up to compute when it is done, answered or not") {
  Waits live;
  live.send(30);
  live.done();
  live.done(Answer::Kind::error);
  live.done(Answer::Kind::json);
  CHECK(live.counts() == Counts{3, 3, 3, 3, 3, 0});
  CHECK(live.sums() == Sums{3, 6, 12, 24, 48, 0});
}

TEST_CASE("a row counts in the stages up to compute even if its client is gone") {
  Waits live;
  live.send(20);
  live.take(2);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  live.done(Answer::Kind::json);
  live.done();
  live.done();  // ABORT
  CHECK(live.stream.finished());
  CHECK(live.counts() == Counts{3, 3, 3, 3, 3, 0});
}

TEST_CASE("a row counts in stage result and in the latency when its result is written") {
  Waits live;
  live.send(20);
  live.done(Answer::Kind::json);
  live.done();
  live.now = at(63);
  live.write();
  CHECK(live.counts() == Counts{2, 2, 2, 2, 2, 1});
  CHECK(Waits::count_of(live.stats.latency) == 1);
  CHECK(live.stats.latency.sum() == 63'000'000);
}

TEST_CASE("the stages of rows with a written result add up to their latency") {
  Waits live;
  live.send(10);
  live.done(Answer::Kind::json);
  live.now = at(63);
  live.write();
  CHECK(live.sums() == Sums{1, 2, 4, 8, 16, 32});
}

TEST_CASE("rows that were dropped with their stream count in no stage") {
  Waits live;
  live.send(30);
  live.done();
  live.stream.dropped(ErrorCode::no_worker, live.now);
  CHECK(live.counts() == Counts{1, 1, 1, 1, 1, 0});
}
