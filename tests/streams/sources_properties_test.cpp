// SPDX-License-Identifier: Apache-2.0
// The rows of random streams with sources are those of the reference chunker.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/streams/expected_rows.h"
#include "tests/streams/live_stream.h"
#include "tests/streams/random_settings.h"
#include "tests/support/sampled.h"
#include "tests/support/tapped.h"

using namespace millrace;
using test::Draw;
using Kind = Event::Kind;

namespace {

// Records the rows of a stream, and the stream's size of bodies when each was cut.
class SizedRows final : public test::CapturedRows {
 public:
  void add(StreamId id, ReadyRow row) override {
    CapturedRows::add(id, std::move(row));
    sizes.push_back(stream->body_size());
  }

  const Stream* stream = nullptr;
  std::vector<std::uint32_t> sizes;
};

// What happened in all plays.
struct Happened {
  std::uint64_t rows = 0, shed = 0, by_length = 0, by_worker = 0, late = 0, pauses = 0, aborts = 0;
  // Changes of the size.
  std::uint64_t drawn_up = 0, drawn_down = 0, by_load_up = 0, by_load_down = 0;
};

// A random stream between a client and a lane that do random things at random times. The client
// mostly obeys pauses. After each of them, the lane has exactly the rows that it must have. The
// pool keeps no spare blocks, so that a sanitizer detects late reads.
class SourcesPlay {
 public:
  explicit SourcesPlay(std::uint32_t seed)
      : draw_(seed),
        settings_(test::random_settings(draw_)),
        chosen_size_(random_chosen_size()),
        pool_(FrameBuffer::block_bytes(settings_.type.bytes(), settings_.chunk.width()), 0,
              stats_.buffer),
        stream_(settings_,
                {.host = lane_, .blocks = pool_, .stats = stats_, .chosen_size = chosen_size_},
                client_, {}, tapped_.tap()),
        expected_(settings_.chunk, settings_.endpoint,
                  [this](std::uint64_t bodies, std::uint64_t rows) {
                    return size_of_body(bodies, rows);
                  }) {
    lane_.stream = &stream_;
    while (!over_) act();
    while (!stream_.finished()) serve();
  }

  void check(Happened& all) {
    check_tap();
    REQUIRE(lane_.rows.back().row.is(flag::end));
    REQUIRE(stats_.buffer.value() == 0);
    const std::uint64_t by_length = stats_.endpoints[EndpointReason::length].value();
    const std::uint64_t by_worker = stats_.endpoints[EndpointReason::worker].value();
    REQUIRE(by_length + by_worker == expected_.endpoints());
    REQUIRE(stats_.endpoints_late.value() == expected_.late());
    all.rows += lane_.rows.size();
    all.shed += shed_;
    all.by_length += by_length;
    all.by_worker += by_worker;
    all.late += expected_.late();
    all.pauses += pauses_;
    all.aborts += lane_.rows.back().row.is(flag::abort) ? 1 : 0;
    const bool by_load = settings_.chunk.sizes.by == SizeRule::By::adaptive;
    (by_load ? all.by_load_up : all.drawn_up) += stats_.size_changes[SizeChange::up].value();
    (by_load ? all.by_load_down : all.drawn_down) += stats_.size_changes[SizeChange::down].value();
  }

 private:
  std::uint32_t random_chosen_size() {
    const SizeList& sizes = settings_.chunk.sizes.sizes;
    return sizes.empty() || draw_.chance(50) ? 0 : test::one_of(sizes, draw_);
  }

  // Sizes that depend on the load are those that the stream had.
  std::uint32_t size_of_body(std::uint64_t bodies, std::uint64_t rows) const {
    const SizeRule& rule = settings_.chunk.sizes;
    if (settings_.requested_size) return *settings_.requested_size;
    if (rule.by == SizeRule::By::random) return drawn_size(rule, settings_.name, bodies);
    if (rule.by == SizeRule::By::fixed) return settings_.chunk.spec.size;
    const std::uint32_t size = rows < lane_.sizes.size() ? lane_.sizes[rows] : stream_.body_size();
    REQUIRE(rule.sizes.contains(size));
    return size;
  }

  // One random action.
  void act() {
    if (draw_.chance(35)) return serve();
    if (stream_.paused() && draw_.chance(90)) return ++pauses_, serve();
    const std::uint32_t what = draw_(1, 100);
    if (what <= 75) return message();
    if (what <= 86) return event({.kind = Kind::flush});
    if (what <= 91) return event({.kind = Kind::reset});
    if (what <= 97) return event({.kind = Kind::gap, .count = draw_(1, 50)});
    if (what <= 98) stop();
  }

