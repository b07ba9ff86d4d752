// SPDX-License-Identifier: Apache-2.0
// The sizes of a stream's bodies under each rule, and the first body of each run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "cutting/body_sizes.h"
#include "tests/streams/live_stream.h"

using namespace millrace;
using test::LiveStream;
using By = SizeRule::By;
using Per = SizeRule::Per;
using Sizes = std::vector<std::uint32_t>;

namespace {

const SizeList list(Sizes{10, 20, 40});
const SizeList range(5, 45, 5);
constexpr std::string_view name = "mic";

// Bodies of 20 frames if nothing else is chosen.
ChunkRule sized(By by, const Spec& spec = {.size = 20}) {
  return {.spec = spec, .sizes = {.by = by, .sizes = list, .seed = 7}};
}

// A stream with sizes whose lane does all rows at once.
struct SizedStream : LiveStream {
  explicit SizedStream(const ChunkRule& rule, std::optional<std::uint32_t> requested = {},
                       const std::optional<EndpointRule>& endpoint = {})
      : LiveStream(StreamSettings{.id = StreamId{5},
                                  .name = std::string(name),
                                  .type = {},
                                  .format = format_of(SampleFormat::s16le, {}),
                                  .chunk = rule,
                                  .requested_size = requested,
                                  .endpoint = endpoint,
                                  .frames_limit = 10'000}) {}

  void add(std::size_t frames) {
    send(frames);
    serve();
  }
  // A segment of the client.
  void segment(std::size_t frames) {
    add(frames);
    flush();
  }
  void flush() {
    stream.flush(std::nullopt, now);
    serve();
  }
  void reset() {
    stream.reset(now);
    serve();
  }
  void gap() {
    stream.gap(3, now);
    serve();
  }
  void serve() {
    while (answered < lane.rows.size()) take_and_answer(lane.rows.size() - answered);
  }

  // The bodies of the rows with frames since the last call.
  Sizes bodies() {
    Sizes sizes;
    for (; seen < lane.rows.size(); ++seen)
      if (lane.rows[seen].row.has_frames()) sizes.push_back(lane.rows[seen].row.size);
    return sizes;
  }
  std::uint64_t changes(SizeChange way) const { return stats.size_changes[way].value(); }

  std::size_t seen = 0;
};

// The bodies of segments of these lengths if sizes are drawn and nothing is to the right of bodies.
Sizes drawn_bodies(const SizeRule& rule, const Sizes& segments) {
  Sizes bodies;
  for (std::uint32_t left : segments)
    while (left > 0) {
      bodies.push_back(std::min(left, drawn_size(rule, name, bodies.size())));
      left -= bodies.back();
    }
  return bodies;
}

Sizes first_drawn(const SizeRule& rule, std::uint64_t rows) {
  Sizes sizes;
  for (std::uint64_t row = 0; row < rows; ++row) sizes.push_back(drawn_size(rule, name, row));
  return sizes;
}

std::vector<SizeRule> all_random() {
  std::vector<SizeRule> rules;
  for (const SizeList& sizes : {list, range})
    for (const Per per : {Per::chunk, Per::stream})
      rules.push_back({.by = By::random, .sizes = sizes, .seed = 7, .per = per});
  return rules;
}

// Size 20, and a first body that differs by this number of frames.
ChunkRule with_first(int difference, Spec::Tail tail = Spec::Tail::every_start) {
  return sized(By::fixed,
               {.size = 20, .first = static_cast<std::uint32_t>(20 + difference), .tail = tail});
}

// Calls check(stream, size, first body) for each size and both signs of the difference.
template <class Check>
void for_each_first(Spec::Tail tail, Check check) {
  for (const int difference : {6, -6})
    for (const std::uint32_t size : {10u, 20u, 40u}) {
      CAPTURE(difference, size);
      SizedStream live(with_first(difference, tail), size);
      check(live, size, static_cast<std::uint32_t>(static_cast<int>(size) + difference));
    }
}
template <class Check>
void for_each_first(Check check) {
  for_each_first(Spec::Tail::every_start, check);
}

// The event before the first event of a client.
std::optional<Event> first_event(const ChunkRule& rule, std::optional<std::uint32_t> requested) {
  StreamStats stats;
  std::uint32_t chosen = 0;
  BodySizes::Stream stream{};
  stream.name = name;
  stream.requested = requested;
  BodySizes sizes(rule, stream, stats, chosen);
  const auto event = sizes.next({}, {});
  CHECK_FALSE(sizes.next({}, {}));  // no other body has begun
  return event;
}

}  // namespace

TEST_CASE("under the rule fixed all bodies have the size of the rule") {
  SizedStream live(sized(By::fixed));
  live.add(60);
  live.segment(45);
  CHECK(live.bodies() == Sizes{20, 20, 20, 20, 20, 5});
  CHECK(live.stream.body_size() == 20);
}

TEST_CASE("a stream keeps the requested size under every rule, whatever the load") {
  for (const By by : {By::fixed, By::adaptive, By::random})
    for (const std::uint32_t size : {10u, 20u, 40u}) {
      CAPTURE(static_cast<int>(by), size);
      SizedStream live(sized(by), size);
      live.send(160);
      live.now += std::chrono::seconds(10);  // ready rows wait
      live.serve();
      live.add(80);
      live.reset();
      live.add(40);
      const Sizes bodies = live.bodies();
      CHECK(bodies == Sizes(280 / size, size));
      CHECK(live.stream.body_size() == size);
      CHECK(live.chosen_size == 0);  // no choice that other streams may continue
    }
}

TEST_CASE("drawn sizes are those of the rows with frames, also after flushes") {
  for (const SizeRule& rule : all_random()) {
    CAPTURE(rule.sizes.is_range(), static_cast<int>(rule.per));
    SizedStream live({.spec = {.size = 20}, .sizes = rule});
    const Sizes segments{200, 7, 0, 33, 1, 0, 150, 61};
    for (const std::uint32_t frames : segments) live.segment(frames);
    CHECK(live.bodies() == drawn_bodies(rule, segments));
  }
}

TEST_CASE("a segment that ends at its greatest length begins with the next drawn size") {
  const EndpointRule by_length{.by = EndpointRule::By::length, .max = 33};
  for (const SizeRule& rule : all_random()) {
    CAPTURE(rule.sizes.is_range(), static_cast<int>(rule.per));
    SizedStream live({.spec = {.size = 20}, .sizes = rule}, {}, by_length);
    live.add(330);
    CHECK(live.bodies() == drawn_bodies(rule, Sizes(10, 33)));
    CHECK(live.stats.endpoints[EndpointReason::length].value() == 10);
  }
}

TEST_CASE("rows at the end of a segment keep the size in force, and each counts as a row") {
  const SizeRule rule{.by = By::random, .sizes = SizeList(Sizes{20, 50}), .seed = 7};
  SizedStream live({.spec = {.size = 20, .right = 100}, .sizes = rule});
  std::uint64_t rows = 0;
  for (int segment = 0; segment < 20; ++segment) {
    const std::uint32_t first = drawn_size(rule, name, rows),
                        then = drawn_size(rule, name, rows + 1);
    live.segment(first + 100);  // the first row, and those at the end
    Sizes expected{first};
    expected.resize(1 + 100 / then, then);
    CHECK(live.bodies() == expected);
    rows += expected.size();
  }
}

TEST_CASE("the first body differs by the same number of frames for each size") {
  for_each_first([](SizedStream& live, std::uint32_t size, std::uint32_t first) {
    live.add(first + 3 * size);
    CHECK(live.bodies() == Sizes{first, size, size, size});
    CHECK(live.stream.body_size() == size);
  });
}

TEST_CASE("a reset and a gap begin with a first body again, inside a body or between two") {
  for_each_first([](SizedStream& live, std::uint32_t size, std::uint32_t first) {
    live.add(first + size + 1);
    live.reset();
    live.add(first + size);
    live.gap();
    live.add(1);
    live.gap();
    live.gap();  // ends no segment
    live.add(first + size);
    CHECK(live.bodies() == Sizes{first, size, 1, first, size, 1, first, size});
  });
}

TEST_CASE("the body after a flush is not the first of its run") {
  for_each_first([](SizedStream& live, std::uint32_t size, std::uint32_t first) {
    live.segment(first);
    live.add(size);
    live.reset();
    live.segment(1);  // less than a first body
    live.add(2 * size);
    CHECK(live.bodies() == Sizes{first, size, 1, size, size});
  });
}

TEST_CASE("after a flush without frames the first body is still to come") {
  for_each_first([](SizedStream& live, std::uint32_t size, std::uint32_t first) {
    live.flush();
    live.add(first + size);
    live.reset();
    live.flush();
    live.flush();
    live.add(first + size);
    CHECK(live.bodies() == Sizes{first, size, first, size});
  });
}

TEST_CASE("with tail = drop a first body that is dropped by a flush is not made up for") {
  for_each_first(Spec::Tail::drop, [](SizedStream& live, std::uint32_t size, std::uint32_t first) {
    live.segment(first - 1);
    live.add(size);
    live.reset();
    live.add(first - 1);
    live.reset();  // another run
    live.add(first + size);
    CHECK(live.bodies() == Sizes{size, first, size});
  });
}

TEST_CASE("under the rule random each first body has a drawn size and the same difference") {
  for (const std::uint32_t first : {26u, 14u}) {
    ChunkRule rule = sized(By::random, {.size = 20, .first = first});
    const Sizes sizes = first_drawn(rule.sizes, 4);
    SizedStream live(rule);
    live.add(sizes[0] + first - 20 + sizes[1]);
    live.reset();  // a marker row is not counted
    live.add(sizes[2] + first - 20 + sizes[3]);
    CHECK(live.bodies() == Sizes{sizes[0] + first - 20, sizes[1], sizes[2] + first - 20, sizes[3]});
  }
}

TEST_CASE("changes of the size are counted up and down") {
  for (SizeRule rule : all_random()) {
    CAPTURE(rule.sizes.is_range(), static_cast<int>(rule.per));
    const Sizes sizes = first_drawn(rule, 100);
    std::uint64_t up = 0, down = 0;
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      up += sizes[i] > sizes[i - 1] ? 1 : 0;
      down += sizes[i] < sizes[i - 1] ? 1 : 0;
    }
    SizedStream live({.spec = {.size = sizes[0]}, .sizes = rule});
    for (const std::uint32_t size : sizes) live.add(size);
    CHECK(live.bodies() == sizes);
    CHECK(live.changes(SizeChange::up) == up);
    CHECK(live.changes(SizeChange::down) == down);
    CHECK((up > 0) == (rule.per == Per::chunk));
  }
}

TEST_CASE("the difference of a first body is not a change of the size") {
  SizedStream live(with_first(6), 20);
  live.add(66);
  live.reset();
  live.add(66);
  CHECK(live.changes(SizeChange::up) == 0);
  CHECK(live.changes(SizeChange::down) == 0);
}

TEST_CASE("size events have the cause of their rule, and there is none without a change") {
  const Spec spec{.size = 20, .first = 26};
  CHECK(first_event(sized(By::fixed, spec), {})->cause == Cause::client);
  CHECK(first_event(sized(By::adaptive, spec), {})->cause == Cause::load);
  CHECK(first_event(sized(By::random, spec), {})->cause == Cause::drawn);
  for (const By by : {By::fixed, By::adaptive, By::random}) {
    const auto event = first_event(sized(by, spec), 40);
    REQUIRE(event);
    CHECK(event->kind == Event::Kind::size);
    CHECK(event->cause == Cause::client);
    CHECK(event->count == 46);
    CHECK_FALSE(first_event(sized(by), 20));
  }
  CHECK_FALSE(first_event(sized(By::fixed), {}));
}
