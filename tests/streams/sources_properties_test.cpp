// SPDX-License-Identifier: Apache-2.0
// For every rule of sizes and endpoints: the rows that the lane gets are those of the executable
// contract (tests/support/chunk_reference.h) for the events that these rows show. The sizes,
// endpoints, marks and gaps in them are those that rule, worker and client allow.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "tests/streams/live_stream.h"
#include "tests/support/chunk_reference.h"

using namespace millrace;
using Kind = Event::Kind;
using Tally = std::map<std::string, int>;

namespace {

// Rows as events. Requires Tail::every_start: every frame is in a body.
class ShownEvents {
 public:
  // `longest` is longer than any body: the size of a body that the end of a segment cuts is not
  // shown, and any longer size gives the same row.
  ShownEvents(const test::Rows& rows, const Spec& spec, std::uint64_t longest)
      : rows_(rows), spec_(spec), longest_(longest) {
    add_gap(rows.front());
    for (std::size_t first = 0; first < rows.size();) first = add_segment(first);
  }

  std::vector<Event> events;
  std::vector<std::uint64_t> segments;  // their frames
  // Row number and size of each body that no end of a segment cut. The rows that an end yields have
  // the size then in force.
  std::vector<std::pair<std::size_t, std::uint64_t>> bodies;
  std::uint64_t lost = 0;

 private:
  static bool has(const test::Rows::value_type& row, std::uint64_t what) { return row[5] & what; }

  std::size_t add_segment(std::size_t first) {
    std::size_t last = first;
    while (!has(rows_[last], flag::last)) ++last;
    if (has(rows_[last], flag::abort)) return add_aborted(first, last);
    const std::uint64_t begin = rows_[first][1], end = rows_[last][1] + rows_[last][3];
    std::uint64_t received = begin;
    bool closing = false;
    for (std::size_t i = first; i <= last && rows_[i][3] > 0; ++i) {
      const bool is_last = i == last;
      const std::uint64_t right = rows_[i][4];
      if (closing) continue;  // all of them have the size in force
      closing = right < spec_.right || is_last;
      // A body that ended exactly with the segment may have been complete before.
      events.push_back({.kind = Kind::size, .count = is_last ? longest_ : rows_[i][3]});
      if (closing) continue;
      bodies.emplace_back(i, rows_[i][3]);
      receive(rows_[i][1] + rows_[i][3] + right, received);
    }
    receive(end, received);
    segments.push_back(end - begin);
    end_ = end;
    close(last);
    return last + 1;
  }

  // An abort drops the frames that are in no row.
  std::size_t add_aborted(std::size_t first, std::size_t last) {
    std::uint64_t received = end_ + rows_[first][6];
    for (std::size_t i = first; i < last; ++i) {
      events.push_back({.kind = Kind::size, .count = rows_[i][3]});
      bodies.emplace_back(i, rows_[i][3]);
      receive(rows_[i][1] + rows_[i][3] + rows_[i][4], received);
    }
    events.push_back({.kind = Kind::size, .count = longest_});
    receive(rows_[last][1], received);
    events.push_back({.kind = Kind::abort});
    return last + 1;
  }

  void receive(std::uint64_t until, std::uint64_t& received) {
    if (until > received) events.push_back({.kind = Kind::frames, .count = until - received});
    received = std::max(received, until);
  }

  void close(std::size_t last) {
    if (has(rows_[last], flag::end)) return events.push_back({.kind = Kind::end});
    const auto& next = rows_[last + 1];
    // A gap does not end a segment without frames: something else did, before the gap.
    if (!has(next, flag::gap) || segments.back() == 0)
      events.push_back({.kind = has(next, flag::reset) ? Kind::reset : Kind::flush});
    add_gap(next);
  }

  void add_gap(const test::Rows::value_type& row) {
    if (row[6] > 0) events.push_back({.kind = Kind::gap, .count = row[6]});
    lost += row[6];
  }

  const test::Rows& rows_;
  const Spec& spec_;
  const std::uint64_t longest_;
  std::uint64_t end_ = 0;  // of the segment before
};

// A stream with a random rule between a random client and a random lane.
class Play {
 public:
  Play(std::uint32_t seed, Tally& tally) : random_(seed), tally_(tally), live_(settings(seed)) {
    live_.writes = false;
    while (!over_) act();
    while (!live_.stream.finished()) serve();
  }

