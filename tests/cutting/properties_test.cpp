// SPDX-License-Identifier: Apache-2.0
// The rows of random streams are those of the reference chunker.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cutting/cutter.h"
#include "tests/cutting/expected_rows.h"
#include "tests/cutting/random_rules.h"
#include "tests/support/sampled.h"

using namespace millrace;
using test::Draw;
using Kind = Event::Kind;

namespace {

// What happened in all plays.
struct AllPlays {
  std::uint64_t rows = 0, by_length = 0, by_worker = 0, late = 0, aborts = 0;
  // Changes of the size.
  std::uint64_t drawn_up = 0, drawn_down = 0, by_load_up = 0, by_load_down = 0;
};

std::optional<EndpointRule> random_endpoint(Draw& draw) {
  if (draw.chance(20)) return std::nullopt;
  return EndpointRule{.by = draw.chance(70) ? EndpointRule::By::worker : EndpointRule::By::length,
                      .max = draw.chance(50) ? draw(1, 120) : 1'000'000,
                      .on_endpoint = static_cast<EndpointRule::On>(draw(0, 1))};
}

// A random stream, whose rows wait for random times, and whose client and workers do random things.
class CutterPlay {
 public:
  explicit CutterPlay(std::uint32_t seed)
      : draw_(seed),
        rule_(test::random_rule(draw_)),
        endpoint_(random_endpoint(draw_)),
        requested_(random_size(30)),
        chosen_(random_size(50).value_or(0)),
        name_("stream " + std::to_string(draw_(0, 9))),
        cutter_(rule_, {.stream = name_,
                        .rate = std::pow(10.0, draw_(2, 4)),
                        .requested_size = requested_,
                        .max_wait = std::chrono::milliseconds(draw_(0, 10)),
                        .endpoint = endpoint_ ? &*endpoint_ : nullptr,
                        .stats = &stats_,
                        .chosen_size = &chosen_}),
        expected_(rule_, endpoint_, [this](std::uint64_t bodies, std::uint64_t rows) {
          return size_of_body(bodies, rows);
        }) {
    if (draw_.chance(30)) open_anew();
    while (!cutter_.ended()) act();
  }

  void check(AllPlays& all) const {
    const std::uint64_t by_length = stats_.endpoints[EndpointReason::length].value();
    const std::uint64_t by_worker = stats_.endpoints[EndpointReason::worker].value();
    REQUIRE(by_length + by_worker == expected_.endpoints());
    REQUIRE(stats_.endpoints_late.value() == expected_.late());
    check_recorded();
    all.rows += rows_.size();
    all.by_length += by_length;
    all.by_worker += by_worker;
    all.late += expected_.late();
    all.aborts += rows_.back().is(flag::abort) ? 1 : 0;
    const bool by_load = rule_.sizes.by == SizeRule::By::adaptive;
    (by_load ? all.by_load_up : all.drawn_up) += stats_.size_changes[SizeChange::up].value();
    (by_load ? all.by_load_down : all.drawn_down) += stats_.size_changes[SizeChange::down].value();
  }

 private:
  std::optional<std::uint32_t> random_size(std::uint32_t percent) {
    const SizeList& sizes = rule_.sizes.sizes;
    if (sizes.empty() || !draw_.chance(percent)) return std::nullopt;
    return test::one_of(sizes, draw_);
  }

  // Sizes that depend on the load are those that the cutter had.
  std::uint32_t size_of_body(std::uint64_t bodies, std::uint64_t rows) const {
    if (requested_) return *requested_;
    if (rule_.sizes.by == SizeRule::By::random) return drawn_size(rule_.sizes, name_, bodies);
    if (rule_.sizes.by == SizeRule::By::fixed) return rule_.spec.size;
    const std::uint32_t size = rows < sizes_.size() ? sizes_[rows] : cutter_.body_size();
    REQUIRE(rule_.sizes.sizes.contains(size));
    return size;
  }

  void open_anew() {
    const Event open{.count = draw_(0, 5000), .rows = draw_(1, 900)};
    gaps_.push_back({0, open.count});
    enter(open);
    expected_.add(open);
  }

  // One random action.
  void act() {
    const std::uint32_t what = draw_(1, 100);
    if (what <= 70) return frames(draw_(1, draw_.chance(10) ? 400 : 60));
    if (what <= 80) return event({.kind = Kind::flush});
    if (what <= 85) return event({.kind = Kind::reset});
    if (what <= 90) return event({.kind = Kind::gap, .count = draw_(1, 50)});
    if (what <= 98) return worker_endpoint();
    event({.kind = draw_.chance(30) ? Kind::abort : Kind::end});
  }

