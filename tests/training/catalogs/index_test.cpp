// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/index.h"

#include <catch2/catch.hpp>
#include <limits>

namespace millrace::training {

TEST_CASE("an index has the streams, events and watched files that it was made of") {
  IndexBuilder builder;
  const std::vector<InnerEvent> events{
      {.event = {.kind = Event::Kind::gap, .cause = Cause::recorder, .count = 7}, .frame = 10},
      {.event = {.kind = Event::Kind::flush, .count = 0, .mark = 3}, .frame = 20}};
  builder.add({.frames = 20,
               .name = "a",
               .meta = R"({"text":"x"})",
               .path = "a.wav",
               .file = {.bytes = 84, .changed = -5},
               .place = 44,
               .rate = 44'100,
               .channels = 2,
               .deep = true});
  builder.add({.frames = 30, .name = "b"}, events);
  builder.watch({.path = "sub", .file = {.bytes = 0, .changed = 9}});
  const FrameType type{.element = Element::f16, .values = 80, .rate = 12.5, .features = true};
  const auto index = Index::from(builder.finish(type, true));
  REQUIRE(index.has_value());
  REQUIRE(index->size() == 2);
  CHECK(index->frame_type() == type);
  CHECK(index->settled());
  const IndexedStream a = index->stream(0), b = index->stream(1);
  CHECK(a.frames == 20);
  CHECK(a.name == "a");
  CHECK(a.meta == R"({"text":"x"})");
  CHECK(a.path == "a.wav");
  CHECK(a.file == FileState{84, -5});
  CHECK(a.place == 44);
  CHECK(a.rate == 44'100);
  CHECK(a.channels == 2);
  CHECK(a.deep);
  CHECK(!b.deep);
  CHECK(index->is_mixed());
  CHECK(index->is_deep());
  CHECK(b.name == "b");
  CHECK(b.path.empty());
  CHECK(!index->has_events(0));
  CHECK(index->has_events(1));
  const auto read = index->events(1);
  REQUIRE(read.size() == 2);
  CHECK(read[0].event.kind == Event::Kind::gap);
  CHECK(read[0].event.cause == Cause::recorder);
  CHECK(read[0].event.count == 7);
  CHECK(!read[0].event.mark);
  CHECK(read[1].frame == 20);
  CHECK(read[1].event.mark == 3u);
  REQUIRE(index->watched() == 1);
  CHECK(index->watched(0).path == "sub");
  CHECK(index->watched(0).file.changed == 9);
}

TEST_CASE("an index whose events are not those of a stream is refused") {
  const auto accepted = [](const std::vector<InnerEvent>& events) {
    IndexBuilder builder;
    builder.add({.frames = 20, .name = "a"}, events);
    return Index::from(builder.finish({}, true)).has_value();
  };
  using Kind = Event::Kind;
  CHECK(accepted({{{.kind = Kind::reset}, 20}}));
  CHECK(!accepted({{{.kind = Kind::reset}, 21}}));
  CHECK(!accepted({{{.kind = Kind::reset}, 10}, {{.kind = Kind::reset}, 9}}));
  CHECK(!accepted({{{.kind = Kind::frames, .count = 1}, 0}}));
  CHECK(!accepted({{{.kind = Kind::open}, 0}}));
  CHECK(accepted({{{.kind = Kind::open, .count = 5, .rows = 2}, 0}, {{.kind = Kind::reset}, 0}}));
  CHECK(!accepted({{{.kind = Kind::open, .count = 5}, 1}}));
  CHECK(!accepted({{{.kind = Kind::reset}, 0}, {{.kind = Kind::open, .count = 5}, 0}}));
  CHECK(!accepted({{{.kind = Kind::open, .rows = std::numeric_limits<std::uint64_t>::max()}, 0}}));
  CHECK(!accepted({{{.kind = Kind::end}, 20}}));
  CHECK(accepted({{{.kind = Kind::abort}, 20}}));
  CHECK(!accepted({{{.kind = Kind::abort}, 20}, {{.kind = Kind::flush}, 20}}));
  CHECK(!accepted({{{.kind = Kind::gap, .count = std::numeric_limits<std::uint64_t>::max()}, 0}}));
}

TEST_CASE("an index has the parts of a stream that was opened anew, and their events") {
  const auto indexed = [](const std::vector<InnerEvent>& events, std::vector<IndexedPart> parts) {
    IndexBuilder builder;
    builder.add({.frames = 9, .name = "plain", .place = 1});
    builder.add({.frames = 20, .name = "moved", .place = 2}, events, parts);
    return Index::from(builder.finish({}, true));
  };
  using Kind = Event::Kind;
  const std::vector<InnerEvent> events{{{.kind = Kind::flush}, 3},
                                       {{.kind = Kind::open, .count = 10, .rows = 4}, 12}};
  const std::vector<IndexedPart> parts{{2, 1, 2, 30, 12, 10}, {7, 3, 3, 8, 8, 8}};
  const auto index = indexed(events, parts);
  REQUIRE(index);
  CHECK(index->parts(0).empty());
  CHECK(index->parts(1) == parts);
  REQUIRE(index->events(1).size() == 2);
  CHECK(index->events(1)[1].event.rows == 4);
  CHECK(index->events(1)[1].frame == 12);
  CHECK_FALSE(indexed(events, {}));                              // an open, and no parts
  CHECK_FALSE(indexed(events, {parts[0], {7, 3, 3, 8, 7, 7}}));  // 19 of 20 frames
  CHECK_FALSE(indexed(events, {{2, 1, 2, 11, 12, 10}, {7, 3, 3, 8, 8, 8}}));  // 12 of 11 frames
}

TEST_CASE("an index whose places in files would overflow is refused") {
  const auto accepted = [](const IndexedStream& stream, std::uint32_t values) {
    IndexBuilder builder;
    builder.add(stream);
    return Index::from(builder.finish({.values = values}, true)).has_value();
  };
  constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  const auto file = [](std::uint64_t place, std::uint32_t channels = 1) {
    return IndexedStream{.frames = Index::most_frames - 1,
                         .name = "a",
                         .path = "a.wav",
                         .place = place,
                         .rate = 8000,
                         .channels = channels};
  };
  CHECK(accepted(file(Index::most_place - 2), Index::most_channels));
  CHECK(!accepted(file(Index::most_place), 1));
  CHECK(!accepted(file(all - 1), 1));
  CHECK(!accepted(file(45), 1));
  CHECK(!accepted(file(44), Index::most_channels + 1));
  CHECK(!accepted(file(44, Index::most_channels + 1), 1));
  CHECK(!accepted(file(44, 0), 1));
  const IndexedStream recording{.frames = 20, .name = "a", .place = all};
  CHECK(accepted(recording, Index::most_values));
  CHECK(!accepted(recording, Index::most_values + 1));
}

TEST_CASE("an index can be empty") {
  const auto index = Index::from(IndexBuilder().finish({}, false));
  REQUIRE(index.has_value());
  CHECK(index->size() == 0);
  CHECK(!index->settled());
}

}  // namespace millrace::training