  void check() {
    const test::Rows rows = live_.rows();
    const ChunkRule& rule = settings_.chunk;
    const ShownEvents shown(rows, rule.chunker_spec(), 1000);
    ReferenceChunker reference(rule.chunker_spec());
    for (const Event& event : shown.events) reference.event(event);
    const auto differs = std::ranges::mismatch(reference.rows(), rows);
    INFO("row " << differs.in2 - rows.begin() << " of " << rows.size());
    REQUIRE(std::ranges::equal(reference.rows(), rows));
    check_sizes(shown, rows);
    check_endpoints(shown);
    if (!aborted_) {
      const auto& lost = live_.stats.lost;
      CHECK(shown.lost == lost[Loss::gap].value() + lost[Loss::overflow].value());
      CHECK(lost[Loss::gap].value() == gaps_);
      CHECK(rows.back()[1] + rows.back()[3] == sent_ + gaps_);
      CHECK(marks() == marks_);
      tally_["shed"] += lost[Loss::overflow].value() > 0;
    }
    tally_["up"] += live_.stats.size_changes[SizeChange::up].value() > 0;
    tally_["down"] += live_.stats.size_changes[SizeChange::down].value() > 0;
  }

 private:
  std::uint32_t draw(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random_);
  }
  bool chance(std::uint32_t percent) { return draw(1, 100) <= percent; }