  void frames(std::uint64_t count) {
    for (std::uint64_t left = count; left > 0;) {
      take_rows(random_wait());
      const std::uint64_t most = std::min(left, cutter_.frames_until_next());
      const std::uint64_t part = draw_(1, static_cast<std::uint32_t>(most));
      enter({.kind = Kind::frames, .count = part});
      left -= part;
    }
    expected_.add({.kind = Kind::frames, .count = count});
    compare();
  }

  void event(const Event& event) {
    take_rows(random_wait());
    if (event.kind == Kind::gap) gaps_.push_back({cutter_.position(), event.count});
    enter(event);
    expected_.add(event);
    compare();
  }

  void enter(const Event& event) {
    cutter_.add(event);
    events_.push_back(event);
    take_rows({});
  }

  void worker_endpoint() {
    if (rows_.empty()) return;
    const auto last = static_cast<std::uint32_t>(rows_.size() - 1);
    const std::uint64_t seq = rows_[last - draw_(0, std::min(last, 3u))].seq;
    cutter_.on_worker_endpoint(seq);
    expected_.on_worker_endpoint(seq);
    if (draw_.chance(50)) return;  // it waits for the next event
    take_rows({});
    compare();
  }

  Duration random_wait() {
    return std::chrono::milliseconds(draw_.chance(5) ? draw_(0, 3000) : draw_(0, 8));
  }

  // The size of a body is chosen only when the event after its begin is there.
  void take_rows(std::optional<Duration> waited) {
    while (const auto row =
               cutter_.next(waited, [&](const Event& event) { events_.push_back(event); })) {
      REQUIRE(cutter_.index(row->begin) == row->begin - lost_before(row->begin));
      rows_.push_back(*row);
      sizes_.push_back(cutter_.body_size());
    }
  }

  std::uint64_t lost_before(std::uint64_t position) const {
    std::uint64_t lost = 0;
    for (const auto& [begin, count] : gaps_) lost += begin < position ? count : 0;
    return lost;
  }

  void compare() {
    REQUIRE(rows_.size() == expected_.rows().size());
    for (; compared_ < rows_.size(); ++compared_) {
      const Row& row = rows_[compared_];
      REQUIRE(ReferenceChunker::Columns{row.seq, row.begin, row.left, row.size, row.right,
                                        row.flags, row.gap} == expected_.rows()[compared_]);
    }
  }

  // The events with their decisions, as they are recorded, give the same rows.
  void check_recorded() const {
    Cutter recorded(rule_);
    std::vector<Row> again;
    for (const Event& event : events_) {
      REQUIRE(recorded.allows(event));
      recorded.add(event);
      while (const auto row = recorded.next()) again.push_back(*row);
    }
    REQUIRE(again == rows_);
  }

  Draw draw_;
  const ChunkRule rule_;
  const std::optional<EndpointRule> endpoint_;
  const std::optional<std::uint32_t> requested_;
  std::uint32_t chosen_;
  const std::string name_;
  CutStats stats_;
  Cutter cutter_;
  test::ExpectedRows expected_;

  std::vector<Event> events_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps_;  // position and length
  std::vector<Row> rows_;
  std::vector<std::uint32_t> sizes_;  // the size when each row was cut
  std::size_t compared_ = 0;
};

}  // namespace

TEST_CASE("rows are those of the reference chunker, live and recorded", "[property]") {
  AllPlays all;
  for (std::uint32_t seed = 1; seed <= test::sampled(2000u); ++seed) {
    INFO("seed " << seed);
    CutterPlay(seed).check(all);
  }
  // The plays contain what they are for.
  CHECK(all.rows > test::sampled(50'000u));
  CHECK(all.by_length > test::sampled(1000u));
  CHECK(all.by_worker > test::sampled(1000u));
  CHECK(all.late > test::sampled(1000u));
  CHECK(all.aborts > test::sampled(100u));
  CHECK(all.drawn_up > test::sampled(1000u));
  CHECK(all.drawn_down > test::sampled(1000u));
  CHECK(all.by_load_up > 0);
  CHECK(all.by_load_down > 0);
}

TEST_CASE("a rule allows its sizes and their first bodies", "[property]") {
  const ChunkRule sized{.spec = {.size = 8, .first = 11}, .sizes = {.sizes = SizeList({4, 8})}};
  for (const std::uint64_t body : {4, 7, 8, 11})
    CHECK(Cutter(sized).allows({.kind = Kind::size, .count = body}));
  for (const std::uint64_t body : {0, 1, 5, 12})
    CHECK_FALSE(Cutter(sized).allows({.kind = Kind::size, .count = body}));
  const ChunkRule one{.spec = {.size = 8, .first = 11, .left = 2}};
  CHECK(Cutter(one).allows({.kind = Kind::size, .count = 11}));
  CHECK_FALSE(Cutter(one).allows({.kind = Kind::size, .count = 12}));
  CHECK_FALSE(Cutter(one).allows({.kind = Kind::size, .count = std::uint64_t{1} << 40}));
}