  void message() {
    std::vector<std::int16_t> values(draw_(1, draw_.chance(10) ? 400 : 60));
    for (std::int16_t& value : values) value = static_cast<std::int16_t>(draw_(0, 60'000) - 30'000);
    values_.insert(values_.end(), values.begin(), values.end());
    expected_.add({.kind = Kind::frames, .count = values.size()});
    stream_.frames(test::bytes_of(std::span<const std::int16_t>(values)), now_);
    compare();
  }

  void event(const Event& event) {
    expected_.add(event);
    if (event.kind == Kind::flush) stream_.flush(std::nullopt, now_);
    if (event.kind == Kind::reset) stream_.reset(now_);
    if (event.kind == Kind::gap) {
      values_.insert(values_.end(), event.count, std::int16_t{});
      stream_.gap(event.count, now_);
    }
    compare();
  }

  void stop() {
    over_ = true;
    const std::uint32_t how = draw_(1, 4);
    if (how == 1) {
      listens_ = false;
      expected_.abort();
      stream_.disconnected(false, now_);
    } else {
      expected_.add({.kind = Kind::end});
      if (how == 2) stream_.end(now_);
      if (how == 3) stream_.drain(now_);
      if (how == 4) {
        listens_ = false;
        stream_.disconnected(true, now_);
      }
    }
    compare();
  }

  // The lane, the clock, or a client that reads its results does something.
  void serve() {
    now_ += std::chrono::milliseconds(draw_(0, 8));
    const std::uint32_t what = draw_(1, 100);
    if (what <= 45) return take();
    if (what <= 90) return answer();
    if (what <= 94) client_.is_full = draw_.chance(30);
    const std::size_t written = std::exchange(client_.unwritten, 0);
    if (listens_) stream_.written(written, now_);
    compare();
    stream_.tick(now_);
    compare();
  }

  // The lane puts rows into batches, and reports those that the stream has asked for.
  void take() {
    if (taken_ == lane_.rows.size()) return;
    const auto most = static_cast<std::uint32_t>(lane_.rows.size() - taken_);
    for (std::uint32_t rows = draw_(1, most); rows > 0; --rows) {
      const ReadyRow& ready = lane_.rows[taken_++];
      if (!ready.notify_batched) continue;
      const std::uint64_t seq = ready.row.seq;
      expected_.batched(seq);
      stream_.batched(seq, now_);
      compare();
    }
  }

  void answer() {
    if (answered_ == taken_) return;
    const ReadyRow& ready = lane_.rows[answered_];
    check_values(ready);
    const bool ends = draw_.chance(15);
    const auto kind = draw_.chance(50) ? Answer::Kind::json : Answer::Kind::none;
    Instants at;
    at.ready = ready.ready;
    at.taken = at.done = now_;
    expected_.done(answered_, ends);
    stream_.done({.seq = answered_++, .answer = {kind, "said", ends}, .at = at}, now_);
    compare();
  }

  void check_values(const ReadyRow& ready) {
    std::uint64_t position = ready.row.window_begin();
    for (const Bytes part : ready.window)
      for (const std::int16_t value : test::values_of<std::int16_t>(part))
        if (value != values_[position++]) FAIL("a value of row " << ready.row.seq);
    REQUIRE(position == ready.row.window_begin() + ready.row.window());
  }

  // The stream was called: the lane has exactly the rows that it must have.
  void compare() {
    const std::uint64_t shed = stats_.lost[Loss::overflow].value();
    expected_.shed(shed - std::exchange(shed_, shed));
    expected_.give_rows(listens_ && client_.is_full);
    REQUIRE(lane_.rows.size() == expected_.given());
    for (; compared_ < lane_.rows.size(); ++compared_) {
      const Row& row = lane_.rows[compared_].row;
      REQUIRE(ReferenceChunker::Columns{row.seq, row.begin, row.left, row.size, row.right,
                                        row.flags, row.gap} == expected_.row(compared_));
    }
  }

  // The tapped events, cut again, give the rows of the lane, and the tapped frames their values.
  void check_tap() const {
    const std::vector<Row> again = tapped_.cut_again(settings_.chunk.chunker_spec());
    REQUIRE(again.size() == lane_.rows.size());
    for (std::size_t i = 0; i < again.size(); ++i) REQUIRE(again[i] == lane_.rows[i].row);
    REQUIRE(tapped_.rows == again);
    REQUIRE(tapped_.closed.size() == 1);
    std::uint64_t position = 0;
    const auto values = test::values_of<std::int16_t>(tapped_.frames);
    auto value = values.begin();
    for (const auto& [event, arrived] : tapped_.events) {
      if (event.kind == Kind::gap) position += event.count;
      if (event.kind != Kind::frames) continue;
      for (std::uint64_t i = 0; i < event.count; ++i)
        if (*value++ != values_[position++]) FAIL("a value before position " << position);
    }
  }

  Draw draw_;
  const StreamSettings settings_;
  std::uint32_t chosen_size_;
  StreamStats stats_;
  BlockPool pool_;
  SizedRows lane_;
  test::CapturedClient client_;
  test::Tapped tapped_;
  Stream stream_;
  test::ExpectedRows expected_;
  Time now_ = test::at(0);

  std::vector<std::int16_t> values_;  // of the client's frames by position; lost ones are 0
  std::uint64_t taken_ = 0, answered_ = 0, compared_ = 0;  // rows
  std::uint64_t shed_ = 0;                                 // frames
  std::uint64_t pauses_ = 0;
  bool over_ = false;
  bool listens_ = true;
};

}  // namespace

TEST_CASE("the events of sources and clients give the rows of the reference chunker") {
  Happened all;
  for (std::uint32_t seed = 1; seed <= test::sampled(2000u); ++seed) {
    INFO("seed " << seed);
    SourcesPlay(seed).check(all);
  }
  // The plays contain what they are for.
  CHECK(all.rows > test::sampled(50'000u));
  CHECK(all.shed > test::sampled(1000u));
  CHECK(all.by_length > test::sampled(1000u));
  CHECK(all.by_worker > test::sampled(1000u));
  CHECK(all.late > test::sampled(1000u));
  CHECK(all.pauses > test::sampled(1000u));
  CHECK(all.aborts > test::sampled(100u));
  CHECK(all.drawn_up > test::sampled(1000u));
  CHECK(all.drawn_down > test::sampled(1000u));
  CHECK(all.by_load_up > 0);
  CHECK(all.by_load_down > 0);
}