  const StreamSettings& settings(std::uint32_t seed) {
    SizeRule sizes{.by = static_cast<SizeRule::By>(draw(0, 2)),
                   .sizes = SizeList({5, 10, 20, 40}),
                   .seed = seed,
                   .per = static_cast<SizeRule::Per>(draw(0, 1))};
    if (sizes.by == SizeRule::By::random && chance(50)) sizes.sizes = SizeList(6, 30, 4);
    const std::uint32_t size = sizes.sizes[draw(0, 2)];
    settings_ = {.id = {},
                 .name = "mic-" + std::to_string(seed),
                 .type = {.rate = 1000},
                 .format = {.rate = 1000},
                 .chunk = {.spec = {.size = size,
                                    .first = draw(0, 1) * (size + draw(0, 12) - 4),
                                    .left = draw(0, 10),
                                    .right = draw(0, 1) * draw(0, 15)},
                           .sizes = sizes},
                 .max_wait = std::chrono::milliseconds(draw(0, 3)),
                 .frames_limit = 100'000};
    if (chance(25)) settings_.requested_size = sizes.sizes[draw(0, 3)];
    if (chance(60))
      settings_.endpoint =
          EndpointRule{.by = chance(50) ? EndpointRule::By::worker : EndpointRule::By::length,
                       .max = draw(20, 300),
                       .on_endpoint = static_cast<EndpointRule::On>(draw(0, 1))};
    if (chance(30)) settings_.shed_after = std::chrono::milliseconds(draw(50, 300));
    if (draw(0, 1) == 1) pace_ = draw(1, 60);
    return settings_;
  }

  void act() {
    if (chance(60)) return serve();
    const std::uint32_t what = draw(1, 200);
    if (what <= 170) return send(draw(1, chance(5) ? 400 : 30));
    if (what <= 180) return flush();
    if (what <= 184) return live_.stream.reset(live_.now);
    if (what <= 192) return gap();
    if (what <= 194 && ++quarter_ == 4) return stop();
  }

  void send(std::uint32_t frames) {
    live_.send(frames);
    sent_ += frames;
  }
  void flush() {
    marks_.push_back(marks_.size());
    live_.stream.flush(marks_.back(), live_.now);
  }
  void gap() {
    const std::uint32_t frames = draw(1, 50);
    gaps_ += frames;
    live_.stream.gap(frames, live_.now);
  }
  void stop() {
    over_ = true;
    const std::uint32_t how = draw(0, 2);
    if (how == 0) live_.stream.end(live_.now);
    if (how == 1) live_.stream.drain(live_.now);
    if (how < 2) return;
    aborted_ = true;
    live_.stream.disconnected(false, live_.now);
  }

  // The lane takes some rows, or a worker answers one.
  void serve() {
    live_.now += std::chrono::milliseconds(draw(0, pace_));
    const std::size_t given = live_.lane.rows.size();
    if (chance(50) && taken_ < given) {
      for (std::size_t rows = draw(1, static_cast<std::uint32_t>(given - taken_)); rows > 0; --rows)
        if (const ReadyRow& row = live_.lane.rows[taken_++]; row.notify_batched)
          live_.stream.batched(row.row.seq, live_.now);
    } else if (live_.answered < taken_) {
      RowDone done{.seq = live_.answered};
      done.answer.endpoint = chance(10);
      worker_endpoints_ += done.answer.endpoint;
      done.at.ready = live_.lane.rows[live_.answered++].ready;
      done.at.taken = done.at.ready + (live_.now - done.at.ready) / 2;
      done.at.done = live_.now;
      live_.stream.done(std::move(done), live_.now);
    } else {
      live_.stream.tick(live_.now);
    }
  }

  // A complete body has a size of the rule; the first of a run differs by the difference.
  void check_sizes(const ShownEvents& shown, const test::Rows& rows) const {
    const ChunkRule& rule = settings_.chunk;
    std::vector<std::uint64_t> number;  // of rows with frames before each row
    std::uint64_t framed = 0;
    for (const auto& row : rows) number.push_back(row[3] > 0 ? framed++ : framed);
    for (const auto& [row, body] : shown.bodies) {
      const bool first_of_run = rows[row][5] & flag::reset;
      const auto is = [&](std::uint32_t size) {
        return body == (first_of_run ? rule.first_body(size) : size);
      };
      INFO("row " << row << " of size " << body);
      REQUIRE((settings_.requested_size                ? is(*settings_.requested_size)
               : rule.sizes.by == SizeRule::By::fixed  ? is(rule.spec.size)
               : rule.sizes.by == SizeRule::By::random ? is(drawn(number[row]))
                                                       : is(5) || is(10) || is(20) || is(40)));
    }
  }

  std::uint32_t drawn(std::uint64_t row) const {
    return drawn_size(settings_.chunk.sizes, settings_.name, row);
  }

  void check_endpoints(const ShownEvents& shown) {
    const auto& by = live_.stats.endpoints;
    const std::uint64_t length = by[EndpointReason::length].value();
    const std::uint64_t worker = by[EndpointReason::worker].value();
    const std::uint64_t late = live_.stats.endpoints_late.value();
    CHECK(worker + late <= worker_endpoints_);
    CHECK(worker + late + 1 >= worker_endpoints_);  // one may wait when the stream ends
    if (!settings_.endpoint) {
      CHECK(length + worker == 0);
      return;
    }
    const std::uint64_t max = settings_.endpoint->max;
    CHECK(std::ranges::all_of(shown.segments, [&](std::uint64_t frames) { return frames <= max; }));
    CHECK(std::ranges::count(shown.segments, max) >= static_cast<std::ptrdiff_t>(length));
    tally_["length"] += length > 0;
    tally_["worker"] += worker > 0;
    tally_["late"] += late > 0;
  }

  std::vector<std::uint64_t> marks() const {
    std::vector<std::uint64_t> all;
    for (const ReadyRow& row : live_.lane.rows)
      if (row.row.mark) all.push_back(*row.row.mark);
    return all;
  }

  std::mt19937 random_;
  Tally& tally_;
  StreamSettings settings_;
  std::uint32_t pace_ = 2;  // milliseconds
  test::LiveStream live_;

  std::uint64_t sent_ = 0, gaps_ = 0, worker_endpoints_ = 0;
  std::vector<std::uint64_t> marks_;
  std::size_t taken_ = 0;
  int quarter_ = 0;
  bool over_ = false, aborted_ = false;
};

}  // namespace

TEST_CASE("rows are those of the contract, whatever chooses sizes and ends segments") {
  Tally tally;
  for (std::uint32_t seed = 1; seed <= 600; ++seed) {
    INFO("seed " << seed);
    Play(seed, tally).check();
  }
  for (const char* what : {"up", "down", "shed", "length", "worker", "late"}) {
    INFO(what);
    CHECK(tally[what] > 10);
  }
}
